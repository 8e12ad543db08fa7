/**
 * Names the records whose times say nothing: ahead of the clock, or far before Kafka existed. Nothing is decided by it.
 * In: batches as they are read. Out: a line of the log for each such record, for the first few of a process.
 */
import { EVENT_TIME_AHEAD_MAX_MS, EVENT_TIME_MIN } from '../../../schemas/limits.ts'
import type { Batch } from '../../ledger/index.ts'
import { WRONG_TIMES_LOGGED } from '../limits.ts'

type Steps = {
  readonly now: () => number
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
}

export const createWrongTimes = (topic: string, { now, warn }: Steps): ((partition: number, batch: Batch) => void) => {
  let left = WRONG_TIMES_LOGGED
  /** By partition: batches are read again, for example after an assignment. */
  const namedTo = new Map<number, number>()
  return (partition, { records }) => {
    if (left === 0) return
    const latest = now() + EVENT_TIME_AHEAD_MAX_MS
    for (const { offset, timestamp } of records) {
      if (timestamp <= latest && timestamp >= EVENT_TIME_MIN) continue
      if (left === 0 || offset < (namedTo.get(partition) ?? 0)) continue
      namedTo.set(partition, offset + 1)
      left--
      warn?.(
        { topic, partition, offset, timestamp, more: left },
        'a record has a wrong time: ahead of the clock, or before the year 2000',
      )
    }
  }
}
