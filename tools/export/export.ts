/**
 * `commission projection export`: writes an organization as of one moment to files: a line of JSON for each record, as
 * the API answers it, and a manifest. Promises: the same moment gives the same bytes; the files add up to the totals of
 * the projection. An export can be stopped at any time; the same command continues at the end of the files.
 */
import { existsSync } from 'node:fs'
import { readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { GenerationBody } from '../../core/log/index.ts'
import type { Moment, OpenRecords, TotalsRead } from '../../core/reading/index.ts'
import type { SigningKey } from '../../core/runtime/index.ts'
import type { Totals } from '../../schemas/resources.ts'
import { type ListKind, listKinds } from '../../schemas/stored/documents.ts'
import { instantOf } from '../../schemas/values.ts'
import { CommandError, type ExitCode, exitCodes, isAbort, messageOf } from '../failures.ts'
import { MANIFEST_FILE, NOTE_FILE, signFolder } from '../signing/sign-manifest.ts'
import { readSigningKey } from '../signing/signing-key.ts'
import { createProgressLine } from '../terminal.ts'
import { makeDirectory, syncDirectory, syncFiles } from '../whole-file.ts'
import { writeCsv } from './csv.ts'
import { linesOf, openLines } from './lines.ts'
import { type Lock, type LockSteps, lockDirectory } from './lock.ts'
import {
  assertAsSigned,
  assertDescribes,
  assertIntact,
  assertNoLinks,
  type Begun,
  describeFiles,
  describeTables,
  type Manifest,
  type ManifestSource,
  namedIn,
  readJson,
  refuseUnknownShard,
  sumsOf,
  writeJson,
} from './manifest.ts'
import {
  beginAfter,
  countParts,
  exportedFile,
  type FormerPart,
  momentOfChange,
  otherRecords,
  personalKinds,
  writeSince,
} from './parts.ts'
import {
  asOfChange,
  copyRead,
  type ExportReaders,
  listedRecords,
  openedPages,
  refuseUnknown,
  withEachPosition,
} from './readers.ts'
import { namesOfTables, writeTables } from './tables.ts'

export type ExportOptions = {
  readonly org: string
  /** A generation, or `sandbox:NAME`. By default the live generation. */
  readonly generation?: string | undefined
  /** By default the last change. */
  readonly asOf: Moment | undefined
  readonly out: string
  readonly parquet: boolean
  readonly csv?: boolean
  /** Opens sealed texts with the keys of SEAL_KEYS_DIR. Otherwise they stay as they were published. */
  readonly open?: boolean
  /** File of the key that signs the manifest, and the key if it was read: a pipe can be read once. */
  readonly sign?: string | undefined
  readonly key?: SigningKey | undefined
  readonly json: boolean
  /** Of a copy that grows: the parts before this one. Then only what changed since is written. */
  readonly former?: readonly FormerPart[]
}

export type ExportSteps = ExportReaders &
  LockSteps & {
    readonly out: (text: string) => void
    /** The generation that was named; absent of the live one. */
    readonly identity?: GenerationBody
    readonly draw: ((line: string) => void) | undefined
    readonly signal: AbortSignal
    /** Begins a reading that opens sealed texts, with keys that it reads itself; refuses if there are no keys. */
    readonly openRecords?: () => OpenRecords
    /** The names of the receipts of all erasures. */
    readonly readReceipts: () => Promise<readonly string[]>
    /** Source of an organization's records, and the version of the rules. */
    readonly sourceOf: (generation: string, org: string) => Promise<ManifestSource>
  }

/** In the order of writing: statements are read by the ids in the file of payouts. */
const exportedResources = ['reps', 'periods', 'payouts', 'statements', 'payroll_files'] as const
type ExportedResource = (typeof exportedResources)[number]
const fileOf = (resource: ExportedResource): string => `${resource}.ndjson`
/** Of an export that is not finished. */
export const BEGUN_FILE = 'manifest.partial.json'
/** Of a copy that grows, beside its parts. */
export const LAST_PART_FILE = 'last-part.json'

export const exportOrganization = async (options: ExportOptions, steps: ExportSteps): Promise<ExitCode> => {
  const { out, former } = options
  const key = options.key ?? (await readSigningKey(options.sign))
  const isRead = !options.parquet && !options.csv && key === undefined
  try {
    if (await makeDirectory(out, former ? undefined : steps.say)) await syncDirectory(dirname(out))
    // A finished export is only read: its directory may be read-only.
    if (isRead && existsSync(join(out, MANIFEST_FILE)) && !existsSync(join(out, BEGUN_FILE))) {
      return await exportLocked(options, steps, { assertHeld: async () => undefined }, key)
    }
    const lock = await lockDirectory(out, steps)
    await using stack = new AsyncDisposableStack()
    stack.defer(lock.release)
    return await exportLocked(options, steps, lock, key)
  } catch (error) {
    if (!steps.signal.aborted) throw error
    if (!isAbort(error, steps.signal)) steps.say(messageOf(error))
    steps.say('stopped; the same command continues')
    return exitCodes.failed
  }
}

const exportLocked = async (
  options: ExportOptions,
  steps: ExportSteps,
  lock: Pick<Lock, 'assertHeld'>,
  key: SigningKey | undefined,
): Promise<ExitCode> => {
  const { org, generation, out, parquet, csv = false, json, open = false } = options
  const { say } = steps
  if (existsSync(join(out, LAST_PART_FILE))) {
    throw new CommandError(`${out} has a copy in parts: say --add, or choose another directory`)
  }
  const begun = await readJson<Begun>(join(out, BEGUN_FILE))
  const done = await readJson<Manifest>(join(out, MANIFEST_FILE))
  const before = begun ?? done
  if (before && before.organization !== org) {
    throw new CommandError(`${out} has an export of ${before.organization}: choose another directory`)
  }
  if (before && before.generation !== generation) {
    throw new CommandError(
      `${out} has an export of ${before.generation ?? 'the live generation'}: choose another directory`,
    )
  }
  if (before && (before.opened ?? false) !== open) {
    const how = before.opened ? 'opened texts: say --open' : 'sealed texts: leave out --open'
    throw new CommandError(`${out} has an export with ${how}, or choose another directory`)
  }
  if ((parquet || csv) && key === undefined && existsSync(join(out, NOTE_FILE))) {
    throw new CommandError(`${out} is signed, and its tables would not be: say --sign too`)
  }
  if (before && JSON.stringify(before.after) !== JSON.stringify(beginOfPart(options))) {
    throw new CommandError(
      `${out} has ${before.after ? 'a part of a copy' : 'a whole export'}: say --add as before, or choose another directory`,
    )
  }
  // Files without a manifest: their organization and moment are unknown.
  const stray = before
    ? undefined
    : exportedResources
        .map(fileOf)
        .find(name => existsSync(join(out, name)) || existsSync(join(out, `${name}.partial`)))
  if (stray !== undefined) {
    throw new CommandError(`${out} has a ${stray} that belongs to no export: choose another directory`)
  }
  // An export that was begun without a moment continues with its first moment.
  const asOf = options.asOf ?? (begun ? asOfChange(begun.as_of) : undefined)
  const read = await steps.readTotals(org, asOf)
  const { totals, last } = read
  if (!last) await refuseUnknown(org, steps)
  if (before && before.as_of !== totals.last_change_id) {
    throw new CommandError(`${out} has an export as of ${before.as_of}: choose another directory, or say --as-of`)
  }
  const asked = namesOfTables({ parquet, csv })
  // Before a signature also the tables that are there: nothing else compares a table with its records.
  const isThere = (ending: string) =>
    namesOfTables({ parquet: true, csv: true }).some(name => name.endsWith(ending) && existsSync(join(out, name)))
  const signs = key !== undefined
  const made = { parquet: parquet || (signs && isThere('.parquet')), csv: csv || (signs && isThere('.csv')) }
  const source = await steps.sourceOf(read.position.generation.name, org)
  refuseUnknownShard(source, options, steps)
  if (before && JSON.stringify(before.sandbox) !== JSON.stringify(source.sandbox)) {
    throw new CommandError(`${out} has an export of another ${generation}: choose another directory`)
  }
  if (done) {
    if (key) await assertAsSigned(out, key, asked)
    const named = namedIn(done, namesOfTables(made))
    if (key) await assertNoLinks(namedIn(done, asked), out)
    const described = key && (await describeFiles(exportedResources, out, steps.signal))
    const sums = described && (await assertWhole(described, read, options, steps))
    await assertIntact(named, out, described?.files)
    if (sums) assertDescribes(done, { ...described, ...sums }, out)
    say(`${out} has this export already, and its files are unchanged`)
  } else await writeAll(read, source, begun, options, steps, lock)
  // Remains if the process was killed after it wrote the manifest.
  await rm(join(out, BEGUN_FILE), { force: true })
  const tables = [
    ...(made.parquet ? await writeTables(out, say, steps.signal, undefined, options.former?.[0]?.directory) : []),
    ...(made.csv ? await writeCsv(out, say, steps.signal) : []),
  ]
  if (tables.length > 0) await nameTables(tables, out, lock)
  if (key) await signFolder(out, key)
  const manifest = await readFile(join(out, MANIFEST_FILE), 'utf8')
  if (json) steps.out(manifest)
  else say(`exported ${org} as of ${totals.last_change_id ?? 'the beginning'} into ${out}`)
  return exitCodes.done
}

/** Adds the tables to the manifest, beside those that it names already. */
const nameTables = async (names: readonly string[], out: string, lock: Pick<Lock, 'assertHeld'>): Promise<void> => {
  const file = join(out, MANIFEST_FILE)
  const manifest = await readJson<Manifest>(file)
  if (manifest === undefined) throw new CommandError(`${file} was removed meanwhile`)
  const all = Object.entries({ ...manifest.tables, ...(await describeTables(names, out)) })
  const tables = Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)))
  await syncFiles(out, names)
  await lock.assertHeld()
  await writeJson(file, { ...manifest, tables } satisfies Manifest)
}

