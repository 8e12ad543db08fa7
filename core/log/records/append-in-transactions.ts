/**
 * Appends records to several partitions at once, all of them or none, with the times they had.
 *
 * In: a transactional id, and records by partition. Out: the same at the end of each partition, in one transaction. Its
 *   control record takes one more offset of each partition.
 * Promises: one process at a time appends with a transactional id. A later process that calls `takeOver` ends what is
 *   open, and the earlier one can append nothing any more, also if a request of it arrives late.
 * Can go wrong: another process took the id over (`takenOver`); Kafka is away: retries, then its error. Then it is not
 *   known whether the last transaction was committed: take the id over, and read the log.
 */
import kafkajs from 'kafkajs'
import type { RawRecord } from '../../ledger/index.ts'
import { withRight } from '../kafka/access-refusal.ts'
import { batchProducer, keepsTimes, type ProducerState, produceRequest, TRANSACTION_TIMEOUT_MS } from './append-log.ts'
import { encodeRecordBatch } from './encode-batch.ts'
import type { LogCluster } from './open-cluster.ts'

/** The offset of the first record of a batch, and whether the broker kept the times. */
export type AppendedBatch = { readonly partition: number; readonly base: number; readonly keptTimes: boolean }

export type LogTransactions = {
  /** Must be called before the first `append`. */
  readonly takeOver: () => Promise<void>
  /**
   * Appends one batch to each of these partitions. Before the commit it calls `check` with what Kafka answered: if that
   * throws, nothing is appended.
   */
  readonly append: (
    batches: ReadonlyMap<number, readonly RawRecord[]>,
    check: (appended: AppendedBatch) => void,
  ) => Promise<void>
}

/** Kafka's refusals of a producer whose transactional id another one has taken over. */
const replaced: ReadonlySet<string> = new Set(['INVALID_PRODUCER_EPOCH', 'INVALID_PRODUCER_ID_MAPPING'])

/** @param takenOver the error after another process took the id over */
export const appendInTransactions = (
  cluster: LogCluster,
  topic: string,
  transactionalId: string,
  takenOver: () => Error,
): LogTransactions => {
  let producer: { readonly producerId: string; readonly producerEpoch: number } | undefined
  /** By partition: the number of the next record. */
  const sequences = new Map<number, number>()
  const unlessReplaced = <Answer>(answer: Promise<Answer>): Promise<Answer> =>
    answer.catch((error: unknown) => {
      if (!(error instanceof kafkajs.KafkaJSError && 'type' in error && replaced.has(String(error.type)))) throw error
      throw takenOver()
    })
  const ask = <Answer>(call: Parameters<typeof cluster.onCoordinator<Answer>>[1]): Promise<Answer> =>
    unlessReplaced(
      withRight('Write', `transactional id ${transactionalId}`, cluster.onCoordinator(transactionalId, call)),
    )

  return {
    takeOver: async () => {
      producer = await ask(one => one.initProducerId({ transactionalId, transactionTimeout: TRANSACTION_TIMEOUT_MS }))
      sequences.clear()
    },
    append: async (batches, check) => {
      if (producer === undefined) throw new Error('an append before the transactional id was taken over')
      const ours = { transactionalId, ...producer }
      const end = (transactionResult: boolean) => ask(one => one.endTxn({ ...ours, transactionResult }))
      const topics = [{ topic, partitions: [...batches.keys()] }]
      await ask(one => one.addPartitionsToTxn({ ...ours, topics }))
      const appends = [...batches].map(async ([partition, records]) => {
        const sequence = sequences.get(partition) ?? 0
        const state: ProducerState = { ...ours, sequence }
        const request = produceRequest(
          topic,
          partition,
          encodeRecordBatch(records, batchProducer(state, true)),
          transactionalId,
        )
        const sent = cluster.onLeader(partition, leader => leader.connectionPool.send(request))
        const answer = await unlessReplaced(withRight('Write', `topic ${topic}`, sent))
        sequences.set(partition, sequence + records.length)
        const [appended] = answer.topics[0]?.partitions ?? []
        check({ partition, base: Number(appended?.baseOffset), keptTimes: keepsTimes(appended, records) })
      })
      // No request is under way any more when the transaction ends.
      await Promise.allSettled(appends)
      try {
        await Promise.all(appends)
      } catch (error) {
        await end(false).catch(() => undefined)
        throw error
      }
      await end(true)
    },
  }
}
