/**
 * In: a page that has more, and its cursor. Out: the header `Link` (RFC 8288) with the address of the next page: that
 *   of this request with all its parameters, and the cursor as `starting_after`.
 * Promises: a client that follows the link sends its key no less safely than before. Behind a proxy that ends TLS and
 *   does not say so, the address is only a path, which is relative to the address that the client used.
 */
import type { Arrived, Context } from '../http/request.ts'

/** Only while there is more: a client that follows links ends at the last page. */
export const linkNext = (ctx: Context<Pick<Arrived, 'path' | 'query' | 'publicUrl'>>, cursor: string): void => {
  const { path, query, publicUrl } = ctx.state
  const parameters = new URLSearchParams(query)
  parameters.set('starting_after', cursor)
  const base = publicUrl ?? baseOf(ctx)
  ctx.set('Link', `<${base}${path}?${parameters}>; rel="next"`)
}

/** Scheme and host as the client knows them; '' if they are not known for sure. */
const baseOf = ({ req, secure }: Context<unknown>): string => {
  const { host, 'x-forwarded-proto': forwarded } = req.headers
  // The valid form of the host, without characters that would end the address.
  const url = URL.parse(`http://${host}`)
  if (url === null || url.pathname !== '/' || url.username !== '' || url.search !== '' || url.hash !== '') return ''
  if (secure || String(forwarded).split(',')[0]?.trim() === 'https') return `https://${url.host}`
  return isLoopback(url.hostname) && forwarded === undefined ? url.origin : ''
}

const isLoopback = (name: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(name)
