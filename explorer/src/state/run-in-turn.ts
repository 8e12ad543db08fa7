/**
 * Runs one thing, again when it is wanted again. In: wishes. Out: each outcome, in order.
 * Promises: a run under way is not dropped. However often it is wanted meanwhile, it runs once more after it.
 */
export type Settled<Value> = { readonly value?: Value; readonly error?: unknown }

/** @param onSettled `isLast`: nothing is wanted since the run began */
export const runInTurn = <Value>(
  run: () => Promise<Value>,
  onSettled: (outcome: Settled<Value>, isLast: boolean) => void,
): { readonly want: () => void; readonly end: () => void } => {
  let [isRunning, isWanted, isEnded] = [false, false, false]
  const runAll = async (): Promise<void> => {
    isRunning = true
    while (isWanted && !isEnded) {
      isWanted = false
      const outcome = await run().then(
        (value): Settled<Value> => ({ value }),
        (error: unknown): Settled<Value> => ({ error }),
      )
      if (!isEnded) onSettled(outcome, !isWanted)
    }
    isRunning = false
  }
  return {
    want: () => {
      isWanted = true
      if (!isRunning) void runAll()
    },
    end: () => {
      isEnded = true
    },
  }
}
