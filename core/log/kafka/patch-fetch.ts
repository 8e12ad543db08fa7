/**
 * Makes the fetches of one client bring the batches of a log as they are there, in place of their records. kafkajs
 * decodes everything that a fetch brought before it hands over anything, and has these defects:
 * - Memory: a fetch of a few kilobytes can decompress to gigabytes.
 * - One batch that it cannot read fails the whole fetch, of all partitions, again and again, and nothing names it.
 * - It reads only the first of several frames, compares no checksum, and treats wrong lengths as positions.
 * - Its filter passes aborted records as committed: `batch/record-batch.ts`.
 * - Its time grows with the square of the number of headers of a record: `record-batch.ts` leaves them encoded.
 * - It skips a batch of only control or aborted records, and emits an event without the offsets of its records.
 *
 * In: kafkajs's connections of a client. Out: each fetched partition has one message, with the bytes of its batches.
 * Other clients in the process are as before. It uses parts of kafkajs that are not public: the kafkajs version is
 * pinned, and tests read real logs through it.
 */
import type { EachBatchPayload } from 'kafkajs'
import { loadKafkajs } from './load-kafkajs.ts'
import type { ProtocolConnections, ProtocolRequest } from './protocol-request.ts'

/** The batches of one partition, as a fetch brought them. */
export type FetchedBytes = { readonly bytes: Buffer; readonly aborted: readonly AbortedTransaction[] }
export type AbortedTransaction = { readonly producerId: string; readonly firstOffset: number }

/** The only message of a fetched partition, in place of its records. */
export type FetchedMessage = { readonly offset: string; readonly fetched: FetchedBytes }

type Cluster = { findBroker(node: object): Promise<{ readonly connectionPool: ProtocolConnections }> }
type ConsumerGroup = { readonly groupId: string; readonly cluster: Cluster; fetch(nodeId: string): Promise<unknown> }

type Send<Answer> = (this: ProtocolConnections, request: ProtocolRequest<Answer>) => Promise<Answer>

const groups = new Set<string>()
const clusters = new WeakSet<Cluster>()
const connections = new WeakSet<ProtocolConnections>()
let patched = false

/** Must be called before the consumer of the group runs. Idempotent. */
export const leaveFetchedBytesOf = (groupId: string): void => {
  groups.add(groupId)
  if (patched) return
  patched = true
  const { prototype } = loadKafkajs<{ readonly prototype: ConsumerGroup }>('consumer/consumerGroup')
  const { fetch } = prototype
  prototype.fetch = function (nodeId) {
    if (groups.has(this.groupId)) leaveFetchedBytes(this.cluster)
    return fetch.call(this, nodeId)
  }
}

/** Idempotent. */
export const leaveFetchedBytes = (cluster: Cluster): void => {
  if (clusters.has(cluster)) return
  clusters.add(cluster)
  const { findBroker } = cluster
  cluster.findBroker = async node => {
    const broker = await findBroker.call(cluster, node)
    const { connectionPool } = broker
    if (!connections.has(connectionPool)) {
      connections.add(connectionPool)
      const { send } = connectionPool
      connectionPool.send = <Answer>(request: ProtocolRequest<Answer>): Promise<Answer> =>
        (send as Send<Answer>).call(connectionPool, withBytes(request))
    }
    return broker
  }
}

const FETCH = 1

const withBytes = <Answer>(sent: ProtocolRequest<Answer>): ProtocolRequest<Answer> => {
  const { apiKey, apiVersion } = sent.request
  if (apiKey !== FETCH) return sent
  const { asVersion11 } = sent.response
  const decode = async (bytes: Buffer): Promise<Answer> =>
    (asVersion11 ? decodeFetch(asVersion11(bytes), 11) : decodeFetch(bytes, apiVersion)) as Answer
  return { ...sent, response: { ...sent.response, decode } }
}

type Decoder = {
  readInt16(): number
  readInt32(): number
  readInt64(): bigint
  readString(): string
  readBytes(): Buffer | null
  readArray<Item>(read: (decoder: Decoder) => Item): Item[]
}

/** The answer to a fetch, versions 4 to 11. The lines are the fields of the protocol in order. */
const decodeFetch = (bytes: Buffer, version: number): unknown => {
  const decoder = new (loadKafkajs<new (bytes: Buffer) => Decoder>('protocol/decoder'))(bytes)
  const clientSideThrottleTime = decoder.readInt32()
  const errorCode = version >= 7 ? decoder.readInt16() : 0
  const sessionId = version >= 7 ? decoder.readInt32() : 0
  const responses = decoder.readArray(topic => {
    const topicName = topic.readString()
    return { topicName, partitions: topic.readArray(partition => decodePartition(partition, version)) }
  })
  // As kafkajs: the broker has not waited if the client is to wait.
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

const decodePartition = (decoder: Decoder, version: number): unknown => {
  const partition = decoder.readInt32()
  const errorCode = decoder.readInt16()
  const highWatermark = String(decoder.readInt64())
  const lastStableOffset = String(decoder.readInt64())
  if (version >= 5) decoder.readInt64()
  const aborted = decoder.readArray(one => ({
    producerId: String(one.readInt64()),
    firstOffset: Number(one.readInt64()),
  }))
  const preferredReadReplica = version >= 11 ? decoder.readInt32() : -1
  const bytes = decoder.readBytes()
  const messages: FetchedMessage[] = bytes?.length ? [{ offset: LAST, fetched: { bytes, aborted } }] : []
  const answer = { partition, errorCode, highWatermark, lastStableOffset, preferredReadReplica }
  return { ...answer, abortedTransactions: [], messages }
}

/** Later than any offset that is asked for: kafkajs drops messages from before it. */
const LAST = String(Number.MAX_SAFE_INTEGER)

/**
 * Returns what kafkajs hands over for a partition, as this patch leaves it: one message, the bytes of all batches of
 * the partition and its aborted transactions; undefined without a message. The published type lacks its first field.
 */
export const fetchedOf = (
  batch: EachBatchPayload['batch'],
): { readonly partition: number; readonly from: number; readonly bytes: FetchedBytes } | undefined => {
  type FetchedBatch = {
    readonly fetchedOffset: string
    readonly partition: number
    readonly rawMessages: readonly FetchedMessage[]
  }
  const { fetchedOffset, partition, rawMessages } = batch as unknown as FetchedBatch
  const [message] = rawMessages
  return message && { partition, from: Number(fetchedOffset), bytes: message.fetched }
}
