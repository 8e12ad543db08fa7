/**
 * The only file that makes a consumer of kafkajs. In: a topic and a group. Out: batches of whole records (`unpack.ts`),
 * with the fetch offset and the end of each. Promises: the handler returns soon, so that no slow partition stalls the
 * others; nothing is committed or resolved automatically; no error of ours reaches the client.
 *
 * Hazards of kafkajs, and what prevents them:
 * - It never prefetches: the next fetch waits for the handler. The handler waits only for a small batch, and pauses
 *   after it. A partition whose batch is larger is paused until it is read.
 * - It decodes everything that a fetch brought at once, and hands over aborted records: `patch-fetch.ts` leaves it
 *   encoded, and `unpack.ts` reads it.
 * - After an out-of-range fetch it jumps to the end silently: `assign.ts` notices that the batch begins at another
 *   offset than it sought.
 * - It reads over the holes of a compacted log, which neither its settings nor its first offset show: each batch names
 *   the first missing offset.
 * - It fetches by the name of a topic, which another topic may have by then: `patch-topic-ids.ts`.
 * - It starts at the committed offset: every partition is paused in the assignment event, and sought before it resumes.
 * - Some errors of a sick Kafka end it for good: `patch-retries.ts`.
 */
import kafkajs, { type Consumer, type EachBatchPayload, type Kafka } from 'kafkajs'
import type { Batch, UndecodableBatch } from '../../ledger/index.ts'
import { nameOf, StopError } from '../../runtime/index.ts'
import { Unpacker } from '../batch/unpack.ts'
import { causesOf, readRefusal } from '../kafka/access-refusal.ts'
import { fetchedOf, leaveFetchedBytesOf } from '../kafka/patch-fetch.ts'
import { markTransientErrorsRetriable } from '../kafka/patch-retries.ts'
import { fetchByTopicId } from '../kafka/patch-topic-ids.ts'
import type { Ends, GenerationBody } from '../kafka/source.ts'
import {
  FETCH_BYTES,
  FETCH_PARTITION_BYTES,
  FETCH_REST_BYTES,
  FETCH_REST_MS,
  FETCH_WAIT_MS,
  HEARTBEAT_INTERVAL_MS,
  REBALANCE_TIMEOUT_MS,
  SESSION_TIMEOUT_MS,
  UNPACK_WAIT_MS,
} from '../limits.ts'
import type { KnownRecords } from '../records/last-records.ts'
import { assignerOf, type InstallationIdentity } from './group.ts'

/**
 * The log that a stream reads: a topic in Kafka (`core/projection/stream/kafka-log.ts`), or an archive of one
 * (`archived-log.ts`). Everything after it is the same: the positions, the decisions and the writes.
 */
export type StreamLog = {
  /** Checks that it is the log of the projection, from its first record on. @throws StopError; Unanswered */
  readonly identify: () => Promise<unknown>
  /** Checks that it has the last known record of every partition. @throws StopError; Unanswered */
  readonly verify: (known: KnownRecords, onFurther: () => void) => Promise<void>
  /** @throws StopError; Unanswered */
  readonly ends: () => Promise<Ends>
  /** Begins to read. @throws StopError */
  readonly open: (handlers: LogHandlers, signal: AbortSignal) => Promise<OpenedLog>
}

export type LogHandlers = Omit<Handlers, 'sleep'> & {
  /** A new connection was made, maybe to another log. */
  readonly onReconnected: () => void
  /** The log cannot be read. */
  readonly fail: (error: unknown) => void
}

type OpenedLog = {
  readonly consumption: Consumption
  /** Watches until the signal that every partition is read. */
  readonly watch: (signal: AbortSignal) => Promise<void>
}

export type Handlers = {
  /** Exactly these partitions are ours from now on. All are paused until they are sought and resumed. */
  readonly onAssigned: (partitions: readonly number[]) => void
  readonly onBatch: (partition: number, batch: Batch) => void
  /** A batch cannot be read: records that stand for it follow. */
  readonly onUndecodable: (partition: number, batch: UndecodableBatch) => void
  /** A part of a large batch was decompressed. */
  readonly onUnpacked: (partition: number) => void
  readonly sleep: (milliseconds: number) => Promise<void>
  /** A rebalance began. */
  readonly onRebalancing: () => void
  /** The client failed and restarts automatically. */
  readonly onTrouble: (name: string) => void
  readonly onStopped: (error: StopError) => void
}

export type Consumption = {
  readonly seek: (partition: number, offset: number) => void
  readonly pause: (partition: number) => void
  readonly resume: (partition: number) => void
  readonly commit: (partition: number, position: number) => Promise<void>
  readonly stop: () => Promise<void>
}

/** Joins the group and begins to read. @throws StopError `access_refused`; an error of the client if Kafka is away */
export const consume = async (
  kafka: Kafka,
  { topic, partitions, topic_id }: Pick<GenerationBody, 'topic' | 'partitions' | 'topic_id'>,
  groupId: string,
  installation: InstallationIdentity,
  handlers: Handlers,
): Promise<Consumption> => {
  leaveFetchedBytesOf(groupId)
  markTransientErrorsRetriable()
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: SESSION_TIMEOUT_MS,
    heartbeatInterval: HEARTBEAT_INTERVAL_MS,
    rebalanceTimeout: REBALANCE_TIMEOUT_MS,
    maxBytesPerPartition: FETCH_PARTITION_BYTES,
    maxBytes: FETCH_BYTES,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    readUncommitted: false,
    // Round robin, as the client has it; the metadata of a member names its installation.
    partitionAssigners: [assignerOf(installation)],
    // Requests name the topic by its id: a topic made anew under the same name is refused.
    ...fetchByTopicId(topic_id),
  })
  const reading = readPartitions(consumer, topic, handlers)
  listen(consumer, topic, groupId, { ...handlers, onAssigned: reading.onAssigned })
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      // One worker for each partition: none waits for another's pause. Not more, because each fetch starts all workers.
      partitionsConsumedConcurrently: partitions,
      eachBatch: async payload => {
        const bytes = await reading.take(payload)
        // Delays the next fetch: single records are then fetched and processed in fewer parts.
        if (bytes < FETCH_REST_BYTES) await handlers.sleep(FETCH_REST_MS)
      },
    })
  } catch (error) {
    await consumer.disconnect().catch(() => undefined)
    throw readRefusal(error, topic, groupId) ?? error
  }

  return {
    ...reading.consumption,
    commit: (partition, position) => consumer.commitOffsets([{ topic, partition, offset: String(position) }]),
    stop: () => {
      reading.drop()
      return consumer.disconnect()
    },
  }
}

