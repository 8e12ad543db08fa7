/**
 * An archive as the log of a stream. In: entries of the archive, from any offset on. Out: batches as from Kafka.
 * Promises: this process reads all partitions, each from the offset given to `seek`, and only while it is not paused. A
 *   batch skips the holes of the log. Nothing is read after an error: it ends the stream.
 * The ends are those of the archive when it was opened: nothing says up to which time it is complete.
 */
import { setImmediate } from 'node:timers/promises'
import { type Batch, bytesOfAll } from '../../ledger/index.ts'
import type { Ends } from '../kafka/source.ts'
import { FETCH_PARTITION_BYTES } from '../limits.ts'
import type { LogEntry, LogReader } from '../records/read-log.ts'
import type { StreamLog } from './consume.ts'

/** An archive that was verified. */
export type VerifiedLog = { readonly reader: LogReader; readonly archivedEnds: Ends }

type Reading = { next: number; paused: boolean; running: boolean }

export const archivedLog = ({ reader, archivedEnds }: VerifiedLog): StreamLog => {
  const ends = async (): Promise<Ends> => archivedEnds
  return {
    identify: ends,
    ends,
    // The archive was verified, and each partition begins with its last known record.
    verify: async () => undefined,
    open: async ({ onAssigned, onBatch, fail }) => {
      const partitions = new Map(archivedEnds.map(({ partition }) => [partition, newReading()]))
      let stopped = false
      const run = async (partition: number, reading: Reading): Promise<void> => {
        const end = archivedEnds.find(one => one.partition === partition)?.end ?? 0
        const isActive = (): boolean => !stopped && !reading.paused && reading.next < end
        try {
          while (isActive()) {
            const from = reading.next
            const { entries } = await reader.read(partition, from)
            // Lets requests and signals through: an opened segment is read without any waiting.
            await setImmediate()
            if (!isActive() || reading.next !== from) continue
            const batch = batchOf(from, entries.slice(0, countWithin(entries, FETCH_PARTITION_BYTES)))
            // Before the handler, which may seek.
            reading.next = batch.end
            onBatch(partition, batch)
          }
        } finally {
          // No await comes between the loop and this line. So a later resume starts the loop again.
          reading.running = false
        }
      }
      const keepRunning = (partition: number): void => {
        const reading = partitions.get(partition)
        if (reading === undefined || reading.running) return
        reading.running = true
        run(partition, reading).catch(error => {
          stopped = true
          fail(error)
        })
      }
      const change = (partition: number, changes: Partial<Reading>): void => {
        const reading = partitions.get(partition)
        if (reading) Object.assign(reading, changes)
        keepRunning(partition)
      }
      onAssigned([...partitions.keys()])
      const consumption = {
        seek: (partition: number, next: number) => change(partition, { next }),
        pause: (partition: number) => change(partition, { paused: true }),
        resume: (partition: number) => change(partition, { paused: false }),
        commit: async () => undefined,
        stop: async () => {
          stopped = true
        },
      }
      return { consumption, watch: async () => undefined }
    },
  }
}

const newReading = (): Reading => ({ next: 0, paused: true, running: false })

/** The number of entries, from the first, that have at most `bytesMax` bytes; at least one. */
const countWithin = (entries: readonly LogEntry[], bytesMax: number): number => {
  let bytes = 0
  const over = entries.findIndex(entry => {
    bytes += bytesOfAll([entry])
    return bytes > bytesMax
  })
  return over === -1 ? entries.length : Math.max(1, over)
}

/** Entries that readers do not see are holes: the batch goes past them. */
const batchOf = (from: number, entries: readonly LogEntry[]): Batch => ({
  from,
  end: from + entries.length,
  records: entries.filter(({ kind }) => kind === 'record'),
})
