/**
 * Limits the records a second of an archive or a restore, so that it spares a live projection.
 * Promises: the limit holds for all partitions and targets together. Lost time is made up for, but never more than
 * THROTTLE_SLACK_MS of it: a longer burst would be noticed by readers. A signal ends a wait within THROTTLE_WAIT_MS.
 */
import {
  FETCHED_AT_ONCE_BYTES,
  FETCHED_BYTES,
  FETCHED_BYTES_MIN,
  RESTORE_RECORDS,
  THROTTLE_SLACK_MS,
  THROTTLE_WAIT_MS,
  THROTTLED_BYTES,
  THROTTLED_RECORDS,
} from '../limits.ts'

export type ThrottleSteps = {
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

/** Records a second; infinite without a limit. */
export type MaxRate = number

/** Waits until this many more records are permitted. */
export type Throttle = (records: number) => Promise<void>

export const createThrottle = (maxRate: MaxRate, { elapsed, sleep, signal }: ThrottleSteps): Throttle => {
  let due = elapsed()
  return async records => {
    if (!Number.isFinite(maxRate)) return
    due = Math.max(due, elapsed() - THROTTLE_SLACK_MS) + (records * 1_000) / maxRate
    const until = due
    for (let wait = until - elapsed(); wait > 0 && !signal.aborted; wait = until - elapsed()) {
      await sleep(Math.min(wait, THROTTLE_WAIT_MS))
    }
  }
}

/** Bytes of one fetch. @param partitions that are read at once */
export const fetchBytesAt = (maxRate: MaxRate, partitions = 1): number => {
  const most = Number.isFinite(maxRate) ? THROTTLED_BYTES : FETCHED_BYTES
  return Math.min(most, Math.max(FETCHED_BYTES_MIN, Math.floor(FETCHED_AT_ONCE_BYTES / partitions)))
}

/** Records of one batch that a restore appends. */
export const batchRecordsAt = (maxRate: MaxRate): number =>
  Number.isFinite(maxRate) ? THROTTLED_RECORDS : RESTORE_RECORDS
