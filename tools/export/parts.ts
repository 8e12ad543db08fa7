/**
 * The parts of a copy that grows: the first part has all records, each later one the records of the changes since. In:
 * the changes after the former part. Out: the lines of a part, and what all parts have together. Promises: a payout
 * counts once, and only if no later one replaced it.
 */
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { changeNameOf, type Moment, momentOf, type Page, textOfListed } from '../../core/reading/index.ts'
import { listTraits } from '../../schemas/lists.ts'
import { type Sums as Adding, addTo, textOfSums } from '../../schemas/money.ts'
import { type ListKind, listKinds } from '../../schemas/stored/documents.ts'
import { CommandError } from '../failures.ts'
import { EXPORT_PAGE } from '../limits.ts'
import { createProgressLine } from '../terminal.ts'
import { linesOf, type OtherLine, openLines, otherLines } from './lines.ts'
import type { Lock } from './lock.ts'
import type { FileDescription, Manifest } from './manifest.ts'
import { type ExportReaders, listedRecords } from './readers.ts'

/** Where a part begins. `as_of`: the last change of the part before it. `digest`: that of its manifest. */
export type PartBegin = { readonly as_of: string; readonly digest: string }
export type FormerPart = { readonly directory: string; readonly manifest: Manifest }
/** Of a whole copy, as of one change. */
type Counted = {
  readonly owed: Manifest['owed']
  readonly paid: Manifest['paid']
  readonly records: Readonly<Record<string, number>>
}

export const beginAfter = ({ manifest: { as_of, digest } }: FormerPart): PartBegin => {
  if (as_of === null) throw new CommandError('the part before has no change: export into an empty directory')
  return { as_of, digest }
}

/**
 * Why a part is of another copy, or does not continue the part before it; undefined if it does.
 * @param before the manifest of that part; undefined for the first part
 * @param of the copy
 */
export const whyNoPart = (
  manifest: Manifest,
  before: Manifest | undefined,
  of: { readonly [field in 'organization' | 'generation' | 'opened']?: Manifest[field] | undefined },
): string | undefined => {
  if (manifest.organization !== of.organization) return `of ${manifest.organization}`
  if (manifest.generation !== of.generation) return `of ${manifest.generation ?? 'the live generation'}`
  if (manifest.opened !== of.opened) return `with ${manifest.opened ? 'opened' : 'sealed'} texts`
  // A manifest that nobody signed may have null here.
  const after = manifest.after ?? undefined
  if (before === undefined) return after && 'a later part of a copy, in place of the first one'
  const madeBy = ({ rules_version, sandbox }: Manifest): string => JSON.stringify([rules_version, sandbox])
  if (madeBy(manifest) !== madeBy(before)) return 'of other rules, or of another sandbox, than the part before it'
  const isNext = after !== undefined && after.as_of === before.as_of && after.digest === before.digest
  return isNext ? undefined : 'not the continuation of the part before it'
}

type ChangeMoment = Extract<Moment, { kind: 'change' }>

/** @throws CommandError for an id that no change has */
export const momentOfChange = (id: string): ChangeMoment => {
  const moment = momentOf(id)
  if (moment?.kind !== 'change') throw new CommandError('a manifest has an as_of that is no change')
  return moment
}

type Since = {
  readonly org: string
  readonly begin: PartBegin
  readonly asOf: Moment
  readonly readPage: ExportReaders['readList']
}

/** Yields the changes after the begin of a part, in order, page by page. */
async function* changesSince({ org, begin, asOf, readPage }: Since): AsyncGenerator<Page['hits']> {
  let startingAfter = momentOfChange(begin.as_of).name
  for (let more = true; more; ) {
    const page = await readPage(org, 'changes', { limit: EXPORT_PAGE, startingAfter, asOf })
    const last = page.hits.at(-1)
    if (last) startingAfter = changeNameOf(last)
    more = page.hasMore
    yield page.hits
  }
}

/** Returns the records of one kind among changes, as they are exported. */
const recordsAmong = (hits: Page['hits'], kind: ListKind): Buffer[] =>
  hits.filter(hit => hit.kind === kind).map(hit => textOfListed(kind, hit))

/** The kinds of records with texts about people. */
export const personalKinds = listKinds.filter(kind => listTraits[kind].isPersonal)
export const exportedFile = (kind: ListKind): string => `${kind}.ndjson`

/** An export or a part, up to a change. */
type Exported = { readonly org: string; readonly begin: PartBegin | undefined; readonly change: string | null }

