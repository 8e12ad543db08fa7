/** `/status`: the state of every partition, also of other projectors, read from Kafka and Elasticsearch each time. */

import { fetchEnds, type GenerationBody, type SourceAdmin } from '../../core/log/index.ts'
import type { StoredParked } from '../../core/projection/index.ts'
import { type Schedule, scheduleTimer, Unanswered, withTimeLimit } from '../../core/runtime/index.ts'
import type { Coverage, Elasticsearch, Send, TermsAnswer } from '../../core/store/index.ts'
import { parkCodes } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import { EVENT_TIME_AHEAD_MAX_MS } from '../../schemas/limits.ts'
import { type PositionDocument, positionId } from '../../schemas/stored/documents.ts'
import type { GenerationLayout } from '../../schemas/stored/layout.ts'
import { SCRAPE_READ_MS } from '../limits.ts'
import { getControlDocuments } from './read-control.ts'
import { refreshParked, searchAll } from './search-all.ts'

/** Next offsets; `searchable_to` and `end` are equal when the partition is caught up. */
export type PartitionStatus = {
  readonly generation: string
  readonly topic: string
  readonly partition: number
  readonly searchable_to: number
  readonly end: number
  readonly lag: number
  /** Published records that the topic does not have any more. */
  readonly lost: number
  readonly parked: number
}

type Counted = { readonly identity: GenerationBody; readonly layout: Pick<GenerationLayout, 'indexOf'> }

/** Returns the status of several streams; undefined if one cannot be read. */
export const statusOfAll = async (
  streams: readonly Counted[],
  prefix: string,
  admin: SourceAdmin,
  elasticsearch: Elasticsearch,
): Promise<PartitionStatus[] | undefined> => {
  if (streams.length === 0) return undefined
  try {
    const all = await Promise.all(
      streams.map(({ identity, layout }) =>
        readStatus(identity, layout.indexOf('parked'), prefix, admin, elasticsearch),
      ),
    )
    return all.flat()
  } catch {
    return undefined
  }
}

/**
 * @param parkedIndex the index of this projection's parked records
 * @throws StopError, Unanswered if a count or a position is not known
 */
export const readStatus = async (
  { generation, topic }: GenerationBody,
  parkedIndex: string,
  prefix: string,
  admin: SourceAdmin,
  { send }: Elasticsearch,
): Promise<PartitionStatus[]> => {
  const ends = await fetchEnds(admin, topic)
  const idOf = (partition: number): string => positionId(generation, partition)
  const ids = ends.map(({ partition }) => idOf(partition))
  const positions = await getControlDocuments<PositionDocument>(send, prefix, ids)
  const parked = await countParked(parkedIndex, topic, ends.length, send)
  return ends
    .map(({ partition, end }) => {
      const position = positions.get(idOf(partition))
      // A position that is not known must not look like a partition of which nothing is searchable.
      if (position === undefined) throw new Unanswered('elasticsearch', 503)
      const searchable_to = position.body.position
      const [lag, lost] = [Math.max(0, end - searchable_to), Math.max(0, searchable_to - end)]
      return { generation, topic, partition, searchable_to, end, lag, lost, parked: parked.get(partition) ?? 0 }
    })
    .sort((a, b) => a.partition - b.partition)
}

const countParked = async (
  index: string,
  topic: string,
  partitions: number,
  send: Send,
  signal?: AbortSignal,
): Promise<Map<number, number>> => {
  await refreshParked(send, index, signal)
  const query = {
    size: 0,
    query: { term: { topic } },
    aggs: { partitions: { terms: { field: 'partition', size: partitions } } },
  }
  const { aggregations } = await searchAll<TermsAnswer<'partitions', number>>(send, index, query, signal)
  return new Map(aggregations.partitions.buckets.map(({ key, doc_count }) => [key, doc_count]))
}

/** Counts the parked records of each stream. One that cannot be counted in time is left out: no number is made up. */
export const countStoredParked = async (
  streams: readonly (Counted & { readonly stream: Stream })[],
  { send }: Elasticsearch,
  later: Schedule = scheduleTimer,
): Promise<StoredParked[]> => {
  const count = async (
    { stream, identity: { generation, topic, partitions }, layout }: (typeof streams)[number],
    signal: AbortSignal,
  ): Promise<StoredParked[]> => {
    try {
      const counts = await countParked(layout.indexOf('parked'), topic, partitions, send, signal)
      return [{ generation, stream, records: [...counts.values()].reduce((sum, one) => sum + one, 0) }]
    } catch {
      return []
    }
  }
  const counted = await withTimeLimit(SCRAPE_READ_MS, later, signal =>
    Promise.all(streams.map(one => count(one, signal))),
  )
  return counted.flat()
}

/** Parked records of one code. The times are those of the records, in milliseconds since 1970. */
type OfCode = { readonly code: string; readonly records: number; readonly first: number; readonly last: number }
/** `ahead`: the number of parked records with a time ahead of the clock, which says nothing. */
export type ParkedLately = { readonly codes: readonly OfCode[]; readonly ahead: number }

/**
 * Counts the parked records since an instant by code, most of them first, and those with a time ahead of the clock;
 * undefined if they cannot be read.
 * @param indices of parked records
 */
export const readParkedLately = async (
  indices: readonly string[],
  { since, now }: { readonly since: number; readonly now: number },
  { send }: Elasticsearch,
): Promise<ParkedLately | undefined> => {
  if (indices.length === 0) return undefined
  const latest = now + EVENT_TIME_AHEAD_MAX_MS
  try {
    await refreshParked(send, indices.join(','))
    const { aggregations } = await searchAll<CodesAnswer>(send, indices.join(','), {
      size: 0,
      query: { range: { at: { gte: since } } },
      aggs: {
        ahead: { filter: { range: { at: { gt: latest } } } },
        lately: {
          filter: { range: { at: { lte: latest } } },
          aggs: {
            codes: {
              terms: { field: 'code', size: parkCodes.length },
              aggs: { first: { min: { field: 'at' } }, last: { max: { field: 'at' } } },
            },
          },
        },
      },
    })
    const codes = aggregations.lately.codes.buckets.map(({ key, doc_count, first, last }) => ({
      ...{ code: key, records: doc_count },
      ...{ first: first.value, last: last.value },
    }))
    return { codes, ahead: aggregations.ahead.doc_count }
  } catch {
    return undefined
  }
}
type Bucket = { readonly key: string; readonly doc_count: number; readonly first: Extreme; readonly last: Extreme }
type Extreme = { readonly value: number }
type CodesAnswer = Coverage & {
  readonly aggregations: {
    readonly ahead: { readonly doc_count: number }
    readonly lately: { readonly codes: { readonly buckets: readonly Bucket[] } }
  }
}
