/**
 * In: a request, and the address that the operator set. Out: scheme, host and port of this API as the client knows
 *   them.
 * Promises: a client that uses the address sends its key no less safely than before. Behind a proxy that ends TLS and
 *   does not say so, it is empty, and what follows is a path, which is relative to the address that the client used.
 */
import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'

/** @param publicUrl without a path; undefined if no setting says it */
export const baseAddressOf = (
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  publicUrl: string | undefined,
): string => {
  if (publicUrl !== undefined) return publicUrl
  const { host, 'x-forwarded-proto': forwarded } = headers
  // The valid form of the host, without characters that would end the address.
  const url = URL.parse(`http://${host}`)
  if (url === null || url.pathname !== '/' || url.username !== '' || url.search !== '' || url.hash !== '') return ''
  const isSecure = socket instanceof TLSSocket || String(forwarded).split(',')[0]?.trim() === 'https'
  if (isSecure) return `https://${url.host}`
  return isLoopback(url.hostname) && forwarded === undefined ? url.origin : ''
}

const isLoopback = (name: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(name)
