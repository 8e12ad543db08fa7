/** Calls that wait until the test completes them. Shows which calls are in flight, in order. */

type HeldCall<Argument, Result> = {
  readonly argument: Argument
  readonly letGo: (result: Result) => Promise<void>
  readonly fail: (error: unknown) => Promise<void>
}

export class Held<Argument, Result = void> {
  /** The calls in flight, the oldest first. */
  readonly calls: HeldCall<Argument, Result>[] = []
  /** The number of all calls so far. */
  count = 0

  readonly call = (argument: Argument): Promise<Result> => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const end = (act: () => void) => {
      this.calls.splice(this.calls.indexOf(call), 1)
      act()
      return everythingRuns()
    }
    const call: HeldCall<Argument, Result> = {
      argument,
      letGo: result => end(() => resolve(result)),
      fail: error => end(() => reject(error)),
    }
    this.count++
    this.calls.push(call)
    return promise
  }

  at(place: number): HeldCall<Argument, Result> {
    const call = this.calls.at(place)
    if (call === undefined) throw new Error(`no call is under way at ${place}`)
    return call
  }
}

/** Waits until all microtasks have run. */
export const everythingRuns = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
