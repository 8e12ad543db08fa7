/**
 * The log that a stream reads: a topic in Kafka (`core/projection/stream/kafka-log.ts`), or an archive of one
 * (`archived-log.ts`). Everything after it is the same: the positions, the decisions and the writes.
 */
import type { Batch, UndecodableBatch } from '../../ledger/index.ts'
import type { StopError } from '../../runtime/index.ts'
import type { Ends } from '../kafka/source.ts'
import type { KnownRecords } from '../records/last-records.ts'

export type StreamLog = {
  /** Checks that it is the log of the projection, from its first record on. @throws StopError; Unanswered */
  readonly identify: () => Promise<unknown>
  /** Checks that it has the last known record of every partition. @throws StopError; Unanswered */
  readonly verify: (known: KnownRecords) => Promise<void>
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
