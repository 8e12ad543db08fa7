/**
 * The time up to which everything in a partition is published. In: looks at the end of the partition, each with the
 * clocks at that moment; batches as they are read. Out: the time of a look, once the position has reached the end that
 * this look saw.
 * Promises: every clock has reached this time: this machine's, Elasticsearch's, and the broker's as far as records show
 * it.
 */
import type { Reading } from '../elasticsearch/clocks.ts'
import { CLOCKS_APART_MS, RECORDS_LATE_MS } from '../limits.ts'
import type { Batch } from './queue.ts'

/** All of the partition up to `end` was there at `time`: true of the position once it has reached `end`. */
type Seen = { readonly end: number; readonly time: number }

export class IncludedTime {
  readonly #onRecordsBehind: (milliseconds: number) => void
  #seen: Seen[] = []
  /** The last look, to compare the broker's clock with: a record from there on is younger. */
  #last: Seen | undefined
  #behind = 0
  #latest = Number.POSITIVE_INFINITY

  /** @param onRecordsBehind told by how much the broker's clock is behind; 0 when it no longer is */
  constructor(onRecordsBehind: (milliseconds: number) => void) {
    this.#onRecordsBehind = onRecordsBehind
  }

  sawEnd(end: number, clocks: Reading): void {
    this.#last = { end, time: clocks.reached }
    this.#latest = clocks.latest - this.#behind + CLOCKS_APART_MS
    // Keep only the oldest and the newest observation: the oldest is reached next, the newest says most.
    const [oldest] = this.#seen.filter(({ time }) => !this.isAhead(time))
    this.#seen = [...(oldest ? [oldest] : []), { end, time: clocks.reached - this.#behind }]
  }

  /** Whether a time is not over, whichever clock is right: the clocks were ahead when it was told. */
  isAhead(time: number): boolean {
    return time > this.#latest
  }

  /**
   * A record that came after a look is younger than that look. Where its time is older, the broker's clock is behind.
   */
  read({ appended }: Batch): void {
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

  /** The time that a position has reached; undefined when that is none that was not told before. */
  reachedAt(position: number): number | undefined {
    const reached = this.#seen.findLast(({ end }) => end <= position)
    if (reached !== undefined) this.#seen = this.#seen.filter(({ time }) => time > reached.time)
    return reached?.time
  }
}
