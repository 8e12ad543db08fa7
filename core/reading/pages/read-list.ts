/**
 * In: an organization, a list and its parameters, a filter among them. Out: the documents of one page, in order,
 *   whether more follow, and the position they were read at.
 * Promises: exactly what is visible at the position (payouts, reps, periods: current), after the cursor, in the list's
 *   order, without a gap.
 * Can go wrong: a cursor that names nothing visible in this list → `invalid_cursor`, the same for an unknown one and
 *   another organization's.
 */
import { filteredKinds, type ListFilter, listTraits } from '../../../schemas/lists.ts'
import { type ListKind, listKinds } from '../../../schemas/stored/documents.ts'
import { Refusal } from '../../runtime/index.ts'
import {
  type Hit,
  idOf,
  isVisible,
  numberOf,
  type PositionReader,
  type ReadPosition,
  type ReadScope,
} from '../../store/index.ts'
import type { PositionAsOf, ProjectionTime } from './as-of.ts'
import { type Cursors, readNamed } from './cursors.ts'
import { type ListName, type ReadPage, requireSearchable } from './read-page.ts'
import type { ListParameters, RecordName } from './read-parameters.ts'
import type { Sequences } from './sequences.ts'

export type Page = {
  readonly position: ReadPosition
  readonly hits: readonly Hit[]
  readonly hasMore: boolean
  /** Of changes: the sequence of each hit. */
  readonly sequences?: readonly number[]
  /** Of changes: the change after which the page begins, if its sequence was given. */
  readonly begin?: RecordName
}
export type ListAsked = ListParameters & { readonly list: ListName }
export type ReadList = (scope: ReadScope, asked: ListAsked) => Promise<Page>

/** The parts that the readers of lists, records, histories and totals share. */
export type ReaderParts = {
  readonly readAt: PositionReader['readAt']
  readonly readPage: ReadPage
  readonly projectionTime: ProjectionTime
  readonly cursors: Cursors
  readonly positionAsOf: PositionAsOf
  readonly sequences: Sequences
}

/** Where a page begins, with two positions of the organization: the present one, and that of the requested moment. */
type ListStart = {
  readonly current: ReadPosition
  readonly position: ReadPosition
  /** The sort value of the cursor; undefined without a cursor. */
  readonly after: number | undefined
}
type StartAsked = Pick<ListParameters, 'startingAfter' | 'asOf'>

/**
 * Reads where a page begins: at the position, after the cursor. Without a cursor and a change, only the position is
 * read.
 * @throws Refusal `invalid_cursor` if the cursor names nothing visible
 */
export const readListStart = async (
  parts: Pick<ReaderParts, 'readAt' | 'cursors' | 'positionAsOf'>,
  scope: ReadScope,
  { startingAfter, asOf }: StartAsked,
): Promise<ListStart> => {
  const names = [startingAfter, asOf?.kind === 'change' ? asOf.name : undefined]
  const { position: current, sortValues } = await readNamed(parts, scope, names, () => [], 'may-be-older')
  const [after, change] = sortValues
  // Without `as_of`, this is `current`.
  const position = await parts.positionAsOf(scope, current, asOf, change)
  if (startingAfter !== undefined && (after === undefined || !isVisible(after, position))) {
    throw new Refusal('invalid_cursor')
  }
  return { current, position, after }
}

/** Returns the kinds of records in a list. A filtered feed leaves reps and periods out. */
export const kindsOf = (list: ListName, filter: ListFilter): readonly ListKind[] => {
  if (list !== 'changes') return [list]
  return Object.keys(filter).length > 0 ? filteredKinds : listKinds
}

/** Creates the reader of lists and of changes. */
export const createReadList = (parts: ReaderParts): ReadList => {
  const { readPage, projectionTime, cursors, sequences } = parts
  return async (scope, { list, limit, startingAfter, after: sequence, asOf, filter = {} }) => {
    const { current, position, after: cursor } = await readListStart(parts, scope, { startingAfter, asOf })
    const { generation } = current
    requireSearchable(filter, generation.layout)
    const begin = sequence ? await sequences.changeAt(scope, position, sequence) : undefined
    if (sequence && begin === undefined) throw new Refusal('invalid_cursor')
    const after = begin?.seq ?? cursor
    const where = generation.layout.searchOf(kindsOf(list, filter), scope.org)
    const { hits, hasMore } = await readPage(scope, { list, where, filter, after: after ?? -1, limit, position })
    const isWhole = Object.keys(filter).length === 0
    const numbered = list === 'changes' && {
      sequences: await sequences.of(scope, position, {
        before: after ?? -1,
        seqs: hits.map(({ sortValue }) => sortValue),
        isWhole,
      }),
      ...(begin && { begin: begin.name }),
    }

    const last = hits.at(-1)
    if (last) cursors.remember(scope.org, current, nameOf(last, list), last.sortValue)
    // The time of the position. Only an organization that may have no records costs a search, and gets the oldest time.
    const time = await projectionTime(scope, current, last || after !== undefined ? 'records' : 'unknown')
    return { position: { ...position, time }, hits, hasMore, ...numbered }
  }
}

/** Returns the sequence of a change of a page. */
export const sequenceIn = ({ sequences }: Pick<Page, 'sequences'>, at: number): number => {
  const sequence = sequences?.[at]
  if (sequence === undefined) throw new Error('a page of changes has no sequences')
  return sequence
}

/** Returns the record's id. A document's id is `org:id`, or `org:id:offset` for a version. */
export const recordIdOf = (hit: Hit): string => idOf(hit).split(':')[0] ?? ''

/** Returns the name that a client uses for a hit of a list. */
const nameOf = (hit: Hit, list: ListName): RecordName =>
  list === 'changes' ? changeNameOf(hit) : { kind: list, id: recordIdOf(hit) }

/** Returns the name of the change that a hit of the feed is. */
export const changeNameOf = (hit: Hit): RecordName => {
  const { kind } = hit
  const id = recordIdOf(hit)
  return listTraits[kind].hasVersions ? { kind, id, ordinal: numberOf(hit, 'ordinal') } : { kind, id }
}