/** Yields the records of these kinds, as an export would have them now, in the order of its files. */
async function* recordsNow(
  kinds: readonly ListKind[],
  { org, begin, change }: Exported,
  { readList }: Pick<ExportReaders, 'readList'>,
) {
  if (begin) {
    const since = { org, begin, asOf: momentOfChange(change ?? ''), readPage: readList }
    for await (const hits of changesSince(since)) {
      for (const kind of kinds) yield { file: exportedFile(kind), lines: recordsAmong(hits, kind) }
    }
  } else {
    for (const kind of kinds) {
      for await (const lines of listedRecords(kind, undefined, org, change, { readList })) {
        yield { file: exportedFile(kind), lines }
      }
    }
  }
}

/** Yields the records of these kinds that an export has otherwise than it would have them now. */
export const otherRecords = (
  kinds: readonly ListKind[],
  directory: string,
  exported: Exported,
  pages: Pick<ExportReaders, 'readList'>,
): AsyncGenerator<OtherLine> => otherLines(directory, kinds.map(exportedFile), recordsNow(kinds, exported, pages))

type SinceSteps = Parameters<typeof createProgressLine>[0] & {
  readonly say: (line: string) => void
  readonly now: () => number
  readonly signal: AbortSignal
}

/**
 * Writes the records whose change comes after the begin, in the order of the changes: a file for each kind, and each
 * change is read once. Lines of a run that was stopped stay; it can have been stopped between two files.
 */
export const writeSince = async (
  since: Since,
  out: string,
  steps: SinceSteps,
  lock: Pick<Lock, 'assertHeld'>,
): Promise<void> => {
  const fileOf = (kind: ListKind): string => join(out, exportedFile(kind))
  const open = []
  {
    await using stack = new AsyncDisposableStack()
    for (const kind of listKinds.filter(kind => !existsSync(fileOf(kind)))) {
      const partial = await openLines(`${fileOf(kind)}.partial`)
      stack.defer(partial.close)
      open.push({ kind, partial, written: partial.lines, count: 0 })
    }
    if (open.length === 0) return
    const showProgress = createProgressLine(steps, steps.now)
    let changes = 0
    for await (const hits of changesSince(since)) {
      changes += hits.length
      await lock.assertHeld()
      for (const file of open) {
        const texts = recordsAmong(hits, file.kind)
        await file.partial.append(texts.slice(Math.max(0, file.written - file.count)))
        file.count += texts.length
      }
      showProgress(`changes: ${changes}`)
      steps.signal.throwIfAborted()
    }
  }
  for (const { kind, count } of open) {
    await rename(`${fileOf(kind)}.partial`, fileOf(kind))
    steps.say(`${kind}: ${count}`)
  }
}

/** Adds up what the parts have together as of the last of them, which is described beside its directory. */
export const countParts = async (
  former: readonly FormerPart[],
  directory: string,
  described: Readonly<Record<string, FileDescription>>,
  signal: AbortSignal,
): Promise<Counted> => {
  const before = former.map(part => ({ directory: part.directory, files: part.manifest.files }))
  const parts = [...before, { directory, files: described }]
  async function* recordsIn(name: string): AsyncGenerator<Record<string, string>> {
    for (const part of parts) {
      for await (const line of linesOf(join(part.directory, `${name}.ndjson`))) {
        signal.throwIfAborted()
        yield JSON.parse(line.toString())
      }
    }
  }
  const idsIn = async (name: string): Promise<number> => {
    const ids = new Set<string | undefined>()
    for await (const { id } of recordsIn(name)) ids.add(id)
    return ids.size
  }
  const replaced = new Set<string | undefined>()
  for await (const { supersedes_id } of recordsIn('payouts')) replaced.add(supersedes_id)
  const owed: Adding = new Map()
  const paid: Adding = new Map()
  let [payouts, payroll_files] = [0, 0]
  for await (const { id, currency = '', net_amount = '' } of recordsIn('payouts')) {
    if (replaced.has(id)) continue
    payouts++
    addTo(owed, currency, net_amount)
  }
  for await (const { currency = '', amount = '' } of recordsIn('payroll_files')) {
    payroll_files++
    addTo(paid, currency, amount)
  }
  const hasStatements = parts.every(({ files }) => files.statements?.records === files.payouts?.records)
  return {
    owed: textOfSums(owed),
    paid: textOfSums(paid),
    records: {
      reps: await idsIn('reps'),
      periods: await idsIn('periods'),
      payouts,
      statements: hasStatements ? payouts : -1,
      payroll_files,
    },
  }
}
