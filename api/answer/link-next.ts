/**
 * In: a page that has more, and its cursor, or the ids that are left. Out: the header `Link` (RFC 8288) with the
 *   address of the next page: that of this request with all its parameters, and the cursor as `starting_after`, or
 *   these `ids`.
 */
import type { Arrived, Context } from '../http/request.ts'

/** Only while there is more: a client that follows links ends at the last page. */
export const linkNext = (
  ctx: Context<Pick<Arrived, 'path' | 'query' | 'baseAddress'>>,
  value: string,
  parameter: 'starting_after' | 'ids' = 'starting_after',
): void => {
  const { path, query, baseAddress } = ctx.state
  const parameters = new URLSearchParams(query)
  parameters.set(parameter, value)
  // The next page begins after the cursor: with both, it would be refused.
  parameters.delete('after')
  ctx.set('Link', `<${baseAddress()}${path}?${parameters}>; rel="next"`)
}
