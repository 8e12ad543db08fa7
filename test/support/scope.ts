/** What a test needs is let go of when the test ends, or, where tests of a file share it, when the file does. */
import { afterAll, vi } from 'vitest'

/** A test's context is one of these. */
export type Scope = { readonly onTestFinished: (release: () => Promise<void>, timeout?: number) => void }

/** Must be called where tests are declared. What was taken last is released first. */
export const fileScope = (): Scope => {
  const taken = new AsyncDisposableStack()
  afterAll(() => taken.disposeAsync(), RELEASE_TIMEOUT_MS)
  return { onTestFinished: release => taken.defer(release) }
}

export const RELEASE_TIMEOUT_MS = 60_000

/** Tries an assertion until it holds: the only waiting there is. Fails as the assertion last failed. */
export const eventually = <Result>(
  assertion: () => Result | Promise<Result>,
  { within = 90_000, every = 50 } = {},
): Promise<Result> => vi.waitFor(assertion, { timeout: within, interval: every })
