/** How a large view is drawn on a slow machine: not again for the same data, and not all at once. */
import { useEffect, useMemo, useState } from 'preact/hooks'

/**
 * Returns the former value while its JSON is the same: each reading makes its objects anew, also of an answer that has
 * not changed.
 */
export const useUnchanged = <Value>(value: Value): Value => {
  const text = useMemo(() => JSON.stringify(value), [value])
  // Another value with the same text is the same value.
  return useMemo(() => value, [text])
}

/** Returns how many of `count` parts are drawn now: the first one, and one more after each was painted. */
export const useOneByOne = (count: number): number => {
  const [drawn, setDrawn] = useState(1)
  const isWaiting = drawn < count
  // An effect runs after the painting.
  useEffect(() => {
    if (isWaiting) setDrawn(drawn + 1)
  }, [drawn, isWaiting])
  return Math.min(drawn, count)
}
