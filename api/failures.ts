/**
 * How the API fails: every code with its message, and what it says besides. The statuses are the contract's (schemas/errors.ts).
 * No other file of api/ has a status number.
 */
import { type RefusalCode, refusals } from '../schemas/errors.ts'
import { UNAVAILABLE_RETRY_AFTER } from './limits.ts'

/** The statuses of answers that are no refusals. */
export const OK = 200
export const NOT_MODIFIED = 304

/** The statuses of the admin port besides. */
export const NOT_READY = 503
export const ADMIN_NOT_FOUND = 404
export const ADMIN_METHOD_REFUSED = 405

/** What Elasticsearch answers when it has no memory, or no place in its queue, for a search. */
export const ELASTICSEARCH_OVERLOADED = 429

type Failure = {
  /** What the client reads; never anything it sent. */
  readonly message: string
  /** Whether a message given with the refusal takes the place of this one. */
  readonly shows: 'this message' | 'the given message'
  readonly headers?: Readonly<Record<string, string>>
  /** The connection is closed after the answer: what else comes over it cannot be trusted. */
  readonly closes?: true
}

const GET_ONLY = { Allow: 'GET, HEAD' }

export const failures = {
  invalid_request: { message: 'The request is not valid.', shows: 'the given message' },
  invalid_cursor: {
    message: '`starting_after` does not name a record of this list that this key can read.',
    shows: 'this message',
  },
  unauthorized: {
    message: 'A valid API key is required: `Authorization: Bearer <API key>`.',
    shows: 'this message',
    headers: { 'WWW-Authenticate': 'Bearer' },
  },
  forbidden: { message: 'This API key may not read.', shows: 'this message' },
  not_found: { message: 'There is nothing at this address that this key can read.', shows: 'this message' },
  method_not_allowed: { message: 'Only GET and HEAD are offered.', shows: 'this message', headers: GET_ONLY },
  request_timeout: { message: 'The request did not arrive in time.', shows: 'this message', closes: true },
  request_too_large: { message: 'The request has a body; none is read here.', shows: 'this message', closes: true },
  uri_too_long: { message: 'The address of the request is too long.', shows: 'this message', closes: true },
  expectation_failed: { message: 'No expectation can be met here.', shows: 'this message', closes: true },
  rate_limited: { message: 'This key has made too many requests. Try again after the window.', shows: 'this message' },
  headers_too_large: { message: 'The headers of the request are too large.', shows: 'this message', closes: true },
  internal: { message: 'The request could not be answered.', shows: 'this message' },
  unavailable: {
    message: 'The records cannot be read now. Try again.',
    shows: 'this message',
    headers: { 'Retry-After': String(UNAVAILABLE_RETRY_AFTER) },
  },
} as const satisfies Record<RefusalCode, Failure>

/** A request that is refused. Safe to log: its message is never shown anywhere but to the client that caused it. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly code: RefusalCode
  /** Why, for the log and the metrics: a word of ours, never anything that was sent or stored. */
  readonly because: string | undefined
  constructor(code: RefusalCode, given?: { readonly message?: string; readonly because?: string }) {
    const failure: Failure = failures[code]
    super((failure.shows === 'the given message' ? given?.message : undefined) ?? failure.message)
    this.code = code
    this.because = given?.because
  }
}

/** Records cannot be read now: `because` says which of the things that must hold does not. */
export const unavailable = (because: string): Refusal => new Refusal('unavailable', { because })

/** A refusal as it is sent. */
export type RefusalAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly closes: boolean
  readonly body: Buffer
}

export const refusalAnswer = (refusal: Refusal): RefusalAnswer => {
  const failure: Failure = failures[refusal.code]
  return {
    status: refusals[refusal.code],
    headers: failure.headers ?? {},
    closes: failure.closes === true,
    body: Buffer.from(JSON.stringify({ error: { code: refusal.code, message: refusal.message } })),
  }
}
