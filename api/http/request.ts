/**
 * A request: its type, and all that happens before a key is looked at.
 * In: a request that Node parsed as HTTP. Out: the same request with a new id (`X-Request-Id` of its answer), its
 *   parsed target, and an abort signal; small enough, with a valid host, and under the base path.
 * Promises: the client never chooses the id. When the client leaves or the time is up, the signal ends the reads. A
 *   body is read up to BODY_BYTES_MAX and dropped: behind unread bytes, the end of the connection would not be seen.
 *
 * Each step adds fields to the state of a request, and the types say which. A step names the fields that it needs and
 * the fields that it adds: a handler that needs the key takes a type that has the key. Only `startSteps` adds fields,
 * except those of `Arrived` (`arrivedOf`). `spent`, `audited` and `form` are objects that later steps fill. A step that
 * wraps others may read the fields that they added (`KnownSoFar`). They are absent if the request was refused before.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { TLSSocket } from 'node:tls'
import type Koa from 'koa'
import type { Added, KeyHolder, Moment } from '../../core/reading/index.ts'
import { abortReason, Refusal, type Schedule } from '../../core/runtime/index.ts'
import {
  READ_TIME_MAX,
  type ReadPosition,
  type ReadScope,
  type Reservation,
  type Turn,
} from '../../core/store/index.ts'
import { BODY_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_COUNT_MAX, TARGET_LENGTH_MAX } from '../limits.ts'
import { noteFurtherBytes } from './server.ts'

/** A request on its way, with what is known of it. */
export type Context<Known> = Koa.ParameterizedContext<Known>

/** Known from the start. */
export type Arrived = {
  readonly requestId: string
  /** The raw target before the first question mark; `query` is the rest. */
  readonly path: string
  readonly query: string
  /** Scheme, host and port of this API as the client knows them; '' if they are not known for sure. */
  readonly baseAddress: () => string
  readonly spent: Spent
}

/** Spent by a request so far: it counts also if the request is refused. */
export type Spent = {
  /** Milliseconds that the request has waited for a change. */
  waited: number
  /** Bytes that all reads of the request took, also those that failed or were repeated. */
  bytesRead: number
  /** Records that were added up in place of an answer with them. */
  added: Added
  /** Undefined until memory is reserved, and while the request waits for a change. */
  held: Held | undefined
}

/** Held by the reads of a request and by its answer. */
export type Held = {
  /** Bytes of the budget. */
  readonly reservation: Reservation
  /** Answers of Elasticsearch that can be freed once the answer to the client is made. */
  readonly reads: readonly Buffer[]
  /** The turn of the request for a large answer of its organization. */
  readonly turn: Turn
}

/** Added by audit-reads.ts: the records of the answer; undefined if reads are not audited. */
export type Audited = { readonly audited: AuditedRead | undefined }
/** The records that an answer is about, and what was asked for. */
export type AuditedRead = {
  /** Undefined until the route has set them. */
  ids: readonly string[] | undefined
  /** Number of records, or of rows, in the body of the answer. */
  count: number
  asOf: Moment | undefined
  /** Of totals: the only rep, the only period and the only deal. */
  rep: string | undefined
  period: string | undefined
  deal: string | undefined
  /** A key that was refused because of the address of its client. */
  refusedKey: KeyHolder | undefined
}

/**
 * Notes which records the answer is about. While reads are not audited, this costs nothing.
 * @param ids called only if reads are audited
 * @param count of them shown
 */
export const noteRecordsForAudit = (
  { state: { audited } }: Context<Audited>,
  ids: () => readonly string[],
  count?: number,
): void => {
  if (audited === undefined) return
  audited.ids = ids()
  audited.count = count ?? audited.ids.length
}

/** Added by `identifyRequest`. */
export type Timed = {
  /** Ends reads of Elasticsearch when the time is up or the client has gone. */
  readonly signal: AbortSignal
  /** Begins the time limit of the request again, and extends it by these milliseconds. */
  readonly renewTime: (milliseconds: number) => void
}

