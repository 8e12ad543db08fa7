/**
 * A request arrives: all that happens before a key is looked at.
 * In: a request that Node parsed as HTTP. Out: the same request with a new id (`X-Request-Id` of its answer), its
 *   parsed target, and an abort signal; small enough, with a valid host, and under the base path.
 * Promises: the client never chooses the id. When the client leaves or the time is up, the signal ends the reads. A
 *   body is read up to BODY_BYTES_MAX and dropped: behind unread bytes, the end of the connection would not be seen.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { TLSSocket } from 'node:tls'
import { abortReason, Refusal, type Schedule } from '../../core/runtime/index.ts'
import { READ_TIME_MAX } from '../../core/store/index.ts'
import { BODY_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_COUNT_MAX, TARGET_LENGTH_MAX } from '../limits.ts'
import { type Arrived, BASE_PATH, countHeader, readTarget, type Step, type Timed } from './request.ts'
import { noteFurtherBytes } from './server.ts'

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

/** Step: passes a request that is small enough and well-formed. @throws Refusal for any other */
export const refuseEarly: Step<Arrived> = async (ctx, next) => {
  const { req } = ctx
  if ((req.url ?? '').length > TARGET_LENGTH_MAX) throw new Refusal('uri_too_long')
  if (headersAreTooLarge(req.rawHeaders)) throw new Refusal('headers_too_large')
  const unreadable = whyUnreadable(req)
  if (unreadable !== undefined) {
    ctx.set('Connection', 'close')
    throw new Refusal('invalid_request', { message: unreadable })
  }
  if (req.headers.expect !== undefined && !isContinue(req.headers.expect)) throw new Refusal('expectation_failed')
  if (Number(req.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw new Refusal('request_too_large')
  // The bytes after the headers are not read as the next request.
  if (hasBody(req)) {
    ctx.set('Connection', 'close')
    dropBody(req, ctx.res)
  }
  const { path } = ctx.state
  if (path !== BASE_PATH && !path.startsWith(`${BASE_PATH}/`)) throw new Refusal('not_found')
  await next()
}

/** Above the limit the rest is left unread. */
const dropBody = (req: IncomingMessage, res: ServerResponse): void => {
  let bytes = 0
  const drop = (chunk: Buffer): void => {
    bytes += chunk.length
    if (bytes <= BODY_BYTES_MAX) return
    req.removeListener('data', drop).pause()
    noteFurtherBytes(res)
  }
  // An aborted body is an error of the request. The response is not affected.
  req.on('error', () => undefined).on('data', drop)
}

const isContinue = (expect: string): boolean => expect.toLowerCase() === '100-continue'

const headersAreTooLarge = (rawHeaders: readonly string[]): boolean => {
  let bytes = 0
  for (const text of rawHeaders) bytes += text.length + 2
  return bytes > HEADERS_BYTES_MAX || rawHeaders.length / 2 > HEADERS_COUNT_MAX
}

/** Returns why a request is refused although Node accepts it. */
const whyUnreadable = ({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined => {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'Unsupported HTTP version.'
  const hosts = countHeader(rawHeaders, 'host')
  if (hosts > 1) return 'The request has more than one Host header.'
  if (hosts === 0 && httpVersion === '1.1') return 'The request has no Host header.'
  const encoding = headers['transfer-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') return 'Unsupported transfer encoding.'
  return undefined
}

const hasBody = (req: IncomingMessage): boolean =>
  Number(req.headers['content-length'] ?? 0) > 0 || req.headers['transfer-encoding'] !== undefined

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
  // A request of HTTP/1.0 may name none.
  if (host === undefined) return ''
  // The valid form of the host, without characters that would end the address.
  const url = URL.parse(`http://${host}`)
  if (url === null || url.pathname !== '/' || url.username !== '' || url.search !== '' || url.hash !== '') return ''
  const isSecure = socket instanceof TLSSocket || String(forwarded).split(',')[0]?.trim() === 'https'
  if (isSecure) return `https://${url.host}`
  return isLoopback(url.hostname) && forwarded === undefined ? url.origin : ''
}

const isLoopback = (name: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(name)
