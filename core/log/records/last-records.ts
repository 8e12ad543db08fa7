/**
 * Reads the last known record of every partition of a topic again, without a consumer group.
 * In: how far each partition was read. Out: nothing, if the log has each of these records at its offset.
 * Promises: the requests go over connections of their own, so a consumer is not moved, and its fetches go on. Few
 *   records are read at a time, however many partitions there are. With a topic id, nothing of another topic is read.
 * Can go wrong: the log is another one, or has lost records (`source_changed`, `records_deleted`). Kafka does not
 *   answer, or a partition has no leader (retries, then its error).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PositionDocument } from '../../../schemas/stored/documents.ts'
import { assertLastRecord, type GenerationBody } from '../kafka/source.ts'
import type { LogCluster } from './open-cluster.ts'
import { type Pause, readLog, readUntilFound } from './read-log.ts'

/** How far a partition was read. In the order of the partitions. */
export type KnownRecords = readonly Pick<PositionDocument['body'], 'position' | 'last'>[]

/** Opens connections to a topic. */
export type OpenLog = (topic: string, signal: AbortSignal) => Promise<LogCluster>

/** Records that are read at the same time. Each comes with its whole batch. */
const READ_AT_ONCE = 4

export type LastRecordReader = {
  /** @throws StopError `source_changed`, `records_deleted`; the error of the Kafka client */
  readonly verify: (known: KnownRecords) => Promise<void>
  /** As `writtenEnds` of the cluster. @throws the error of the client */
  readonly writtenEnds: (partitions: readonly number[]) => Promise<ReadonlyMap<number, number>>
  /** Closes the connections. The next verification opens new ones. */
  readonly close: () => Promise<void>
}

/**
 * Reads last known records of a topic by connections of its own, which stay open until something fails.
 * @param pause waits between two reads of a record that is not found
 */
export const createLastRecordReader = (
  { topic, topic_id }: Pick<GenerationBody, 'topic' | 'topic_id'>,
  open: OpenLog,
  signal: AbortSignal,
  pause: Pause = sleep,
): LastRecordReader => {
  let opened: { readonly cluster: Promise<LogCluster>; readonly abort: AbortController } | undefined
  const close = async (): Promise<void> => {
    const closing = opened
    opened = undefined
    closing?.abort.abort()
    await closing?.cluster.then(cluster => cluster.disconnect()).catch(() => undefined)
  }
  const openAgain = () => {
    const abort = new AbortController()
    return { abort, cluster: open(topic, AbortSignal.any([signal, abort.signal])) }
  }
  const verify = async (known: KnownRecords): Promise<void> => {
    const waiting = known.flatMap(({ last }, partition) => (last === null ? [] : [{ partition, last }]))
    if (waiting.length === 0) return
    opened ??= openAgain()
    // One byte: the broker sends the whole batch of the record, and no other.
    const log = readLog(await opened.cluster, topic, 1, topic_id)
    const readWaiting = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { partition, last } = next
        const [entry] = (await readUntilFound(log, partition, last.offset, pause)).entries
        assertLastRecord(topic, partition, last, entry?.kind === 'record' ? entry : undefined)
      }
    }
    await Promise.all(Array.from({ length: READ_AT_ONCE }, readWaiting))
  }
  const orClose = async <Answer>(asked: Promise<Answer>): Promise<Answer> => {
    try {
      return await asked
    } catch (error) {
      await close()
      throw error
    }
  }
  return {
    verify: known => orClose(verify(known)),
    writtenEnds: async partitions => {
      // Connections that are opened after the stop would be closed by nobody.
      signal.throwIfAborted()
      opened ??= openAgain()
      return orClose(opened.cluster.then(cluster => cluster.writtenEnds(partitions)))
    },
    close,
  }
}
