/**
 * Receipts of runs: report the outcome of all records between two offsets of a partition. Nothing is stored. In: a
 * partition, its first and last offset, and how long to wait. Out: how many offsets are published, parked and not yet,
 * how many records changed data, and the first parked ones with their codes. Or no receipt, as for one record.
 * Promises: the counts are of one published position. A run waits for the receipt of its last record, so that all
 * waiting requests share one read. A fixed number of runs is read at once, each with a fixed number of requests.
 * Can go wrong: Elasticsearch does not answer; too many requests; the projector stops.
 */

import { limitConcurrency, type RetryOptions, StopError, Unanswered } from '../../core/runtime/index.ts'
import type { SearchAnswer, Send, TermsAnswer, Total } from '../../core/store/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { listKinds, type ParkedDocument } from '../../schemas/stored/documents.ts'
import { layoutOf, parkedIndexOf } from '../../schemas/stored/layout.ts'
import { RUN_ORGANIZATIONS_MAX, RUN_PARKED_LISTED_MAX, RUN_READS_MAX, RUNS_AT_ONCE_MAX } from '../limits.ts'
import type { IsIntact } from './is-intact.ts'
import { generationOfStream, getLivePositions, NOT_SERVED, type NoReceipt } from './read-control.ts'
import { readInTime } from './read-in-time.ts'
import type { Receipts } from './receipts.ts'
import { refreshParked, searchAll } from './search-all.ts'

/** Consecutive offsets of a partition. `from` and `to` are both included. */
export type Run = {
  readonly stream: Stream
  readonly topic: string
  readonly partition: number
  readonly partitions: number
  readonly from: number
  readonly to: number
}
/** Numbers of offsets: `published` + `parked` + `not_yet` is the length of the run. */
export type RunReceipt = {
  readonly published: number
  /** Of the published: events that changed data; null if unknown. */
  readonly applied: number | null
  /** Of the published: duplicates, and offsets without an event; null if unknown. */
  readonly without_effect: number | null
  readonly parked: number
  readonly not_yet: number
  /** The first parked records, in order of offset. */
  readonly parked_records: readonly { readonly offset: number; readonly code: ParkCode }[]
  readonly has_more: boolean
}
/** A receipt, or why there is none. */
export type RunOutcome =
  | { readonly state: 'read'; readonly receipt: RunReceipt }
  | NoReceipt
  | { readonly state: 'unavailable' | 'too_many' | 'too_many_runs' | 'stopping' }

/** @throws Unanswered, StopError if the run cannot be read now */
type ReadRun = (run: Run, signal: AbortSignal) => Promise<RunReceipt | NoReceipt>

export type AskRun = (run: Run, milliseconds: number, gone: AbortSignal) => Promise<RunOutcome>

export const createRunReceipts = (
  { ask, stopping }: Pick<Receipts, 'ask' | 'stopping'>,
  readRun: ReadRun,
  sleep: RetryOptions['sleep'],
): AskRun => {
  const inTurn = limitConcurrency(RUN_READS_MAX)
  let count = 0

  const readInTurn = (run: Run, signal: AbortSignal): Promise<RunReceipt | NoReceipt> =>
    inTurn(async () => {
      if (signal.aborted) throw new Unanswered('elasticsearch', 0)
      return readRun(run, signal)
    })

  return async (run, milliseconds, gone) => {
    if (count >= RUNS_AT_ONCE_MAX) return { state: 'too_many_runs' }
    count++
    try {
      const { stream, topic, partition, to: offset } = run
      // Records are published in order: once the last one is, nothing of the run is open. While readers are refused,
      // a parked one may be told before others are published.
      const last = await ask({ stream, topic, partition, offset }, milliseconds, gone)
      const hasReceipt = last.state === 'published' || last.state === 'parked' || last.state === 'not_yet'
      if (!hasReceipt) return last
      const receipt = await readInTime(sleep, [stopping, gone], signal => readInTurn(run, signal))
      // A swap may come after the wait.
      return 'state' in receipt ? receipt : { state: 'read', receipt }
    } catch (error) {
      if (stopping.aborted) return { state: 'stopping' }
      if (error instanceof Unanswered || error instanceof StopError) return { state: 'unavailable' }
      throw error
    } finally {
      count--
    }
  }
}

/**
 * Reads in this order: the position of the generation that is live then, parked records, changes before the position,
 * and the ids of its indices. Records and changes were stored before the position passed them, in these indices.
 */
export const createRunReader =
  (send: Send, prefix: string, isIntact: IsIntact): ReadRun =>
  async (run, signal) => {
    const { live, positionOf, identityOf } = await getLivePositions(send, prefix, [run], signal)
    const at = positionOf(run)
    if ('state' in at) return at
    // The offset after the last decided one of the run.
    const end = Math.min(Math.max(at.position, run.from), run.to + 1)
    const publishedEnd = at.isServed ? end : run.from

    const parkedIndex = parkedIndexOf(prefix, generationOfStream(run.stream, live.generation))
    // HAZARD: a parked record that is not searchable would count as published.
    await refreshParked(send, parkedIndex, signal)
    const parked = await searchAll<ParkedAnswer>(send, parkedIndex, parkedQuery(run, end), signal)
    const { index } = layoutOf(prefix, live).searchOf(listKinds, undefined)
    const changed =
      run.stream === 'events'
        ? await searchAll<ChangedAnswer>(send, index, changedQuery(run, publishedEnd), signal)
        : undefined

    if (end > run.from && !(await isIntact(identityOf(run.stream), signal))) return NOT_SERVED

    const parked_records = parked.hits.hits.map(({ _source: { offset, code } }) => ({ offset, code }))
    const published = at.isServed ? end - run.from - parked.hits.total.value : 0
    const applied = changed === undefined ? null : countChanged(changed, run)
    return {
      published,
      applied,
      without_effect: applied === null ? null : published - applied,
      parked: parked.hits.total.value,
      not_yet: run.to + 1 - run.from - published - parked.hits.total.value,
      parked_records,
      has_more: parked.hits.total.value > parked_records.length,
    }
  }

type ParkedAnswer = SearchAnswer<{ readonly _source: Pick<ParkedDocument, 'offset' | 'code'> }> & Total

const parkedQuery = ({ topic, partition, from }: Run, end: number): object => ({
  size: RUN_PARKED_LISTED_MAX,
  track_total_hits: true,
  _source: ['offset', 'code'],
  sort: [{ offset: 'asc' }],
  query: {
    bool: { filter: [{ term: { topic } }, { term: { partition } }, { range: { offset: { gte: from, lt: end } } }] },
  },
})

/** Each event that changed data made one record with its offset. The record has no partition, only its organization. */
const changedQuery = ({ from }: Run, end: number): object => ({
  size: 0,
  track_total_hits: false,
  query: { range: { seq: { gte: from, lt: end } } },
  aggs: { organizations: { terms: { field: 'org_id', size: RUN_ORGANIZATIONS_MAX } } },
})
type ChangedAnswer = TermsAnswer<'organizations', string> & {
  readonly aggregations: { readonly organizations: { readonly sum_other_doc_count: number } }
}

/**
 * Returns the number of changes of this partition. The search also finds records of other partitions, because offsets
 * repeat in each of them.
 */
const countChanged = ({ aggregations: { organizations } }: ChangedAnswer, run: Run): number | null => {
  if (organizations.sum_other_doc_count > 0) return null
  return organizations.buckets
    .filter(({ key }) => partitionOf(key, run.partitions) === run.partition)
    .reduce((sum, { doc_count }) => sum + doc_count, 0)
}
