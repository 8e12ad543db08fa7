/**
 * Marks the aborted records of a fetch response, as Kafka's protocol defines them. kafkajs's own filter is wrong where
 * transactions overlap, and passes aborted records as committed:
 * - It reads the aborted transactions in the order of the response, which is by last offset, not by first offset.
 * - It starts at most one of them per record.
 * - It treats any record with a key of four zero bytes as the end of a transaction.
 *
 * In: kafkajs's module of each version of the fetch response. Out: the same module; aborted records are marked as
 * control records. kafkajs leaves control records out of a batch and still counts their offsets.
 */
import { loadKafkajs } from './load-kafkajs.ts'

/** Patches kafkajs. Idempotent. */
export const repairAbortedFilter = (): void => {
  for (const version of VERSIONS) {
    const response = loadKafkajs<FetchResponse>(`protocol/requests/fetch/v${version}/response.js`)
    if (repaired.has(response)) continue
    repaired.add(response)
    const { decode } = response
    response.decode = async bytes => {
      const answer = await decode(bytes)
      for (const { partitions } of answer.responses) for (const partition of partitions) markAborted(partition)
      return answer
    }
  }
}

/**
 * Makes kafkajs deliver a batch that has only control or aborted records. By default kafkajs skips such a batch and
 * emits an event without the offsets of its records. Idempotent.
 * HAZARD: a consumer with `eachMessage` in the same process would fetch such a batch forever.
 */
export const passOnEmptyBatches = (): void => {
  const { prototype } = loadKafkajs<{ readonly prototype: ClientBatch }>('consumer/batch')
  prototype.isEmpty = function () {
    return this.rawMessages.length === 0
  }
  prototype.isEmptyDueToFiltering = () => false
}

type ClientBatch = {
  readonly rawMessages: readonly unknown[]
  isEmpty: (this: ClientBatch) => boolean
  isEmptyDueToFiltering: () => boolean
}

/** Versions of the fetch request that have transactions and that kafkajs supports. */
const VERSIONS = [4, 5, 6, 7, 8, 9, 10, 11]
const repaired = new WeakSet<FetchResponse>()

type FetchResponse = { decode: (bytes: Buffer) => Promise<Decoded> }
type Decoded = { readonly responses: readonly { readonly partitions: readonly FetchedPartition[] }[] }
export type FetchedPartition = {
  abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[] | null
  /** Ordered by offset. */
  readonly messages: readonly FetchedMessage[]
}
type FetchedMessage = {
  readonly offset: string
  readonly key: Buffer | null
  isControlRecord: boolean
  /** Absent in message formats older than transactions. */
  readonly batchContext?: {
    readonly producerId: string
    readonly inTransaction: boolean
    readonly isControlBatch: boolean
  }
}

/** Marks every record of an aborted transaction. Empties `abortedTransactions`, so that kafkajs filters nothing. */
export const markAborted = (partition: FetchedPartition): void => {
  const begun = (partition.abortedTransactions ?? []).toSorted((a, b) => Number(a.firstOffset) - Number(b.firstOffset))
  partition.abortedTransactions = []
  if (begun.length === 0) return
  const aborted = new Set<string>()
  for (const message of partition.messages) {
    const { batchContext: { producerId, inTransaction, isControlBatch } = NO_TRANSACTION } = message
    for (let next = begun[0]; next && Number(next.firstOffset) <= Number(message.offset); next = begun[0]) {
      aborted.add(next.producerId)
      begun.shift()
    }
    if (isControlBatch) aborted.delete(producerId)
    else if (inTransaction && aborted.has(producerId)) message.isControlRecord = true
  }
}

const NO_TRANSACTION = { producerId: '-1', inTransaction: false, isControlBatch: false }