const writeAll = async (
  { totals, position, last }: TotalsRead,
  source: ManifestSource,
  begun: Begun | undefined,
  options: ExportOptions,
  given: ExportSteps,
  lock: Pick<Lock, 'assertHeld'>,
): Promise<void> => {
  const { org, generation, out, open = false } = options
  if (begun && begun.rules_version !== source.rules_version) {
    throw new CommandError(`${out} was begun under other rules: choose another directory`)
  }
  const { rules_version, sandbox } = source
  const copies = new Set<string>()
  const noteCopy = (read: TotalsRead['position']): void => {
    copies.add(copyRead(read))
    if (read.generation.rules === rules_version) return
    throw new CommandError('other rules were made live meanwhile: export into an empty directory')
  }
  const steps = { ...given, ...withEachPosition(given, noteCopy) }
  const as_of = totals.last_change_id
  const begin = beginOfPart(options)
  const read_from = begun ? begun.read_from : copyRead(position)
  await writeJson(join(out, BEGUN_FILE), {
    organization: org,
    as_of,
    rules_version,
    ...(read_from !== undefined && { read_from }),
    ...(generation !== undefined && { generation }),
    ...(sandbox && { sandbox }),
    ...(open && { opened: true }),
    ...(begin && { after: begin }),
  } satisfies Begun)
  if (begin) {
    const { readList: readPage } = open ? openedPages(steps) : steps
    await writeSince({ org, begin, asOf: momentOfChange(as_of ?? ''), readPage }, out, steps, lock)
  }
  for (const resource of exportedResources) await write(resource, totals, options, steps, lock)
  const files = await describeFiles(exportedResources, out, steps.signal)
  // Read again: another generation may have become live meanwhile.
  const after = await steps.readTotals(org, asOfChange(as_of))
  const sums = await assertWhole(files, { totals, last, position: after.position }, options, steps)
  // Again, since the look at a large copy takes long.
  const { generation: live } = (await steps.readTotals(org, asOfChange(as_of))).position
  refuseUnknownShard(await steps.sourceOf(live.name, org), options, steps)
  const isOfOneCopy = [...copies].every(copy => copy === read_from)
  if (open || !isOfOneCopy) await assertUnchanged(isOfOneCopy ? personalKinds : listKinds, as_of, options, steps)
  const manifest: Manifest = {
    organization: org,
    as_of,
    published_at: last ? instantOf(last.at) : null,
    position: { topic: source.topic, partition: source.partition, offset: last ? last.seq + 1 : 0 },
    rules_version,
    ...(generation !== undefined && { generation }),
    ...(sandbox && { sandbox }),
    ...(open && { opened: true }),
    ...(begin && { after: begin }),
    ...sums,
    files: files.files,
    digest: files.digest,
  }
  // On disk before the manifest says that it is there.
  await syncFiles(out, exportedResources.map(fileOf))
  await lock.assertHeld()
  await writeJson(join(out, MANIFEST_FILE), manifest)
}