/** Ignores the client's refusal outside of the group: the next assignment seeks every partition anew. */
const ifJoined = (act: () => void): void => {
  try {
    act()
  } catch (error) {
    if (!(error instanceof kafkajs.KafkaJSNonRetriableError)) throw error
  }
}

const listen = (consumer: Consumer, topic: string, groupId: string, handlers: Handlers): void => {
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    const partitions = payload.memberAssignment[topic] ?? []
    consumer.pause([{ topic, partitions }])
    handlers.onAssigned(partitions)
  })
  consumer.on(consumer.events.REBALANCING, () => handlers.onRebalancing())
  consumer.on(consumer.events.CRASH, ({ payload: { error, restart } }) => {
    if (restart) handlers.onTrouble(error instanceof kafkajs.KafkaJSError ? wordsOf(error) : 'Error')
    else
      handlers.onStopped(
        readRefusal(error, topic, groupId) ?? new StopError('consumer_stopped', wordsOf(error), { topic }),
      )
  })
}

/** Returns the class of an error of the client, and its cause: the code of the protocol, or the class of the first. */
const wordsOf = (error: unknown): string => {
  const causes = causesOf(error)
  const refused = causes.find(cause => cause instanceof kafkajs.KafkaJSProtocolError)
  if (refused === undefined) return [...new Set([error, causes.at(-1)].map(nameOf))].join(', ')
  const { type } = refused
  if (type !== 'INVALID_SESSION_TIMEOUT') return `${nameOf(error)}, ${type}`
  const bounds = 'group.min.session.timeout.ms and group.max.session.timeout.ms'
  return `${nameOf(error)}, ${type}: ${bounds} of the brokers must permit ${SESSION_TIMEOUT_MS}`
}

type Reading = { readonly unpacker: Unpacker; isPaused: boolean; isUnpacking: boolean }

/** Reads the partitions that are assigned. The client fetches a partition unless the flow or its unpacker is busy. */
const readPartitions = (consumer: Consumer, topic: string, handlers: Handlers) => {
  let partitions = new Map<number, Reading>()
  const seek = (partition: number, offset: number): void => {
    partitions.get(partition)?.unpacker.drop()
    ifJoined(() => consumer.seek({ topic, partition, offset: String(offset) }))
  }
  const start = (partition: number): Reading => ({
    unpacker: new Unpacker({
      topic,
      partition,
      onRecords: batch => handlers.onBatch(partition, batch),
      onUndecodable: batch => handlers.onUndecodable(partition, batch),
      onUnpacked: () => handlers.onUnpacked(partition),
      fetchFrom: offset => seek(partition, offset),
      onStopped: handlers.onStopped,
    }),
    isPaused: true,
    isUnpacking: false,
  })
  const pause = (partition: number): void => ifJoined(() => consumer.pause([{ topic, partitions: [partition] }]))
  const resume = (partition: number): void => ifJoined(() => consumer.resume([{ topic, partitions: [partition] }]))
  const drop = (): void => {
    for (const { unpacker } of partitions.values()) unpacker.drop()
  }
  return {
    drop,
    onAssigned: (assigned: readonly number[]): void => {
      drop()
      partitions = new Map(assigned.map(partition => [partition, start(partition)]))
      handlers.onAssigned(assigned)
    },
    /** Returns the bytes of the records that were passed on meanwhile. */
    take: async ({ batch, resolveOffset }: EachBatchPayload): Promise<number> => {
      const fetched = fetchedOf(batch)
      if (fetched === undefined) return 0
      const { partition, from, bytes: received } = fetched
      const reading = partitions.get(partition)
      if (reading === undefined) return 0
      const { end, passed } = reading.unpacker.take(from, received)
      try {
        if (end !== undefined) resolveOffset(String(end - 1))
      } catch {
        // The partition was revoked. The next assignment seeks anew.
      }
      const bytes = await Promise.race([passed, handlers.sleep(UNPACK_WAIT_MS)])
      if (bytes !== undefined) return bytes
      // The other partitions do not wait for a large batch, or for a flow that is full.
      reading.isUnpacking = true
      pause(partition)
      void passed.then(() => {
        reading.isUnpacking = false
        if (!reading.isPaused && partitions.get(partition) === reading) resume(partition)
      })
      return FETCH_REST_BYTES
    },
    consumption: {
      seek,
      pause: (partition: number): void => {
        const reading = partitions.get(partition)
        if (reading) reading.isPaused = true
        reading?.unpacker.pause()
        pause(partition)
      },
      resume: (partition: number): void => {
        const reading = partitions.get(partition)
        if (reading) reading.isPaused = false
        reading?.unpacker.resume()
        if (!reading?.isUnpacking) resume(partition)
      },
    },
  }
}
