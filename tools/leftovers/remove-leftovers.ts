/**
 * Brings the documents of a generation back to its published positions. A projector that was killed between writing
 * and publishing has left documents of later offsets. While the same log goes on, the next projector finds them equal.
 * After a log was brought back, the records at these offsets may be others, or may never have been: then these
 * documents would become visible with the next records, and no log stands behind them.
 *
 * In: a generation that no projector writes. Out: its documents are those that a rebuild would have made up to the
 *   positions, with the same versions.
 * Promises: documents that only later offsets made are deleted; those that they touched get their earlier form back. An
 *   earlier form is stored in the shard of its document before that is deleted: a run that was interrupted can be
 *   repeated, and a snapshot of that time has the form, too. From before the first deletion to the end, the API refuses
 *   reads of the partition, and no projector opens it.
 *   The last written records are read before the documents, and must be the same afterwards: each batch changes them.
 * Can go wrong: somebody writes meanwhile (the command ends, and can be repeated); Elasticsearch remembers deleted
 *   versions for longer than FORGET_WAIT_MS (the same).
 */
import {
  type Coverage,
  type DocumentAnswer,
  documentPath,
  getEach,
  getFromPrimaries,
  ifVersion,
  type SearchAnswer,
} from '../../core/store/index.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  KEPT_FORMS,
  type KeptFormDocument,
  keptIdIn,
  type PositionDocument,
  positionId,
} from '../../schemas/stored/documents.ts'
import { type Address, type LayoutSource, layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import type { Fields } from '../documents/as-of.ts'
import { withRetries } from '../documents/read-retries.ts'
import { assertRefreshed, wholeAnswer } from '../documents/shards.ts'
import { CommandError } from '../failures.ts'
import {
  LEFTOVERS_HELD,
  LEFTOVERS_REMOVED_AT_ONCE,
  LEFTOVERS_SHOWN,
  PROGRESS_INTERVAL_MS,
  READERS_GONE_MS,
} from '../limits.ts'
import { CHANGED, carryOut, doneIfMissing, type Operation } from './carry-out.ts'
import { earlierForm } from './earlier-form.ts'
import { dropped, findLeftovers, type Leftover, type Searched } from './find-leftovers.ts'
import { forgetWritten, type ReadWritten, readWrittenVersions } from './written.ts'

type Steps = Pick<CommandContext, 'send' | 'prefix' | 'sleep' | 'say' | 'elapsed'>
type StoredPosition = DocumentAnswer<PositionDocument>

export type Removal = LayoutSource & {
  readonly partitions: number
  /**
   * Says for these positions, in order, the first offset of each partition whose documents go. Called when nobody
   * writes any more; before that only to look whether there are such documents. If an offset is before the position,
   * the partition stays marked, and the API does not serve it, until the caller sets the position back.
   */
  readonly from: (positions: readonly PositionDocument['body'][]) => Promise<readonly number[]>
  /** The log goes on: the last written record is forgotten only if its documents go. */
  readonly keepsWritten?: true
  /** Called after the last refusal, and before the first document goes. */
  readonly beforeRemoving?: () => Promise<void>
  /** Called if there is something to remove; afterwards it is looked for again. Absent: nobody writes any more. */
  readonly waitUntilNobodyWrites?: () => Promise<void>
}

/** The positions, and the first offset of each partition whose documents go. */
type Begin = { readonly positions: readonly StoredPosition[]; readonly from: readonly number[] }

/** @returns whether something was removed or put back */
export const removeLeftovers = async (removal: Removal, steps: Steps): Promise<boolean> => {
  const { generation, waitUntilNobodyWrites } = removal
  if (waitUntilNobodyWrites !== undefined) {
    if (!(await hasLeftovers(removal, steps))) return false
    steps.say(`${generation} has documents at or after its positions: they are removed when nobody writes`)
    await waitUntilNobodyWrites()
  }
  // Before the positions and the search: each batch that is written changes them.
  const written = await readWrittenVersions(removal, steps)
  const begin = await readBegin(removal, steps)
  // Before the first search: what is gone for the moment must not stay so. In restored indices no position says it.
  const hasPutBack = await putBackAll(removal, steps)
  const isInterrupted = begin.positions.some(isMarked) || hasPutBack
  const { partitions, held } = await findAll(removal, begin, steps)
  if (partitions.size === 0 && !isInterrupted) {
    await forget(removal, begin, written, steps)
    return false
  }
  await removal.beforeRemoving?.()
  const marked = await mark(removal, begin.positions, partitions, steps)
  if (partitions.size > 0) {
    await steps.sleep(READERS_GONE_MS)
    const report = await removeAll(removal, begin, held, steps)
    await putBackAll(removal, steps)
    await refresh(layoutOf(steps.prefix, removal).indices.join(), steps)
    for (const line of linesOf(generation, report)) steps.say(line)
  }
  await forget(removal, begin, written, steps)
  await unmark(removal, { positions: marked, from: begin.from }, steps)
  return true
}

/**
 * Removes the balances from these positions on. They are made again when all records before them are there: while some
 * were missing, a projector can have counted the others.
 * @returns whether there were any
 */
export const removeBalances = async (source: LayoutSource, from: readonly number[], steps: Steps): Promise<boolean> => {
  const layout = layoutOf(steps.prefix, source)
  if (!layout.hasBalances) return false
  const index = layout.indexOf('balances')
  let hasAny = false
  for await (const { found } of findLeftovers(
    { layout: { ...layout, indices: [index] }, isOfKeys: false },
    from,
    steps,
  )) {
    await carryOut(found.map(deletionOf), steps)
    hasAny ||= found.length > 0
  }
  if (hasAny) await refresh(index, steps)
  return hasAny
}

/** The indices of a generation. Documents of API keys are in one partition. */
const searchedOf = (removal: Removal, { prefix }: Steps): Searched => ({
  layout: layoutOf(prefix, removal),
  isOfKeys: removal.generation === API_KEYS_GENERATION,
})

/** All documents that later events have made or touched, some at a time; none with what an interrupted run has kept. */
async function* find(removal: Removal, { from }: Begin, steps: Steps): AsyncGenerator<readonly Leftover[]> {
  let seen = 0
  let saidAt = steps.elapsed()
  for await (const page of findLeftovers(searchedOf(removal, steps), from, steps)) {
    seen += page.seen
    if (steps.elapsed() - saidAt >= PROGRESS_INTERVAL_MS) {
      steps.say(`${removal.generation}: looked at ${seen} documents`)
      saidAt = steps.elapsed()
    }
    if (page.found.length > 0 || page.isKept) yield page.found
  }
}

/**
 * Whether something is to remove or to forget, or an interrupted removal is to finish. Under a projector there nearly
 * always is.
 */
export const hasLeftovers = async (removal: Omit<Removal, 'waitUntilNobodyWrites'>, steps: Steps): Promise<boolean> => {
  const begin = await readBegin(removal, steps)
  if (begin.positions.some(isMarked)) return true
  const written = await readWrittenVersions(removal, steps)
  if (written.some((one, partition) => one && !isKept(removal, begin, one.last, partition))) return true
  for await (const _ of find(removal, begin, steps)) return true
  return false
}

/** Returns the partitions that have leftovers, and the leftovers, if they are few enough. */
const findAll = async (
  removal: Removal,
  begin: Begin,
  steps: Steps,
): Promise<{ readonly partitions: ReadonlySet<number>; readonly held: readonly Leftover[] | undefined }> => {
  const partitions = new Set<number>()
  const held: Leftover[] = []
  let isTooMany = false
  for await (const found of find(removal, begin, steps)) {
    for (const { partition } of found) partitions.add(partition)
    isTooMany ||= held.length + found.length > LEFTOVERS_HELD
    if (!isTooMany) held.push(...found)
  }
  return { partitions, held: isTooMany ? undefined : held }
}

type Report = { removed: number; earlier: number; readonly shown: string[]; readonly valid: string[] }

const removeAll = async (
  removal: Removal,
  begin: Begin,
  held: readonly Leftover[] | undefined,
  steps: Steps,
): Promise<Report> => {
  const report: Report = { removed: 0, earlier: 0, shown: [], valid: [] }
  const fromOf = (partition: number): number => begin.from[partition] ?? 0
  for await (const found of held ? [held] : find(removal, begin, steps)) {
    for (let at = 0; at < found.length; at += LEFTOVERS_REMOVED_AT_ONCE) {
      await remove(removal, found.slice(at, at + LEFTOVERS_REMOVED_AT_ONCE), fromOf, report, steps)
    }
  }
  return report
}

/** The kinds of documents that a later event never touches. */
const untouched: ReadonlySet<string> = new Set(['statements', 'payroll_files', 'parked', 'balances'])

const remove = async (
  removal: Removal,
  leftovers: readonly Leftover[],
  fromOf: (partition: number) => number,
  report: Report,
  steps: Steps,
): Promise<void> => {
  const { keptFormAddressOf } = layoutOf(steps.prefix, removal)
  const kept: Operation[] = []
  const touched = leftovers.filter(({ kind, partition }) => fromOf(partition) > 0 && !untouched.has(kind))
  const read = await readSources(touched, steps)
  for (const leftover of leftovers) {
    const { address, kind, partition } = leftover
    const source = read.get(leftover)
    const form = source && earlierForm(kind, source, fromOf(partition))
    if (form === undefined) {
      report.removed++
      if (report.shown.length < LEFTOVERS_SHOWN && isNamed(leftover)) report.shown.push(`${kind} ${address._id}`)
      continue
    }
    report.earlier++
    const { key_id, org_id } = form.source
    if (key_id !== undefined) report.valid.push(`${key_id} of ${org_id}`)
    const body_bytes = Buffer.byteLength(JSON.stringify(form))
    const document: KeptFormDocument = { org_id: KEPT_FORMS, body_bytes, body: form }
    const keptAt = keptFormAddressOf(kind, address._id)
    kept.push({ ...keptAt, lines: [{ index: keptAt }, document] })
  }
  await carryOut(kept, steps)
  await carryOut(leftovers.map(deletionOf), steps)
}

/** A key by its hash is not shown: its head has the id. */
const isNamed = ({ kind, address }: Leftover): boolean => kind !== 'api-keys' || address._id.includes(':')

const deletionOf = (leftover: Leftover): Operation => {
  const { address } = leftover
  return { ...address, lines: [{ delete: { ...address, ...ifVersion(leftover) } }], onConflict: doneIfMissing }
}

/** @throws CommandError if one was written since it was found */
const readSources = async (leftovers: readonly Leftover[], steps: Steps): Promise<Map<Leftover, Fields>> => {
  const docs = leftovers.map(({ address }) => address)
  const found = await getEach(docs, part => withRetries(steps, () => getFromPrimaries<Fields>(steps.send, part)))
  return new Map(
    leftovers.map((leftover, at) => {
      const document = found[at]
      if (!document?.found || document._version !== leftover.version) throw new CommandError(CHANGED)
      return [leftover, document._source] as const
    }),
  )
}

/** Puts all kept documents back, and forgets what was kept of them. @returns whether there were any */
const putBackAll = async (removal: Removal, steps: Steps): Promise<boolean> => {
  const layout = layoutOf(steps.prefix, removal)
  const indices = layout.indices.join()
  for (let hasAny = false; ; hasAny = true) {
    await refresh(indices, steps)
    const answer = await withRetries(steps, () =>
      steps.send<SearchAnswer<{ readonly _index: string; readonly _id: string }>>({
        method: 'POST',
        path: `/${indices}/_search`,
        body: { size: LEFTOVERS_REMOVED_AT_ONCE, _source: false, query: { term: { org_id: KEPT_FORMS } } },
      }),
    )
    const both = wholeAnswer(indices, answer).hits.hits.map(hit => {
      const id = keptIdIn(hit._id)
      const kind = id === undefined ? undefined : layout.kindOf(hit._index, id)
      if (id === undefined || kind === undefined) throw new CommandError(`${hit._index} has a form of no document`)
      return { keptAt: layout.keptFormAddressOf(kind, id), address: layout.addressOf(kind, id) }
    })
    if (both.length === 0) return hasAny
    const docs = both.map(({ keptAt }) => keptAt)
    const kept = await getEach(docs, part =>
      withRetries(steps, () => getFromPrimaries<KeptFormDocument>(steps.send, part)),
    )
    await carryOut(
      both.flatMap(({ address }, at) => {
        const found = kept[at]
        return found?.found ? [putBackOf(address, found._source.body)] : []
      }),
      steps,
    )
    await carryOut(
      docs.map(address => ({ ...address, lines: [{ delete: address }] })),
      steps,
    )
  }
}

/** Elasticsearch refuses it while the document is there, or while it remembers the version that was deleted. */
const putBackOf = (address: Address, { version, source }: KeptFormDocument['body']): Operation => ({
  ...address,
  lines: [{ index: { ...address, version, version_type: 'external' } }, source],
  // A later version: it was not deleted yet, and is found again.
  onConflict: found => found.found,
})

const refresh = async (index: string, steps: Steps): Promise<void> => {
  const answer = await withRetries(steps, () => steps.send<Coverage>({ method: 'POST', path: `/${index}/_refresh` }))
  assertRefreshed(index, answer)
}

const isMarked = ({ _source }: StoredPosition): boolean => _source.body.removing === true

const readBegin = async ({ generation, partitions, from }: Removal, { send, prefix }: Steps): Promise<Begin> => {
  const positions: StoredPosition[] = []
  for (let partition = 0; partition < partitions; partition++) {
    const id = positionId(generation, partition)
    const { status, body } = await send<StoredPosition>({
      method: 'GET',
      path: documentPath(controlIndexOf(prefix), id),
    })
    if (status !== 200) throw new CommandError(dropped(id, status))
    positions.push(body)
  }
  return { positions, from: await from(positions.map(({ _source }) => _source.body)) }
}

/** Nothing is written at or after the first offset whose documents go. */
const forget = (removal: Removal, begin: Begin, written: readonly ReadWritten[], steps: Steps): Promise<void> =>
  forgetWritten(removal, written, (last, at) => isKept(removal, begin, last, at), steps)

const isKept = (
  { keepsWritten }: Pick<Removal, 'keepsWritten'>,
  { from }: Begin,
  last: { readonly offset: number },
  partition: number,
): boolean => keepsWritten === true && last.offset < (from[partition] ?? 0)

/** Marks the positions of these partitions. @returns all positions with their versions afterwards */
const mark = async (
  removal: Removal,
  positions: readonly StoredPosition[],
  partitions: ReadonlySet<number>,
  steps: Steps,
): Promise<StoredPosition[]> => {
  const marked: StoredPosition[] = []
  for (const [partition, position] of positions.entries()) {
    const isToMark = partitions.has(partition) && !isMarked(position)
    const body: PositionDocument['body'] = { ...position._source.body, removing: true }
    marked.push(isToMark ? await replace(removal, partition, position, body, steps) : position)
  }
  return marked
}

const unmark = async (removal: Removal, { positions, from }: Begin, steps: Steps): Promise<void> => {
  for (const [partition, position] of positions.entries()) {
    const { removing, ...body } = position._source.body
    // Documents before the position are gone, too: nobody may read until the caller has set it back.
    const isServed = (from[partition] ?? 0) >= body.position
    if (removing !== undefined && isServed) await replace(removal, partition, position, body, steps)
  }
}

const replace = async (
  { generation }: Removal,
  partition: number,
  read: StoredPosition,
  body: PositionDocument['body'],
  { send, prefix }: Steps,
): Promise<StoredPosition> => {
  const id = positionId(generation, partition)
  const document: PositionDocument = { kind: 'position', body }
  const path = documentPath(controlIndexOf(prefix), id)
  const answer = await send<StoredPosition>({ method: 'PUT', path, query: ifVersion(read), body: document })
  if (answer.status === 200) return { ...answer.body, _source: document }
  if (answer.status === 409)
    throw new CommandError(`${id} was changed meanwhile: stop all projectors, and run the same again`)
  throw new CommandError(`${id} cannot be written: Elasticsearch answers ${answer.status}`)
}

const linesOf = (generation: string, { removed, earlier, shown, valid }: Report): string[] => [
  `${generation}: ${removed} documents that the log does not have are removed, ${earlier} have their earlier form again`,
  ...shown.map(name => `  removed: ${name}`),
  ...(removed > shown.length ? [`  … (${removed} in all)`] : []),
  ...valid.map(key => `  ${key} is not revoked in the log, and is valid again: if it was revoked, publish that again`),
]
