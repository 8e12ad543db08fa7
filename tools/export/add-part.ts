/**
 * `commission projection export --add`: a copy that grows, in a directory of parts. The first run exports everything
 * into `part-000001`, each later one what changed since into the next part. Promises: a part gets its name when it is
 * whole, so programs that read `part-*` never read half of one; `last-part.json` names the last part and is written
 * after it, so a copy that lost its last parts is noticed; no part is added to a copy that was changed, or lost one, or
 * that has texts about people who were forgotten since.
 * Can go wrong: as in an export, which writes each part; the same command continues.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, readdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Moment } from '../../core/reading/index.ts'
import type { SigningKey } from '../../core/runtime/index.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { MANIFEST_FILE, NOTE_FILE, readIfThere } from '../signing/sign-manifest.ts'
import { readSigningKey } from '../signing/signing-key.ts'
import { AS_USUAL, makeDirectory, syncDirectory, writeWhole } from '../whole-file.ts'
import { BEGUN_FILE, type ExportOptions, type ExportSteps, exportOrganization, LAST_PART_FILE } from './export.ts'
import { isLockFile, type Lock, lockDirectory } from './lock.ts'
import { assertAsSigned, assertIntact, assertNoLinks, type Manifest, namedIn, readJson } from './manifest.ts'
import {
  beginAfter,
  type FormerPart,
  momentOfChange,
  otherRecords,
  type PartBegin,
  personalKinds,
  whyNoPart,
} from './parts.ts'
import { openedPages, refuseUnknown } from './readers.ts'

/** A part that is not whole yet. */
export const UNFINISHED = 'unfinished'
const PARTS_MAX = 999_999
export const nameOfPart = (number: number): string => `part-${String(number).padStart(6, '0')}`

export const addPart = async (options: ExportOptions, steps: ExportSteps): Promise<ExitCode> => {
  const { out } = options
  if (await makeDirectory(out, steps.say)) await syncDirectory(dirname(out))
  if ([MANIFEST_FILE, BEGUN_FILE].some(name => existsSync(join(out, name)))) {
    throw new CommandError(`${out} has a whole export, and no parts: choose another directory, or leave out --add`)
  }
  const lock = await lockDirectory(out, steps)
  await using stack = new AsyncDisposableStack()
  stack.defer(lock.release)
  return await addLocked(options, steps, lock)
}

const addLocked = async (options: ExportOptions, steps: ExportSteps, lock: Lock): Promise<ExitCode> => {
  const { org, out, json } = options
  const key = await readSigningKey(options.sign)
  const former = await readParts(key, options)
  const named = await readJson<LastPart>(join(out, LAST_PART_FILE))
  assertNoneLost(former, named, out)
  const texts = await textsNow(options, steps)
  const [last, directory] = [former.at(-1), join(out, UNFINISHED)]
  await assertNoLink(directory)
  const finished = await readJson<Manifest>(join(directory, MANIFEST_FILE))
  const begun = (await readJson<Manifest>(join(directory, BEGUN_FILE))) ?? finished
  const asOf = options.asOf ?? (begun?.as_of ? momentOfChange(begun.as_of) : undefined)
  const end = await endOf(org, asOf, steps)
  const order = last && (await compareWith(last, end, options, steps))
  // Also a part that an interrupted run finished and did not add.
  const parts = finished ? [...former, { directory, manifest: finished }] : former
  if (parts.length > 0 && named?.texts !== texts) await assertNobodyForgottenSince(parts, options, steps)
  if (last) {
    // The run that added the part may have been killed before it named it. A further part would hide that.
    await nameLast(last, texts, out)
    if (order === 'nothing since') {
      if (json) steps.out(`${JSON.stringify(last.manifest, null, 2)}\n`)
      else steps.say(`${out} has everything as of ${end.id} already, and its files are unchanged`)
      return exitCodes.done
    }
  }
  const inside = { ...options, key, out: directory, asOf: momentOfChange(end.id), former }
  const code = await exportOrganization(inside, steps)
  if (code !== exitCodes.done) return code
  const name = nameOfPart(former.length + 1)
  await lock.assertHeld()
  // Of a run that was killed at its end.
  for (const left of await readdir(directory)) {
    if (isLockFile(left)) await rm(join(directory, left), { force: true })
  }
  const manifest: Manifest = JSON.parse(await readFile(join(directory, MANIFEST_FILE), 'utf8'))
  await rename(directory, join(out, name))
  await syncDirectory(out)
  await nameLast({ directory: join(out, name), manifest }, texts, out)
  steps.say(`${out} has ${former.length + 1} parts; the last one is ${name}`)
  return exitCodes.done
}

