/**
 * Estimates how long a partition needs until all its records are written. In: the offset up to which it is written, and
 * the end. Out: milliseconds, by the rate of the last two refreshes. A rest does not count.
 */
type Mark = { readonly position: number; readonly at: number }

export class CatchUp {
  /** Milliseconds of a monotonic clock. */
  readonly #elapsed: () => number
  #before: Mark
  #last: Mark

  constructor(position: number, elapsed: () => number) {
    this.#elapsed = elapsed
    this.#last = this.#mark(position)
    this.#before = this.#last
  }

  /** The partition begins to work after a rest. */
  begin(position: number): void {
    this.#last = this.#mark(position)
    this.#before = this.#last
  }

  /** Records up to this position are searchable. */
  reach(position: number): void {
    this.#before = this.#last
    this.#last = this.#mark(position)
  }

  /** Returns the milliseconds until all is written, by the present rate; 0 if nothing is left. */
  left(position: number, end: number): number {
    if (end <= position) return 0
    const now = this.#mark(position)
    const passed = Math.max(1, now.at - this.#before.at)
    const written = Math.max(1, now.position - this.#before.position)
    return ((end - position) * passed) / written
  }

  #mark(position: number): Mark {
    return { position, at: this.#elapsed() }
  }
}
