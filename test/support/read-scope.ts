/** The scope of a request whose reads count no bytes. */
import { type ReadScope, readingOfProcess } from '../../core/store/read/scope.ts'

/** Returns the scope of a request of this organization. */
export const scopeOf = (org: string, signal: AbortSignal = new AbortController().signal): ReadScope => ({
  org,
  ...readingOfProcess(signal),
})
