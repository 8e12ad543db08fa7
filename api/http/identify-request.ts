/**
 * In: a request. Out: the same request with a new id (`X-Request-Id` of its answer), its parsed target, and an abort
 *   signal.
 * Promises: the client never chooses the id. When the client leaves or the time is up, the signal ends the reads.
 */

import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { abortReason, type Schedule } from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import { type Arrived, readTarget, type Step, type Timed } from './request.ts'

/** Returns what is known of a request from the start. */
export const arrivedOf = (
  request: IncomingMessage,
  { newRequestId, publicUrl }: { readonly newRequestId: () => string; readonly publicUrl?: string | undefined },
): Arrived => ({
  requestId: newRequestId(),
  ...readTarget(request.url ?? ''),
  baseAddress: () => baseAddressOf(request, publicUrl),
  spent: { waited: 0, bytesRead: 0, added: { bytes: 0, isFirst: false }, held: undefined },
})

/** Step: shows the id of the request, and adds its signal. */
export const identifyRequest = (later: Schedule): Step<Arrived, Timed> => {
  return async (ctx, next) => {
    const ending = new AbortController()
    ctx.set('X-Request-Id', ctx.state.requestId)
    ctx.set('X-Content-Type-Options', 'nosniff')

    const leave = () => ending.abort(abortReason('client_gone'))
    const timeIsUp = (): void => ending.abort(abortReason('time_is_up'))
    let cancel = later(READ_TIME_MAX, timeIsUp)
    const renewTime = (milliseconds: number): void => {
      cancel()
      cancel = later(READ_TIME_MAX + milliseconds, timeIsUp)
    }
    ctx.res.once('close', leave)
    try {
      await next({ signal: ending.signal, renewTime })
    } finally {
      cancel()
      ctx.res.removeListener('close', leave)
    }
  }
}

/**
 * Returns scheme, host and port of this API as the client knows them. The address never makes a client send its key
 * over a less safe connection. Behind a proxy that ends TLS and does not say so, it is empty, and what follows is a
 * path, which is relative to the address that the client used.
 * @param publicUrl without a path; undefined if no setting says it
 */
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
