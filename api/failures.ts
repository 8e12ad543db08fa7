/** The answer to each refusal code. Statuses and messages come from schemas/. No other file of api/ has a status. */
import { type RefusalCode, refusals } from '../schemas/errors.ts'
import { messages } from '../schemas/reference/messages.ts'
import { RETRY_AFTER_MAX, RETRY_AFTER_MIN } from './limits.ts'

/** Statuses of answers that are not refusals. */
export const OK = 200
export const NOT_MODIFIED = 304

/** Further statuses of the admin port. */
export const NOT_READY = 503
export const ADMIN_NOT_FOUND = 404
export const ADMIN_METHOD_REFUSED = 405

/** Elasticsearch has no memory, or no room in its queue, for a search. */
export const ELASTICSEARCH_OVERLOADED = 429

type Failure = {
  /** Whether a message given with the refusal replaces the usual one. */
  readonly shows: 'the usual message' | 'the given message'
  readonly headers?: Readonly<Record<string, string>>
  /** The connection is closed after the answer, because its further bytes cannot be trusted. */
  readonly closes?: true
  /** The same request may succeed a little later: the refusal has a Retry-After header. */
  readonly retryable?: true
}
const plain: Failure = { shows: 'the usual message' }
const closing: Failure = { ...plain, closes: true }

export const failures: Record<RefusalCode, Failure> = {
  invalid_request: { shows: 'the given message' },
  invalid_cursor: plain,
  unauthorized: { ...plain, headers: { 'WWW-Authenticate': 'Bearer' } },
  forbidden: plain,
  not_found: plain,
  method_not_allowed: { ...plain, headers: { Allow: 'GET, HEAD' } },
  request_timeout: closing,
  request_too_large: closing,
  uri_too_long: closing,
  expectation_failed: closing,
  rate_limited: { ...plain, retryable: true },
  headers_too_large: closing,
  internal: plain,
  unavailable: { ...plain, retryable: true },
}

export const isRetryable = (code: RefusalCode): boolean => failures[code].retryable === true

/** Returns random whole seconds, so that clients that were refused together do not return together. */
export const retryAfter = (random: () => number): string =>
  String(RETRY_AFTER_MIN + Math.floor(random() * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1)))

/** A refused request. Only the client that caused it sees its message; `code` and `reason` are safe to log. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly code: RefusalCode
  /** For the log and the metrics: a fixed word, never anything that was sent or stored. */
  readonly reason: string | undefined
  constructor(code: RefusalCode, given?: { readonly message?: string; readonly reason?: string }) {
    super((failures[code].shows === 'the given message' ? given?.message : undefined) ?? messages[code])
    this.code = code
    this.reason = given?.reason
  }
}

/** Returns the refusal of records that cannot be read now. `reason` names the condition that does not hold. */
export const unavailable = (reason: string): Refusal => new Refusal('unavailable', { reason })

export type RefusalAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly closes: boolean
  readonly body: Buffer
}

export const refusalAnswer = (refusal: Refusal): RefusalAnswer => {
  const failure = failures[refusal.code]
  return {
    status: refusals[refusal.code],
    headers: failure.headers ?? {},
    closes: failure.closes === true,
    body: Buffer.from(JSON.stringify({ error: { code: refusal.code, message: refusal.message } })),
  }
}
