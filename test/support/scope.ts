/** Releases the resources of a test when the test ends, or when its file ends if its tests share them. */
import { afterAll, vi } from 'vitest'

/** The context of a Vitest test is a `Scope`. */
export type Scope = { readonly onTestFinished: (release: () => Promise<void>, timeout?: number) => void }

/** Must be called where tests are declared. Releases in reverse order. */
export const fileScope = (): Scope => {
  const taken = new AsyncDisposableStack()
  afterAll(() => taken.disposeAsync(), RELEASE_TIMEOUT_MS)
  return { onTestFinished: release => taken.defer(release) }
}

export const RELEASE_TIMEOUT_MS = 300_000

/** Retries an assertion until it holds: the only way to wait in tests. Times in milliseconds. */
export const eventually = <Result>(
  assertion: () => Result | Promise<Result>,
  { within = 240_000, every = 50 } = {},
): Promise<Result> => vi.waitFor(assertion, { timeout: within, interval: every })
