/**
 * Makes a log anew: appends records with the times they had, and offsets that hold no record.
 *
 * In: records, or a number of offsets. Out: the same at the end of the partition.
 * Promises: an answer that is lost does not append twice (idempotent producers). Offsets without a record are filled by
 *   an aborted transaction, whose records no reader gets. Its control record takes the last of these offsets. An empty
 *   transaction has the control record only, and so fills one offset.
 * Can go wrong: somebody else appends: the caller sees it by the returned offset. Kafka is away: retries, then its
 *   error.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import type { RawRecord } from '../../ledger/index.ts'
import { withRight } from '../kafka/access-refusal.ts'
import { NO_HEADERS } from '../kafka/encoded-headers.ts'
import { loadKafkajs } from '../kafka/load-kafkajs.ts'
import type { ProtocolRequest } from '../kafka/protocol-request.ts'
import { type BatchProducer, encodeRecordBatch, latestOf } from './encode-batch.ts'
import type { LogBroker, LogCluster } from './open-cluster.ts'

export type LogAppender = {
  /** Appends one batch. Returns the offset of its first record, and whether the broker kept the times. */
  readonly append: (
    partition: number,
    records: readonly RawRecord[],
  ) => Promise<{ readonly base: number; readonly keptTimes: boolean }>
  /**
   * Appends offsets without a record up to `end`. Returns the last stable offset. It is later if others append, and
   * earlier if another producer has an open transaction.
   */
  readonly appendHole: (partition: number, end: number, timestamp: number) => Promise<number>
  /**
   * Ends a transaction that an earlier process left open, if there is one. Returns the end, and the last stable offset
   * after that, which is before the end only if another producer has an open transaction.
   */
  readonly endOpenTransaction: (partition: number) => Promise<{ readonly stable: number; readonly end: number }>
}

export type ProducerState = { readonly producerId: string; readonly producerEpoch: number; sequence: number }

const READ_UNCOMMITTED = 0
const READ_COMMITTED = 1
const LATEST = -1
const PRODUCE = 0
/** The first version of the request whose brokers accept zstd. */
const PRODUCE_VERSION = 7
const ALL_REPLICAS = -1
const APPEND_TIMEOUT_MS = 10_000
export const TRANSACTION_TIMEOUT_MS = 60_000
/** Records of one batch in a hole. */
const HOLE_RECORDS = 10_000
/**
 * A control record arrives after the broker has acknowledged the end of its transaction. In order: milliseconds between
 * two reads of the end; maximum number of reads.
 */
const END_POLL_MS = 1
const END_POLLS = 5_000
const HOLE_ATTEMPTS = 20

/** The transactional id of a partition. A later process takes it over, and ends what was open. */
const restoreTransactionOf = (topic: string, partition: number): string => `commission-restore-${topic}-${partition}`

