/**
 * In: a request that Node parsed as HTTP. Out: the same request, small enough, with a valid host, and under the base
 *   path.
 * Promises: refuses before any key is looked at. A body is read up to BODY_BYTES_MAX and dropped: behind unread bytes,
 *   the end of the connection would not be seen.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '../../core/runtime/index.ts'
import { BODY_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_COUNT_MAX, TARGET_LENGTH_MAX } from '../limits.ts'
import { noteFurtherBytes } from './one-at-a-time.ts'
import { type Arrived, BASE_PATH, countHeader, type Step } from './request.ts'

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
