/**
 * The sequence of a change: 1 for the first change of its organization, and one more for each further one.
 * In: an organization, a position, and changes; or a sequence. Out: the sequences of the changes; or the change.
 * Promises: a change has one sequence while the rules stay: after a rebuild, a swap, a restore, and in a topic with
 *   more partitions.
 * Can go wrong: Elasticsearch cannot answer completely → `unavailable`.
 *
 * No document of a change has it: the feed has an order that never changes, so changes are counted. A balance has the
 * number of changes up to its own: only those after it are counted. The page after one that was read needs no search.
 */
import { LRUCache } from 'lru-cache'
import { listTraits } from '../../../schemas/lists.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import { lruOptions, unavailable } from '../../runtime/index.ts'
import {
  changeAfter,
  isVisible,
  lastBalance,
  lastBalanceBelow,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  searchSmall,
  smallSearch,
} from '../../store/index.ts'
import { CHANGES_SKIPPED_MAX, SEQUENCES_REMEMBERED } from '../limits.ts'
import type { RecordName } from './read-parameters.ts'

export type SequencesAsked = {
  /** The offset after which they were searched; -1 for the beginning. */
  readonly before: number
  /** Offsets of changes, ascending. */
  readonly seqs: readonly number[]
  /** Whether no other change lies between them, nor before the first one. */
  readonly isWhole: boolean
}

export type Sequences = {
  /** Returns one sequence for each offset. */
  readonly of: (scope: ReadScope, position: ReadPosition, asked: SequencesAsked) => Promise<readonly number[]>
  /** Returns the change with a sequence; undefined if the organization has fewer changes at the position. */
  readonly changeAt: (scope: ReadScope, position: ReadPosition, sequence: number) => Promise<FoundChange | undefined>
  /** Returns the change of the last balance. Without one, the sequence is 0, and the offset is below all others. */
  readonly ofLastBalance: (scope: ReadScope, position: ReadPosition) => Promise<CountedChange>
}
type FoundChange = { readonly name: RecordName; readonly seq: number }

/** Creates the counter of changes and its cache. */
export const createSequences = (search: ScopedSearch): Sequences => {
  const remembered = new LRUCache<string, number>(lruOptions(SEQUENCES_REMEMBERED))
  // `takenBack` differs once a restored copy is adopted: a count from before may lack changes.
  const keyOf = ({ org }: ReadScope, { generation, takenBack }: ReadPosition, seq: number): string =>
    `${generation.id}:${org}:${takenBack}:${seq}`

  const ask = async <Aggregations, Source>(where: Place, body: object, scope: ReadScope) =>
    smallSearch<Aggregations, Source>(await searchSmall(search, where, body, scope))

  const firstOf = async (
    { where, body }: { readonly where: Place; readonly body: object },
    scope: ReadScope,
    position: ReadPosition,
  ) => {
    const [hit] = (await ask<unknown, CountedChange>(where, { ...body, _source: ['seq', 'sequence'] }, scope)).hits
    if (hit === undefined) return START
    const { seq, sequence } = hit._source
    if (!isVisible(seq, position) || !Number.isSafeInteger(sequence))
      throw unavailable('elasticsearch_malformed_search')
    return { seq, sequence }
  }

  const balanceBefore = async (scope: ReadScope, position: ReadPosition, before: number): Promise<CountedChange> => {
    const { layout } = position.generation
    return layout.hasBalances ? firstOf(lastBalance(layout, scope.org, before), scope, position) : START
  }

  /** Counts the changes up to each offset. */
  const countUpTo = async (scope: ReadScope, position: ReadPosition, seqs: readonly number[]): Promise<number[]> => {
    const { layout } = position.generation
    const [first = 0] = seqs
    const begin = await balanceBefore(scope, position, first + 1)
    const ranges = seqs.map((seq, at) => ({ range: { seq: { gt: at === 0 ? begin.seq : seqs[at - 1], lte: seq } } }))
    const where = layout.searchOf(listKinds, scope.org)
    const range = { range: { seq: { gt: begin.seq, lte: seqs.at(-1) } } }
    const body = {
      size: 0,
      query: { bool: { filter: [...where.filters, range] } },
      aggs: { all: { filters: { filters: ranges } } },
    }
    const { buckets } = (await ask<CountsOfRanges, unknown>(where, body, scope)).aggregations.all
    if (buckets.length !== seqs.length) throw unavailable('elasticsearch_malformed_search')
    let { sequence } = begin
    return buckets.map(({ doc_count }) => {
      sequence += doc_count
      return sequence
    })
  }

  const sequenceBefore = async (scope: ReadScope, position: ReadPosition, before: number): Promise<number> =>
    before < 0
      ? 0
      : (remembered.get(keyOf(scope, position, before)) ?? (await countUpTo(scope, position, [before]))[0] ?? 0)

  const of: Sequences['of'] = async (scope, position, { before, seqs, isWhole }) => {
    if (seqs.length === 0) return []
    const begin = isWhole ? await sequenceBefore(scope, position, before) : undefined
    const found = begin === undefined ? await countUpTo(scope, position, seqs) : seqs.map((_, at) => begin + at + 1)
    remembered.set(keyOf(scope, position, seqs.at(-1) ?? 0), found.at(-1) ?? 0)
    return found
  }

  const changeAt: Sequences['changeAt'] = async (scope, position, sequence) => {
    const { layout } = position.generation
    const { org } = scope
    const { publishedTo } = position
    const begin = layout.hasSequences
      ? await firstOf(lastBalanceBelow(layout, org, sequence, publishedTo), scope, position)
      : START
    let after: number | undefined = begin.seq < 0 ? undefined : begin.seq
    for (let left = sequence - begin.sequence; ; ) {
      const changes = Math.min(left, CHANGES_SKIPPED_MAX)
      const { where, body } = changeAfter(layout, org, after, changes, publishedTo)
      const [hit] = (await ask<unknown, ChangeSource>(where, body, scope)).hits
      if (hit === undefined) return undefined
      const { seq } = hit._source
      left -= changes
      if (left === 0) {
        remembered.set(keyOf(scope, position, seq), sequence)
        return { name: nameOfChange(layout, hit), seq }
      }
      after = seq
    }
  }
  return { of, changeAt, ofLastBalance: (scope, position) => balanceBefore(scope, position, position.publishedTo) }
}

type Place = Pick<SearchTarget, 'index' | 'routing'>
/** A change, and how many changes there are up to it. */
export type CountedChange = { readonly seq: number; readonly sequence: number }
/** Before the first change. */
const START: CountedChange = { seq: -1, sequence: 0 }
export type CountsOfRanges = { readonly all: { readonly buckets: readonly { readonly doc_count: number }[] } }
type ChangeSource = { readonly ordinal?: number; readonly seq: number }

/** Returns the name of the change that a found document is. @throws Refusal `unavailable` if it is malformed */
export const nameOfChange = (
  layout: Pick<GenerationLayout, 'kindOf'>,
  {
    _index,
    _id,
    _source: { ordinal },
  }: { readonly _index: string; readonly _id: string; readonly _source: { ordinal?: number } },
): RecordName => {
  const found = layout.kindOf(_index, _id)
  const kind = listKinds.find(of => of === found)
  const id = _id.split(':')[1]
  // Versions have an ordinal, other records have none.
  const isVersion = kind !== undefined && listTraits[kind].hasVersions
  if (kind === undefined || id === undefined || isVersion !== (ordinal !== undefined)) {
    throw unavailable('elasticsearch_malformed_search')
  }
  return ordinal === undefined ? { kind, id } : { kind, id, ordinal }
}