/** Added by `findRoute`. */
export type Routed = {
  /** Pattern of the route; undefined for unknown paths. */
  readonly route: string | undefined
  readonly methodOffered: boolean
  /** Whether the answer is made in a buffer of its own, beside the documents that it is made of. */
  readonly isCopied: boolean
}
/** Added by `requireRoute`: the path is known. */
export type Offered = { readonly route: string }

/** Added by authenticate.ts. */
export type Authenticated = {
  readonly key: KeyHolder
  /** Rejects if the key was revoked after the request was authenticated. */
  readonly recheckKey: () => Promise<void>
}

/** Added by limit-rate.ts. */
export type Counted = {
  /** Refunds the unit that the request was charged. */
  readonly refundUnit: () => void
}

/** Added by wait-for-change.ts. It replaces `refundUnit`: a short wait refunds nothing. */
export type Waited = Counted & {
  /** A position if no change is between it and the cursor of the request: its page is empty. */
  readonly nothingBefore: ReadPosition | undefined
}

/**
 * Added by `reserveReads`. `scope`: for whom is read, what ends it, and where its bytes are counted. `reservation` is
 * that of `spent.held`.
 */
export type Reserved = {
  readonly scope: ReadScope
  readonly reservation: Reservation
  readonly form: AnswerForm
}
/** The entity tag and the age of an answer depend on this, besides its content. The route sets it. */
export type AnswerForm = {
  /**
   * Whether the answer with this tag does not change: a record or totals as of a change, read twice with this tag.
   * @param generation its name
   */
  isFixed: (etag: string, generation: string) => boolean
  /** The state of the sealed texts in the answer; undefined if it has none. Such an answer changes with an erasure. */
  sealState: string | undefined
}

/** Known to the routes. */
export type Answerable = Arrived & Audited & Timed & Offered & Authenticated & Waited & Reserved

/** How far a request came. */
export type KnownSoFar = Partial<Pick<Routed, 'route'> & Pick<Authenticated, 'key'>>

/** All paths of the API begin with this. */
export const BASE_PATH = '/api/v1'

/**
 * Returns path and query of a request target. Decodes, normalises and repairs nothing: a path must match exactly. The
 * absolute form (`GET http://host/path`) is the same target.
 */
const readTarget = (target: string): { path: string; query: string } => {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)
  const from = origin ? origin[0].length : 0
  const mark = target.indexOf('?', from)
  const path = mark === -1 ? target.slice(from) : target.slice(from, mark)
  return { path: path === '' ? '/' : path, query: mark === -1 ? '' : target.slice(mark + 1) }
}

/** Counts a header in the raw headers, because Node merges or drops repeated ones. */
export const countHeader = (rawHeaders: readonly string[], name: string): number => {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) count++
  return count
}

/** Does something with a request that has what it needs. Hands on what it adds, or answers the request itself. */
export type Step<Needs, Adds = void> = (ctx: Context<Needs>, next: (adds: Adds) => Promise<void>) => Promise<void>

type Rest<Known> = (ctx: Context<Known>) => Promise<void>
type With<Known, Adds> = Adds extends void ? Known : Omit<Known, keyof Adds> & Adds

type Steps<Given, Known> = {
  readonly step: <Adds = void>(step: Step<Known, Adds>) => Steps<Given, With<Known, Adds>>
  /** Ends with what answers the request. Returns all steps as one. */
  readonly end: (answer: Rest<Known>) => Rest<Given>
}

/**
 * Begins with requests of which this much is given. `startSteps().step(a).step(b).end(c)` is
 * `ctx => a(ctx, () => b(ctx, () => c(ctx)))`; what a step adds is in `ctx.state` of those after it.
 */
export const startSteps = <Given>(): Steps<Given, Given> => after(rest => rest)

/** @param around puts all steps so far around the rest */
const after = <Given, Known>(around: (rest: Rest<Known>) => Rest<Given>): Steps<Given, Known> => ({
  step: <Adds>(step: Step<Known, Adds>) =>
    after<Given, With<Known, Adds>>(rest => around(async ctx => step(ctx, adds => rest(added(ctx, adds))))),
  end: around,
})

const added = <Known, Adds>(ctx: Context<Known>, adds: Adds): Context<With<Known, Adds>> => {
  Object.assign(ctx.state as object, adds)
  return ctx as unknown as Context<With<Known, Adds>>
}

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