/**
 * The last part when it was added. Parts after it are of a run that was killed before it named the last one. `texts`:
 * see `textsNow`. Absent in copies of earlier versions.
 */
type LastPart = { readonly part: string } & PartBegin & { readonly texts?: string }

const nameLast = async (last: FormerPart, texts: string, out: string): Promise<void> => {
  const named: LastPart = { part: basename(last.directory), ...beginAfter(last), texts }
  const text = `${JSON.stringify(named, null, 2)}\n`
  const file = join(out, LAST_PART_FILE)
  if ((await readIfThere(file))?.toString('utf8') !== text) await writeWhole(file, text, AS_USUAL)
}

/** @throws CommandError for a copy that lost its last parts, or that has others in their place */
const assertNoneLost = (parts: readonly FormerPart[], named: LastPart | undefined, out: string): void => {
  // The run that added the first part was killed before it named it.
  if (named === undefined && parts.length <= 1) return
  if (named === undefined) {
    throw new CommandError(
      `${out}: its ${LAST_PART_FILE} is lost, so nobody knows the last part: export into an empty directory`,
    )
  }
  const found = parts.find(({ directory }) => basename(directory) === named.part)
  if (found === undefined) throw new CommandError(`${out}: ${named.part} is lost: bring it back, or export anew`)
  if (found.manifest.digest === named.digest && found.manifest.as_of === named.as_of) return
  throw new CommandError(
    `${found.directory} is not the part that ${LAST_PART_FILE} names: export into an empty directory`,
  )
}

/**
 * Identifies what texts about people rest on: the generation, because a redaction needs another one, and the erasures,
 * if texts are opened. The parts have the texts of now if it is the same as when they were last compared.
 */
const textsNow = async ({ org, open = false }: ExportOptions, steps: ExportSteps): Promise<string> => {
  const { position } = await steps.readTotals(org, undefined)
  const receipts = open ? await steps.readReceipts() : []
  return createHash('sha256')
    .update(JSON.stringify([position.generation.id, receipts]))
    .digest('hex')
}

/** People that a message names. */
const PEOPLE_NAMED = 20

/** @throws CommandError that names people about whom the parts have other texts than an export would have now */
const assertNobodyForgottenSince = async (
  parts: readonly FormerPart[],
  options: ExportOptions,
  steps: ExportSteps,
): Promise<void> => {
  const { org, out, open = false } = options
  steps.say('somebody may have been forgotten: all texts about people are compared')
  const people = new Set<string>()
  for (const { directory, manifest } of parts) {
    const exported = { org, begin: manifest.after, change: manifest.as_of }
    for await (const { before, now } of otherRecords(
      personalKinds,
      directory,
      exported,
      open ? openedPages(steps) : steps,
    )) {
      const { id, rep_id = id }: { id?: string; rep_id?: string } = JSON.parse(String(before ?? now))
      people.add(String(rep_id))
      if (people.size > PEOPLE_NAMED) break
    }
  }
  if (people.size === 0) return
  const [named, more] = [[...people].slice(0, PEOPLE_NAMED), people.size > PEOPLE_NAMED ? ' and more' : '']
  throw new CommandError(
    [
      `${out} has texts about people who were forgotten since: ${named.join(', ')}${more}.`,
      `Make a copy anew: ${commandOf(options)}; then delete ${out}, its backups, and tables that were made of it`,
    ].join(' '),
  )
}

/** The command that begins this copy in another directory. */
const commandOf = ({ org, generation, parquet, csv = false, open = false, sign }: ExportOptions): string =>
  [
    `npx commission projection export --org ${org} --out DIR --add`,
    ...(generation === undefined ? [] : [`--generation ${generation}`]),
    ...(parquet ? ['--parquet'] : []),
    ...(csv ? ['--csv'] : []),
    ...(open ? ['--open'] : []),
    ...(sign === undefined ? [] : [`--sign ${sign}`]),
  ].join(' ')

