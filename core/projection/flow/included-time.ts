/**
 * The time up to which a partition is completely published. In: observed ends of the partition, each with the clocks at
 * that moment; batches as they are read. Out: the time of an observation, once the position has reached its end.
 * Promises: every clock has reached this time: this machine's, Elasticsearch's, and the broker's as far as records show
 * it.
 */

import type { Batch } from '../../ledger/index.ts'
import { CLOCKS_APART_MS, type ClockReading } from '../../store/index.ts'
import { RECORDS_LATE_MS } from '../limits.ts'

/** The partition ended at `end` at `time`. A position that has reached `end` includes everything up to `time`. */
type Seen = { readonly end: number; readonly time: number }

export class IncludedTime {
  readonly #onRecordsBehind: (milliseconds: number) => void
  #seen: Seen[] = []
  /** The last observation, to check the broker's clock: a record at or after its `end` is younger. */
  #last: Seen | undefined
  #behind = 0
  #latest = Number.POSITIVE_INFINITY
  #known = 0

  /** @param onRecordsBehind called with the milliseconds that the broker's clock is behind; 0 when it agrees again */
  constructor(onRecordsBehind: (milliseconds: number) => void) {
    this.#onRecordsBehind = onRecordsBehind
  }

  /** @param known the published time as it was known when the clocks were read */
  sawEnd(end: number, clocks: ClockReading, known: number): void {
    this.#known = known
    this.#last = { end, time: clocks.reached }
    this.#latest = clocks.latest - this.#behind + CLOCKS_APART_MS
    // Keep only the oldest and the newest observation. The position reaches the oldest first. The newest has the latest
    // time.
    const [oldest] = this.#seen.filter(({ time }) => time <= this.#latest)
    this.#seen = [...(oldest ? [oldest] : []), { end, time: clocks.reached - this.#behind }]
  }

  /**
   * Whether a published time is ahead of every clock: the clocks were ahead when it was published. The clocks were read
   * a while ago, longer if this process stood still. A time that another owner has published since then is no proof.
   */
  isAhead(time: number): boolean {
    return time > this.#latest && time <= this.#known
  }

  /** A record appended after an observation is younger. If its timestamp is older, the broker's clock is behind. */
  sawBatch({ appended }: Batch): void {
    if (appended === 'transaction') this.#last = undefined
    else if (appended !== undefined && this.#last !== undefined && appended.offset >= this.#last.end) {
      const difference = this.#last.time - appended.time
      const behind = difference > RECORDS_LATE_MS ? difference : 0
      if (behind === this.#behind) return
      this.#behind = behind
      this.#seen = this.#seen.filter(({ time }) => time <= appended.time)
      this.#onRecordsBehind(behind)
    }
  }

  /** Returns the time that a position has reached; undefined if that is no newer than the time returned before. */
  reachedAt(position: number): number | undefined {
    const reached = this.#seen.findLast(({ end }) => end <= position)
    if (reached !== undefined) this.#seen = this.#seen.filter(({ time }) => time > reached.time)
    return reached?.time
  }
}
