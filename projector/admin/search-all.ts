/**
 * Searches an index of parked records or of lists. Promises: an answer counts every shard. A shard that does not answer
 * is an error: its records would be missing from the answer.
 */

import { Unanswered } from '../../core/runtime/index.ts'
import type { Coverage, Send } from '../../core/store/index.ts'

/** @param index one index, or several separated by commas. @throws Unanswered */
export const searchAll = async <Body extends Coverage>(
  send: Send,
  index: string,
  query: object,
  signal?: AbortSignal,
): Promise<Body> => {
  const { status, body } = await send<Body>(
    { method: 'POST', path: `/${index}/_search`, query: { allow_partial_search_results: false }, body: query },
    signal,
  )
  // Also for an index that was dropped since: the next read finds the live one.
  if (status !== 200 || body.timed_out) throw new Unanswered('elasticsearch', status)
  return body
}

/**
 * Makes all parked records searchable. The projector does not refresh them, because no reader of the API searches them.
 * @throws Unanswered
 */
export const refreshParked = async (send: Send, parkedIndex: string, signal?: AbortSignal): Promise<void> => {
  const { status, body } = await send<Coverage | undefined>(
    { method: 'POST', path: `/${parkedIndex}/_refresh` },
    signal,
  )
  if (status !== 200 || body?._shards?.failed !== 0) throw new Unanswered('elasticsearch', status)
}
