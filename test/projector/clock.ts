/** A clock that moves only when the test moves it. */
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

  /** Advances the clock and wakes the sleepers that are due. */
  async move(milliseconds: number): Promise<void> {
    await everythingRuns()
    this.#now += milliseconds
    const awake = this.#sleepers.filter(({ until }) => until <= this.#now)
    this.#sleepers = this.#sleepers.filter(({ until }) => until > this.#now)
    for (const { wake } of awake) wake()
    await everythingRuns()
  }
}