const beginOfPart = ({ former = [] }: ExportOptions) => former.map(beginAfter).at(-1)

const write = async (
  resource: ExportedResource,
  totals: Totals,
  options: ExportOptions,
  steps: ExportSteps,
  lock: Pick<Lock, 'assertHeld'>,
): Promise<void> => {
  const { org, out, open = false } = options
  const file = join(out, fileOf(resource))
  if (existsSync(file)) return
  const partial = await openLines(`${file}.partial`)
  let count = partial.lines
  const showProgress = createProgressLine(steps, steps.now)
  {
    await using stack = new AsyncDisposableStack()
    stack.defer(partial.close)
    const pages = open ? openedPages(steps) : steps
    for await (const texts of resource === 'statements'
      ? statements(partial.lines, org, out, totals, steps)
      : listedRecords(resource, idIn(partial.last), org, totals.last_change_id, pages)) {
      await lock.assertHeld()
      await partial.append(texts)
      count += texts.length
      showProgress(`${resource}: ${count}`)
      steps.signal.throwIfAborted()
    }
  }
  await rename(`${file}.partial`, file)
  steps.say(`${resource}: ${count}`)
}

const idIn = (line: Buffer | undefined): string | undefined => line && JSON.parse(line.toString()).id

/** Yields the statements of the payouts in the finished file, without those already written. */
async function* statements(
  written: number,
  org: string,
  out: string,
  { last_change_id }: Totals,
  { readStatement }: ExportSteps,
): AsyncGenerator<Buffer[]> {
  const asOf = asOfChange(last_change_id)
  const read = async (id: string): Promise<Buffer> => (await readStatement(org, id, asOf)).text
  let index = 0
  let ids: string[] = []
  for await (const line of linesOf(join(out, fileOf('payouts')))) {
    if (index++ < written) continue
    ids.push(idIn(line) ?? '')
    if (ids.length < STATEMENTS_AT_ONCE) continue
    yield await Promise.all(ids.map(read))
    ids = []
  }
  if (ids.length > 0) yield await Promise.all(ids.map(read))
}

