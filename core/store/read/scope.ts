/**
 * The request that reads. Every read gets it: from the reader of a page down to the one that asks Elasticsearch.
 * It says for whom the read is, what ends it, and where its bytes count. The read permit of the organization is not a
 * part of it: one permit is held around all reads of a request, and no read takes another one.
 */
import type { SearchTarget } from '../../../schemas/stored/layout.ts'
import { SEARCH_TIME_MAX, SMALL_SEARCH_BYTES } from '../limits.ts'
import { type CountBytes, type MultiGet, requireAnswer, type Search, type TooMuch } from './search-client.ts'
import type { DocumentName } from './slice-documents.ts'

/**
 * Asks Elasticsearch. Calls `arrived` with the bytes of each chunk of the answer. Returns a number instead of an answer
 * that needs more bytes than expected.
 */
export type AskCounted<Answer> = (arrived: CountBytes, expected: number) => Promise<Answer | number>

/** The memory of one request: it reserves bytes before a read, and holds those that arrived. */
export type ReadMemory = {
  /** The organization of the request. */
  readonly org: string
  readonly hold: <Answer extends Buffer | TooMuch>(expected: number, ask: AskCounted<Answer>) => Promise<Answer>
}

/** One read. */
export type Reading = {
  /** Ends the read. */
  readonly signal: AbortSignal
  /** Where the bytes count: in the memory of a request, or for the whole process. */
  readonly memory: ReadMemory | 'process'
}

/** All reads of one request. */
export type ReadScope = Reading & { readonly org: string }

/** As `Search` of the client, for a request. */
export type ScopedSearch = (
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: string,
  reading: Reading,
  /** Expected bytes of the answer, if the caller knows. */
  expected?: number,
) => Promise<Buffer | TooMuch>
/** As `MultiGet` of the client, for a request. */
export type ScopedMultiGet = (names: readonly DocumentName[], reading: Reading) => Promise<Buffer>
export type ScopedReads = { readonly search: ScopedSearch; readonly multiGet: ScopedMultiGet }

/** Returns a read that counts for the whole process. */
export const readingOfProcess = (signal: AbortSignal): Reading => ({ signal, memory: 'process' })

/** Returns the reads of a client for a program that counts no bytes: a command reads page by page. */
export const uncounted = (client: { readonly search: Search; readonly multiGet: MultiGet }): ScopedReads => ({
  search: (where, body, { signal }) => client.search(where, body, signal),
  multiGet: (names, { signal }) => client.multiGet(names, signal),
})

/** Returns the answer of a search that finds little. @throws Refusal `unavailable` if there is no answer */
export const searchSmall = async (
  search: ScopedSearch,
  where: Pick<SearchTarget, 'index' | 'routing'>,
  body: object,
  reading: Reading,
): Promise<Buffer> => {
  const limits = { track_total_hits: false, timeout: `${SEARCH_TIME_MAX}ms` }
  return requireAnswer(await search(where, JSON.stringify({ ...limits, ...body }), reading, SMALL_SEARCH_BYTES))
}
