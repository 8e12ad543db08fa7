/**
 * The sequence of a change: 1 for the first change of its organization, and one more for each further one.
 * In: an organization, a position, and changes; or a sequence. Out: the sequences of the changes; or the change.
 * Promises: a change has one sequence while the rules stay: after a rebuild, a swap, a restore, and in a topic with
 *   more partitions.
 * Can go wrong: Elasticsearch cannot answer completely, or an old copy left out a known change → `unavailable`.
 *
 * No document of a change has it: the feed has an order that never changes, so changes are counted. A balance has the
 * number of changes up to its own: only those after it are counted. The page soon after one that was read needs no
 * search. A page that is numbered by places, and a change that was found by its place, are also counted if the
 * organization has several shards: an old copy of one shard would leave a hole before them.
 */
import { listTraits } from '../../../schemas/lists.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import { lruOptions, type Refusal, unavailable } from '../../runtime/index.ts'
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
import { certain, createAgreed, type Proofs } from './agreed.ts'
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
  /**
   * Returns the change with a sequence; undefined if the organization has fewer changes at the position.
   * @throws Refusal `unavailable` if a balance or a count says that an old copy left out changes
   */
  readonly changeAt: (scope: ReadScope, position: ReadPosition, sequence: number) => Promise<FoundChange | undefined>
  /** Returns the change of the last balance. Without one, the sequence is 0, and the offset is below all others. */
  readonly ofLastBalance: (scope: ReadScope, position: ReadPosition) => Promise<CountedChange>
}
type FoundChange = { readonly name: RecordName; readonly seq: number }

/** Creates the counter of changes and its cache. @param elapsed milliseconds of a monotonic clock */
export const createSequences = (search: ScopedSearch, elapsed: () => number, proofs?: Proofs): Sequences => {
  const remembered = createAgreed<number>(lruOptions(SEQUENCES_REMEMBERED), elapsed, proofs)
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

  /** Counts the changes up to each offset of a change. @throws Refusal `unavailable` if one of these is left out */
  const countUpTo = async (scope: ReadScope, position: ReadPosition, seqs: readonly number[]): Promise<number[]> => {
    const { layout } = position.generation
    const [first = 0] = seqs
    const begin = await balanceBefore(scope, position, first + 1)
    const ranges = seqs.map((seq, at) => ({ range: { seq: { gt: at === 0 ? begin.seq : seqs[at - 1], lte: seq } } }))
    const where = layout.searchOf(listKinds, scope.org)
    const range = { range: { seq: { gt: begin.seq, lte: seqs.at(-1) } } }
    const ends = { terms: { seq: seqs } }
    const body = {
      size: 0,
      query: { bool: { filter: [...where.filters, range] } },
      aggs: { all: { filters: { filters: [...ranges, ends] } } },
    }
    const { buckets } = (await ask<CountsOfRanges, unknown>(where, body, scope)).aggregations.all
    // An old copy of the only shard lacks the last changes: with the last one it has all. The first change may be that
    // of the balance, which is not counted again.
    if (buckets[seqs.length]?.doc_count !== seqs.filter(seq => seq > begin.seq).length) throw leftOut()
    let { sequence } = begin
    return seqs.map((_, at) => {
      sequence += buckets[at]?.doc_count ?? 0
      return sequence
    })
  }

  /** Returns the sequence of the change at an offset, 0 before the first one. */
  const sequenceOf = async (scope: ReadScope, position: ReadPosition, seq: number) => {
    if (seq < 0) return { value: 0, ...certain }
    const key = keyOf(scope, position, seq)
    const known = remembered.get(key)
    if (known !== undefined) return known
    const remember = remembered.begin()
    return remember(key, (await countUpTo(scope, position, [seq]))[0] ?? 0, position.generation.name)
  }

  /** @throws Refusal `unavailable` if an old copy of one shard left out changes between those of the others */
  const requireWhole = async (scope: ReadScope, { generation }: ReadPosition, { before, seqs }: SequencesAsked) => {
    if (generation.layout.isInOneShard) return
    const where = generation.layout.searchOf(listKinds, scope.org)
    const range = { range: { seq: { gt: before, lte: seqs.at(-1) } } }
    const query = { bool: { filter: [...where.filters, range] } }
    const body = { size: 0, query, aggs: { all: { filters: { filters: [range] } } } }
    const [counted] = (await ask<CountsOfRanges, unknown>(where, body, scope)).aggregations.all.buckets
    if (counted?.doc_count !== seqs.length) throw leftOut()
  }

  const of: Sequences['of'] = async (scope, position, asked) => {
    const { before, seqs, isWhole } = asked
    if (seqs.length === 0) return []
    const begin = isWhole ? await sequenceOf(scope, position, before) : undefined
    const remember = remembered.begin(begin)
    if (begin) await requireWhole(scope, position, asked)
    const found = begin ? seqs.map((_, at) => begin.value + at + 1) : await countUpTo(scope, position, seqs)
    remember(keyOf(scope, position, seqs.at(-1) ?? 0), found.at(-1) ?? 0, position.generation.name)
    return found
  }

  const changeAt: Sequences['changeAt'] = async (scope, position, sequence) => {
    const { layout } = position.generation
    const { org } = scope
    const { publishedTo } = position
    const remember = remembered.begin()
    const begin = layout.hasSequences
      ? await firstOf(lastBalanceBelow(layout, org, sequence, publishedTo), scope, position)
      : START
    let after: number | undefined = begin.seq < 0 ? undefined : begin.seq
    for (let left = sequence - begin.sequence; ; ) {
      const changes = Math.min(left, CHANGES_SKIPPED_MAX)
      const { where, body } = changeAfter(layout, org, after, changes, publishedTo)
      const [hit] = (await ask<unknown, ChangeSource>(where, body, scope)).hits
      if (hit === undefined) {
        if ((await balanceBefore(scope, position, publishedTo)).sequence >= sequence) throw leftOut()
        return undefined
      }
      const { seq } = hit._source
      left -= changes
      if (left === 0) {
        if (!layout.isInOneShard && (await countUpTo(scope, position, [seq]))[0] !== sequence) throw leftOut()
        remember(keyOf(scope, position, seq), sequence, position.generation.name)
        return { name: nameOfChange(layout, hit), seq }
      }
      after = seq
    }
  }
  return { of, changeAt, ofLastBalance: (scope, position) => balanceBefore(scope, position, position.publishedTo) }
}

/** An old copy left out changes. */
const leftOut = (): Refusal => unavailable('elasticsearch_malformed_search')

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