const STATEMENTS_AT_ONCE = 8

/**
 * Compares the files, together with the parts before them, with the totals and counts of the projection. Each payout
 * must have its statement. Returns the sums.
 */
const assertWhole = async (
  { files, sums }: Awaited<ReturnType<typeof describeFiles>>,
  { totals: { totals }, last, position }: TotalsRead,
  { org, out, former }: ExportOptions,
  steps: ExportSteps,
): Promise<Pick<Manifest, 'owed' | 'paid'>> => {
  const parts = former && (await countParts(former, out, files, steps.signal))
  const { owed, paid } = parts ?? sums
  const countOf = (kind: 'reps' | 'periods') => (last ? steps.countOf(org, kind, position) : 0)
  const [reps, periods] = [await countOf('reps'), await countOf('periods')]
  const count = (what: 'owed_count' | 'paid_count') => totals.reduce((sum, row) => sum + row[what], 0)
  const [owing, paying] = [count('owed_count'), count('paid_count')]
  const found = [owed, paid, ...exportedResources.map(of => (parts ? parts.records[of] : files[of]?.records))]
  const expected = [sumsOf(totals, 'owed'), sumsOf(totals, 'paid'), reps, periods, owing, owing, paying]
  const same = JSON.stringify(found) === JSON.stringify(expected)
  if (!same)
    throw new CommandError('the files do not add up to the totals of the projection: export into an empty directory')
  return { owed, paid }
}

/**
 * Reads the records again, at least those with texts about people. Pages that were read before an erasure have its
 * texts, and so have those of a generation from before a redaction: no export may have them once this second reading
 * has begun. An erasure writes its receipt first: while there are more of them than before, the keys of this reading
 * may be of before, too.
 * An export may go on in another generation of the same rules, which has the same records as a rule. After a forced
 * swap it can have others.
 */
const assertUnchanged = async (
  kinds: readonly ListKind[],
  change: string | null,
  options: ExportOptions,
  steps: ExportSteps,
): Promise<void> => {
  const { org, out, open = false } = options
  const exported = { org, begin: beginOfPart(options), change }
  const receipts = async () => (open ? (await steps.readReceipts()).join() : '')
  let before: string
  let after = await receipts()
  do {
    before = after
    for await (const { file } of otherRecords(kinds, out, exported, open ? openedPages(steps) : steps)) {
      const what = personalKinds.map(exportedFile).includes(file) ? 'a text about a person' : 'a record'
      throw new CommandError(`${out}: ${what} changed meanwhile, in ${file}: delete this directory, and export again`)
    }
    after = await receipts()
  } while (after !== before)
}
