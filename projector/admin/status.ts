/** `/status`: the state of every partition, also of other projectors, read from Kafka and Elasticsearch each time. */
import { controlIndexOf, type PositionDocument, positionId } from '../../schemas/stored/documents.ts'
import type { TermsAnswer } from '../elasticsearch/answers.ts'
import { type Elasticsearch, multiGet, type Send } from '../elasticsearch/client.ts'
import { fetchEnds, type Identity, type SourceAdmin } from '../kafka/source.ts'

/** Next offsets; `searchable_to` and `end` are equal when the partition is caught up. */
export type PartitionStatus = {
  readonly generation: string
  readonly topic: string
  readonly partition: number
  readonly searchable_to: number
  readonly end: number
  readonly lag: number
  readonly parked: number
}

/** Returns the status of several streams; undefined if one cannot be read. */
export const statusOfAll = async (
  streams: readonly { readonly identity: Identity; readonly indexOf: (kind: 'parked') => string }[],
  prefix: string,
  admin: SourceAdmin,
  elasticsearch: Elasticsearch,
): Promise<PartitionStatus[] | undefined> => {
  if (streams.length === 0) return undefined
  try {
    const all = await Promise.all(
      streams.map(({ identity, indexOf }) => readStatus(identity, indexOf('parked'), prefix, admin, elasticsearch)),
    )
    return all.flat()
  } catch {
    return undefined
  }
}

/** @param parkedIndex the index of this projection's parked records */
export const readStatus = async (
  { generation, topic }: Identity,
  parkedIndex: string,
  prefix: string,
  admin: SourceAdmin,
  { send }: Elasticsearch,
): Promise<PartitionStatus[]> => {
  const ends = await fetchEnds(admin, topic)
  const controlIndex = controlIndexOf(prefix)
  const positions = await multiGet<PositionDocument>(
    send,
    ends.map(({ partition }) => ({ _index: controlIndex, _id: positionId(generation, partition) })),
  )
  const parked = await countParked(parkedIndex, topic, ends.length, send)
  return ends
    .map(({ partition, end }, index) => {
      const position = positions[index]
      const searchable_to = position?.found ? position._source.body.position : 0
      const lag = Math.max(0, end - searchable_to)
      return { generation, topic, partition, searchable_to, end, lag, parked: parked.get(partition) ?? 0 }
    })
    .sort((a, b) => a.partition - b.partition)
}

const countParked = async (
  index: string,
  topic: string,
  partitions: number,
  send: Send,
): Promise<Map<number, number>> => {
  await send({ method: 'POST', path: `/${index}/_refresh` })
  const { body } = await send<TermsAnswer<'partitions', number>>({
    method: 'POST',
    path: `/${index}/_search`,
    body: {
      size: 0,
      query: { term: { topic } },
      aggs: { partitions: { terms: { field: 'partition', size: partitions } } },
    },
  })
  return new Map(body.aggregations.partitions.buckets.map(({ key, doc_count }) => [key, doc_count]))
}