/** A link may point to another place tomorrow, so nothing is written through it. */
const assertNoLink = async (directory: string): Promise<void> => {
  const found = await lstat(directory).catch(() => undefined)
  if (found === undefined || found.isDirectory()) return
  throw new CommandError(
    `${directory}: expected a directory, got a ${found.isSymbolicLink() ? 'link' : 'file'}: remove it`,
  )
}

type End = { readonly id: string; readonly seq: number }

const endOf = async (org: string, asOf: Moment | undefined, steps: ExportSteps): Promise<End> => {
  const { last } = await steps.readTotals(org, asOf)
  if (last) return last
  await refuseUnknown(org, steps)
  throw new CommandError('--as-of: nothing was recorded then, so there is nothing to export')
}

/** @throws CommandError if the copy is of later, or of other rules */
const compareWith = async (
  { manifest: { as_of, rules_version, sandbox } }: FormerPart,
  end: End,
  { org, generation, out }: ExportOptions,
  steps: ExportSteps,
): Promise<'nothing since' | 'something since'> => {
  const { position } = await steps.readTotals(org, undefined)
  const now = await steps.sourceOf(position.generation.name, org)
  if (now.rules_version !== rules_version) {
    throw new CommandError(
      `${out} was exported under rules ${rules_version}, and rules ${now.rules_version} are in force: export into an empty directory`,
    )
  }
  if (JSON.stringify(now.sandbox) !== JSON.stringify(sandbox)) {
    throw new CommandError(`${out} has an export of another ${generation}: export into an empty directory`)
  }
  if (as_of === end.id) return 'nothing since'
  const before = await steps.readTotals(org, momentOfChange(as_of ?? '')).catch(error => {
    if (!(error instanceof CommandError && error.message.startsWith('--as-of'))) throw error
    throw new CommandError(`${out} ends with the change ${as_of}, which is not there: export into an empty directory`)
  })
  if ((before.last?.seq ?? 0) < end.seq) return 'something since'
  throw new CommandError(`--as-of: expected a change after ${as_of}, with which ${out} ends`)
}

/** Reads the parts in order. @throws CommandError for a copy that this export cannot continue */
const readParts = async (key: SigningKey | undefined, options: ExportOptions): Promise<FormerPart[]> => {
  const { org, out, generation, parquet, csv = false, open = false } = options
  const names = (await readdir(out)).filter(name => name.startsWith('part-')).sort()
  const parts: FormerPart[] = []
  for (const name of names) {
    const expected = nameOfPart(parts.length + 1)
    if (name !== expected || parts.length >= PARTS_MAX) {
      throw new CommandError(`${out}: expected ${expected}, got ${name}: a part is lost, or is of something else`)
    }
    const directory = join(out, name)
    await assertNoLink(directory)
    const manifest = await readJson<Manifest>(join(directory, MANIFEST_FILE))
    if (manifest === undefined)
      throw new CommandError(`${directory}: its ${MANIFEST_FILE} is lost: export into an empty directory`)
    const of = { organization: org, generation, ...(open && { opened: open }) }
    const why = whyNoPart(manifest, parts.at(-1)?.manifest, of)
    if (why !== undefined) throw new CommandError(`${directory} is ${why}: choose another directory`)
    await assertIntact(namedIn(manifest), directory).catch(error => {
      throw error instanceof CommandError ? new CommandError(`${directory}: ${error.message}`) : error
    })
    // A query that reads `part-*/*.parquet` would leave out a part without tables, without a word.
    const tables = Object.keys(manifest.tables ?? {})
    for (const [ending, asked] of [
      ['parquet', parquet],
      ['csv', csv],
    ] as const) {
      if (tables.some(table => table.endsWith(`.${ending}`)) === asked) continue
      throw new CommandError(
        `${directory} has ${asked ? 'no ' : ''}tables of ${ending}: ${asked ? 'leave out' : 'say'} --${ending}`,
      )
    }
    if (key) await assertAsSigned(directory, key)
    if (key) await assertNoLinks(namedIn(manifest), directory)
    if (existsSync(join(directory, NOTE_FILE)) !== (key !== undefined)) {
      throw new CommandError(`${directory} is ${key ? 'not ' : ''}signed: ${key ? 'leave out' : 'say'} --sign`)
    }
    parts.push({ directory, manifest })
  }
  return parts
}
