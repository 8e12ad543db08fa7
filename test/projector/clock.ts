/** A clock that stands still until it is moved. */
import { everythingRuns } from './held.ts'

export class Clock {
  #now = 0
  #sleepers: { readonly until: number; readonly wake: () => void }[] = []

  readonly now = (): number => this.#now

  readonly sleep = (milliseconds: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      this.#sleepers.push({ until: this.#now + milliseconds, wake: resolve })
      signal?.addEventListener('abort', () => reject(signal.reason))
    })

  /** As an operator or another clock may do. Who sleeps, sleeps as long as before. */
  setBack(milliseconds: number): void {
    this.#now -= milliseconds
    this.#sleepers = this.#sleepers.map(({ until, wake }) => ({ until: until - milliseconds, wake }))
  }

  /** Moves on, and wakes those whose time has come. */
  async move(milliseconds: number): Promise<void> {
    await everythingRuns()
    this.#now += milliseconds
    const awake = this.#sleepers.filter(({ until }) => until <= this.#now)
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.#now)
    for (const { wake } of awake) wake()
    await everythingRuns()
  }
}
