/**
 * Virtual time. The clock jumps to the next event and runs it. Between two events all code that can run without waiting
 * runs to its end, and nothing else. So a run depends on its seed alone.
 *
 * A `Host` is a simulated process. It can be frozen: everything that reaches it waits, in order. It can be killed:
 * nothing reaches it, but requests that it sent still have their effects. Not simulated: a slow process, and code that
 * is interrupted in the middle.
 */

export type Cancel = () => void

/** First instant of every run, in milliseconds since 1970. */
export const BEGINNING = Date.UTC(2026, 0, 1)

type Event = { readonly time: number; readonly order: number; run: (() => void) | undefined }

export class Clock {
  #time = 0
  #order = 0
  readonly #events: Event[] = []
  /** Whether file I/O is under way. Virtual time stands still meanwhile. */
  isWaitingForFiles = (): boolean => false
  /** Number of events so far. It limits a run that never ends. */
  happened = 0

  readonly now = (): number => BEGINNING + Math.floor(this.#time)
  /** For those who tell a clock that can be set from a monotonic one. */
  readonly clocks = { now: this.now, elapsed: this.now }

  /** Milliseconds since the beginning. */
  get elapsed(): number {
    return this.#time
  }

  after(milliseconds: number, run: () => void): Cancel {
    const event: Event = { time: this.#time + Math.max(0, milliseconds), order: this.#order++, run }
    push(this.#events, event)
    return () => {
      event.run = undefined
    }
  }

  /** Runs events until `reached()`, a timeout, or the last event. Returns whether `reached()` was true. */
  async runUntil(reached: () => boolean, milliseconds = Number.POSITIVE_INFINITY): Promise<boolean> {
    const deadline = this.#time + milliseconds
    for (;;) {
      // `setImmediate` runs after all callbacks of settled promises.
      do await new Promise(resolve => setImmediate(resolve))
      while (this.isWaitingForFiles())
      if (reached()) return true
      const event = this.#next(deadline)
      if (event === undefined) return false
      event()
    }
  }

  #next(deadline: number): (() => void) | undefined {
    for (;;) {
      const first = this.#events[0]
      if (first === undefined || first.time > deadline) {
        this.#time = Math.min(deadline, Math.max(this.#time, first?.time ?? this.#time))
        return undefined
      }
      pop(this.#events)
      const { run, time } = first
      if (run === undefined) continue
      this.#time = time
      this.happened++
      return run
    }
  }
}

const isBefore = (a: Event, b: Event): boolean => a.time < b.time || (a.time === b.time && a.order < b.order)

/** A binary heap: the first item is the next event. */
const push = (heap: Event[], event: Event): void => {
  let at = heap.length
  heap.push(event)
  while (at > 0) {
    const above = (at - 1) >> 1
    const parent = heap[above]
    if (parent === undefined || !isBefore(event, parent)) break
    heap[at] = parent
    at = above
  }
  heap[at] = event
}

const pop = (heap: Event[]): void => {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let below = 2 * at + 1
    let child = heap[below]
    if (child === undefined) break
    const right = heap[below + 1]
    if (right !== undefined && isBefore(right, child)) {
      child = right
      below++
    }
    if (!isBefore(child, last)) break
    heap[at] = child
    at = below
  }
  heap[at] = last
}

export class SimulatedProcess {
  readonly clock: Clock
  readonly name: string
  #state: 'running' | 'frozen' | 'dead' = 'running'
  /** Called before the process sends a request. */
  onStep: () => void = () => undefined
  /** Called with each request to Kafka or Elasticsearch, those of fetches and looks at topics included. */
  onRequest: () => void = () => undefined
  #waiting: (() => void)[] = []

  constructor(clock: Clock, name: string) {
    this.clock = clock
    this.name = name
  }

  get isDead(): boolean {
    return this.#state === 'dead'
  }

  get isFrozen(): boolean {
    return this.#state === 'frozen'
  }

  /** Runs `event` in the process now, after a thaw, or never. */
  deliver(event: () => void): void {
    if (this.#state === 'frozen') this.#waiting.push(event)
    else if (this.#state === 'running') event()
  }

  after(milliseconds: number, event: () => void): Cancel {
    let cancelled = false
    const cancel = this.clock.after(milliseconds, () => this.deliver(() => cancelled || event()))
    return () => {
      cancelled = true
      cancel()
    }
  }

  readonly sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      const cancel = this.after(milliseconds, () => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      })
      const onAbort = (): void => {
        cancel()
        reject(signal.reason)
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })

  freeze(): void {
    if (this.#state === 'running') this.#state = 'frozen'
  }

  thaw(): void {
    if (this.#state !== 'frozen') return
    this.#state = 'running'
    const waiting = this.#waiting
    this.#waiting = []
    // One after the other, like an event loop. A new freeze makes the rest wait again.
    for (const event of waiting) this.clock.after(0, () => this.deliver(event))
  }

  kill(): void {
    this.#state = 'dead'
    this.#waiting = []
  }
}
