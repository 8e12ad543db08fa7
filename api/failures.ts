/**
 * How the API fails: what is done about every code. Statuses and messages are those of schemas/.
 * No other file of api/ has a status number.
 */
import { type RefusalCode, refusals } from '../schemas/errors.ts'
import { messages } from '../schemas/reference/messages.ts'
import { RETRY_AFTER_MAX, RETRY_AFTER_MIN } from './limits.ts'

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
  /** Whether a message given with the refusal takes the place of the usual one. */
  readonly shows: 'the usual message' | 'the given message'
  readonly headers?: Readonly<Record<string, string>>
  /** The connection is closed after the answer: what else comes over it cannot be trusted. */
  readonly closes?: true
  /** The same request may be answered a little later: the refusal says after how many seconds. */
  readonly forNow?: true
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
  rate_limited: { ...plain, forNow: true },
  headers_too_large: closing,
  internal: plain,
  unavailable: { ...plain, forNow: true },
}

export const isForNow = (code: RefusalCode): boolean => failures[code].forNow === true

/** Whole seconds, not the same for all: clients that were refused together do not come again together. */
export const retryAfter = (random: () => number): string =>
  String(RETRY_AFTER_MIN + Math.floor(random() * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1)))

/** A request that is refused. Safe to log: its message is never shown anywhere but to the client that caused it. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly code: RefusalCode
  /** Why, for the log and the metrics: a word of ours, never anything that was sent or stored. */
  readonly because: string | undefined
  constructor(code: RefusalCode, given?: { readonly message?: string; readonly because?: string }) {
    super((failures[code].shows === 'the given message' ? given?.message : undefined) ?? messages[code])
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
  const failure = failures[refusal.code]
  return {
    status: refusals[refusal.code],
    headers: failure.headers ?? {},
    closes: failure.closes === true,
    body: Buffer.from(JSON.stringify({ error: { code: refusal.code, message: refusal.message } })),
  }
}
