/**
 * Which records of a fetch were aborted, decided as Kafka's protocol says. The client's own filter is wrong where
 * transactions overlap, and aborted records then pass as if they had been committed: it goes through the aborted ones
 * in the order the broker lists them (by where they end, not begin), takes up at most one of them a record, and
 * believes any record with a key of four zero bytes to be the end of one.
 *
 * In: the client's module of each version of the answer to a fetch. Out: the same, whose records that were aborted are
 * marked like control records: the client leaves those out of a batch and still counts their offsets.
 */
import { createRequire } from 'node:module'

/** Once is enough; calling it again changes nothing. */
export const repairAbortedFilter = (): void => {
  const load = createRequire(import.meta.url)
  for (const version of VERSIONS) {
    const response = load(`kafkajs/src/protocol/requests/fetch/v${version}/response.js`) as FetchResponse
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
 * Makes the client hand over a batch of control or aborted records only, like any other. By itself it passes over such
 * a batch and emits an event, which does not tell the offsets of its records. Consumers that use `eachMessage` must not
 * run in the same process: they would fetch such a batch for ever. Calling it again changes nothing.
 */
export const handOverEveryBatch = (): void => {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/consumer/batch') as {
    readonly prototype: ClientBatch
  }
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

/** Versions of the request that know of transactions, as far as the client goes. */
const VERSIONS = [4, 5, 6, 7, 8, 9, 10, 11]
const repaired = new WeakSet<FetchResponse>()

type FetchResponse = { decode: (bytes: Buffer) => Promise<Decoded> }
type Decoded = { readonly responses: readonly { readonly partitions: readonly FetchedPartition[] }[] }
export type FetchedPartition = {
  abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[] | null
  /** In the order of their offsets. */
  readonly messages: readonly FetchedMessage[]
}
type FetchedMessage = {
  readonly offset: string
  readonly key: Buffer | null
  isControlRecord: boolean
  /** Absent in the formats from before transactions. */
  readonly batchContext?: {
    readonly producerId: string
    readonly inTransaction: boolean
    readonly isControlBatch: boolean
  }
}

/** Marks every record of an aborted transaction, and leaves the client none to look for. */
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