/** @param pause waits between two reads of the end */
export const appendLog = (
  cluster: LogCluster,
  topic: string,
  pause: (milliseconds: number) => Promise<unknown> = sleep,
): LogAppender => {
  const plain = new Map<number, ProducerState>()
  const transactional = new Map<number, ProducerState>()

  const endOf = async (partition: number, isolationLevel = READ_COMMITTED): Promise<number> => {
    const topics = [{ topic, partitions: [{ partition, timestamp: LATEST }] }]
    const { responses } = await cluster.onLeader(partition, leader =>
      leader.listOffsets({ replicaId: -1, isolationLevel, topics }),
    )
    return Number(responses[0]?.partitions[0]?.offset)
  }
  const produce = async (partition: number, batch: Buffer, transactionalId: string | null) => {
    const request = produceRequest(topic, partition, batch, transactionalId)
    const answer = cluster.onLeader(partition, leader => leader.connectionPool.send(request))
    const { topics } = await withRight('Write', `topic ${topic}`, answer)
    return topics[0]?.partitions[0]
  }
  const initTransactions = async (partition: number): Promise<ProducerState> => {
    const transactionalId = restoreTransactionOf(topic, partition)
    const answer = cluster.onCoordinator(transactionalId, coordinator =>
      coordinator.initProducerId({ transactionalId, transactionTimeout: TRANSACTION_TIMEOUT_MS }),
    )
    const made = await withRight('Write', `transactional id ${transactionalId}`, answer)
    const state = { ...made, sequence: 0 }
    transactional.set(partition, state)
    return state
  }
  const waitForEnd = async (partition: number, atLeast: number): Promise<number> => {
    let end = await endOf(partition)
    for (let poll = 0; end < atLeast && poll < END_POLLS; poll++) {
      await pause(END_POLL_MS)
      end = await endOf(partition)
    }
    return end
  }
  /** Appends `missing` offsets as one aborted transaction. */
  const appendAborted = async (partition: number, missing: number, timestamp: number): Promise<void> => {
    const transactionalId = restoreTransactionOf(topic, partition)
    const state = transactional.get(partition) ?? (await initTransactions(partition))
    const { producerId, producerEpoch } = state
    const producer = { transactionalId, producerId, producerEpoch }
    const topics = [{ topic, partitions: [partition] }]
    await cluster.onCoordinator(transactionalId, one => one.addPartitionsToTxn({ ...producer, topics }))
    // The control record takes the last offset.
    for (let left = missing - 1; left > 0; left -= HOLE_RECORDS) {
      const records = Array.from({ length: Math.min(left, HOLE_RECORDS) }, () => ({ ...EMPTY_RECORD, timestamp }))
      await produce(partition, encodeRecordBatch(records, batchProducer(state, true)), transactionalId)
      state.sequence += records.length
    }
    await cluster.onCoordinator(transactionalId, one => one.endTxn({ ...producer, transactionResult: false }))
  }

  return {
    append: async (partition, records) => {
      const state = plain.get(partition) ?? (await cluster.onLeader(partition, startProducer))
      plain.set(partition, state)
      const appended = await produce(partition, encodeRecordBatch(records, batchProducer(state, false)), null)
      state.sequence += records.length
      return { base: Number(appended?.baseOffset), keptTimes: keepsTimes(appended, records) }
    },
    appendHole: async (partition, end, timestamp) => {
      for (let attempt = 1; ; attempt++) {
        const before = await endOf(partition)
        if (before >= end) return before
        try {
          await appendAborted(partition, end - before, timestamp)
        } catch (error) {
          if (!(error instanceof kafkajs.KafkaJSError) || attempt === HOLE_ATTEMPTS) throw error
          // Ends a transaction that may be open. Its control record is part of the hole.
          await initTransactions(partition)
          continue
        }
        return waitForEnd(partition, end)
      }
    },
    endOpenTransaction: async partition => {
      await initTransactions(partition)
      // The end first: a record that somebody appends between the two reads is no open transaction.
      const end = await endOf(partition, READ_UNCOMMITTED)
      return { stable: await endOf(partition), end }
    },
  }
}

const startProducer = async (broker: Pick<LogBroker, 'initProducerId'>): Promise<ProducerState> => ({
  ...(await broker.initProducerId({ transactionalId: null, transactionTimeout: TRANSACTION_TIMEOUT_MS })),
  sequence: 0,
})

export const batchProducer = (
  { producerId, producerEpoch, sequence }: ProducerState,
  isTransactional: boolean,
): BatchProducer => ({ producerId, producerEpoch, firstSequence: sequence, transactional: isTransactional })

const EMPTY_RECORD = { key: null, value: null, headers: NO_HEADERS }

type AnswerOfPartition = { readonly baseOffset: string; readonly logAppendTime: string }
type Produced = { readonly topics: readonly { readonly partitions: readonly AnswerOfPartition[] }[] }

/**
 * Whether the broker kept the times of a batch. It then answers -1. To a batch that it had before, because an answer
 * was lost, it answers the latest time of that batch.
 */
export const keepsTimes = (
  appended: Pick<AnswerOfPartition, 'logAppendTime'> | undefined,
  records: readonly Pick<RawRecord, 'timestamp'>[],
): boolean => appended?.logAppendTime === '-1' || appended?.logAppendTime === String(latestOf(records))
type Encoder = {
  writeString(text: string | null): Encoder
  writeInt16(value: number): Encoder
  writeInt32(value: number): Encoder
  writeBytes(bytes: Buffer): Encoder
  writeArray(items: readonly Encoder[]): Encoder
}

export const produceRequest = (
  topic: string,
  partition: number,
  batch: Buffer,
  transactionalId: string | null,
): ProtocolRequest<Produced> => {
  const NewEncoder = loadKafkajs<new (size?: number) => Encoder>('protocol/encoder')
  const response = loadKafkajs<ProtocolRequest<Produced>['response']>(
    `protocol/requests/produce/v${PRODUCE_VERSION}/response.js`,
  )
  const encode = async (): Promise<Encoder> => {
    const partitions = [new NewEncoder(batch.length + 64).writeInt32(partition).writeBytes(batch)]
    return new NewEncoder(batch.length + 256)
      .writeString(transactionalId)
      .writeInt16(ALL_REPLICAS)
      .writeInt32(APPEND_TIMEOUT_MS)
      .writeArray([new NewEncoder(batch.length + 128).writeString(topic).writeArray(partitions)])
  }
  return { request: { apiKey: PRODUCE, apiVersion: PRODUCE_VERSION, apiName: 'Produce', encode }, response }
}
