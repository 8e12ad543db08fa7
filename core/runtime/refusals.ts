/**
 * The answer to each refusal code, with the status and usual message of schemas/errors.ts. A list request gets 400
 * `invalid_request` or `invalid_cursor`, 401 `unauthorized`, 403 `forbidden`, 429 `rate_limited` or 503 `unavailable`
 * with a reason.
 */
import { messages, type RefusalCode, refusals } from '../../schemas/errors.ts'
import { RETRY_AFTER_MAX, RETRY_AFTER_MIN } from './limits.ts'

/** Other statuses of HTTP: of answers, and of the admin port. */
export const OK = 200
export const NO_CONTENT = 204
export const NOT_MODIFIED = 304
export const NOT_READY = 503
export const ADMIN_NOT_FOUND = 404
export const ADMIN_METHOD_REFUSED = 405
export const ADMIN_FAILED = 500

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

/** How each refusal code is answered. */
export const failures: Record<RefusalCode, Failure> = {
  invalid_request: { shows: 'the given message' },
  invalid_cursor: { shows: 'the given message' },
  unauthorized: { ...plain, headers: { 'WWW-Authenticate': 'Bearer' } },
  forbidden: { shows: 'the given message' },
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

/** Whether the same request may succeed a little later. */
export const isRetryable = (code: RefusalCode): boolean => failures[code].retryable === true

/** Returns random whole seconds, so that clients that were refused together do not return together. */
export const retryAfter = (random: () => number): string =>
  String(RETRY_AFTER_MIN + Math.floor(random() * (RETRY_AFTER_MAX - RETRY_AFTER_MIN + 1)))

/**
 * When the API may try a failed read again. `later`: at any time. `in parts`: one request, or the size of all, may be
 * the cause, so requests that were read together are read apart. `no`: the answer is certain.
 */
type Retry = 'later' | 'in parts' | 'no'
type Reason = {
  readonly retry: Retry
  /** Whether the request asked for more bytes than it may hold: its client can ask for fewer. */
  readonly isTooLarge?: true
}
const later: Reason = { retry: 'later' }
const tooLarge: Reason = { ...later, isTooLarge: true }
const inParts: Reason = { retry: 'in parts' }
const no: Reason = { retry: 'no' }

/** Every reason of `unavailable`. An HTTP status, or an error class that is not listed here, also means `later`. */
const unavailableReasons = {
  time_is_up: later,
  client_gone: later,
  reads_in_flight: later,
  reads_of_organization: later,
  checkpoints: later,
  checkpoint_reads_on: later,
  key_look_ups: later,
  large_answers: tooLarge,
  answer_bytes_of_process: tooLarge,
  answer_bytes_of_organization: tooLarge,
  answer_bytes_of_key: tooLarge,
  elasticsearch_connection: later,
  elasticsearch_timeout: later,
  elasticsearch_overloaded: later,
  elasticsearch_answer_broke_off: later,
  elasticsearch_timed_out: later,
  elasticsearch_partial: later,
  elasticsearch_too_many_hits: later,
  elasticsearch_too_large: inParts,
  elasticsearch_malformed_head: inParts,
  elasticsearch_malformed_hit: inParts,
  elasticsearch_malformed_search: inParts,
  elasticsearch_malformed_document: inParts,
  elasticsearch_malformed_record: inParts,
  elasticsearch_malformed_end: inParts,
  elasticsearch_malformed_index_ids: inParts,
  elasticsearch_malformed_privileges: inParts,
  no_live_generation: later,
  live_generation_changes: later,
  no_position: later,
  no_times: later,
  position_went_back: later,
  not_read_again_yet: later,
  no_key_position: later,
  keys_not_read_yet: later,
  key_malformed: later,
  version_missing: later,
  statement_missing: later,
  seal_key_unknown: later,
  seal_key_malformed: later,
  seal_key_reads: later,
  seal_keys_unavailable: later,
  seal_keys_not_set: later,
  audit_not_written: later,
  generation_made_anew: later,
  shards_unknown: later,
  roles_unknown: later,
  no_generation: no,
  indices_not_recorded: no,
  indices_replaced: no,
  index_not_shown: no,
  shard_lost: no,
  runtime_fields: no,
  index_closed: no,
  reads_blocked: no,
  documents_hidden: no,
} as const satisfies Record<string, Reason>
type UnavailableReason = keyof typeof unavailableReasons
/** Besides: a reason of `invalid_request`, if the payouts of a deal are too many bytes to be added up. */
const reasonNamed: ReadonlyMap<string | undefined, Reason> = new Map(
  Object.entries({ ...unavailableReasons, deal_bytes: tooLarge }),
)

/** A refused request. Only the client that caused it sees its message; `code` and `reason` are safe to log. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly code: RefusalCode
  /** For the log and the metrics: a fixed word, never anything that was sent or stored. */
  readonly reason: string | undefined
  /** When a failed read may be tried again. Only `unavailable` has another value than `later`. */
  readonly retry: Retry
  /** Whether the request was refused for the bytes that it asked for. */
  readonly isTooLarge: boolean
  constructor(code: RefusalCode, given?: { readonly message?: string; readonly reason?: string }) {
    super((failures[code].shows === 'the given message' ? given?.message : undefined) ?? messages[code])
    this.code = code
    this.reason = given?.reason
    const { retry, isTooLarge = false } = reasonNamed.get(this.reason) ?? later
    this.retry = retry
    this.isTooLarge = isTooLarge
  }
}

/** Returns the refusal of records that cannot be read now. `reason` names the condition that does not hold. */
export const unavailable = (reason: UnavailableReason): Refusal => new Refusal('unavailable', { reason })

type RefusalAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly closes: boolean
  readonly body: Buffer
}

/** Returns the answer to a refused request: the status, the headers of its code, and the error as JSON. */
export const refusalAnswer = (refusal: Refusal): RefusalAnswer => {
  const failure = failures[refusal.code]
  return {
    status: refusals[refusal.code],
    headers: failure.headers ?? {},
    closes: failure.closes === true,
    body: Buffer.from(JSON.stringify({ error: { code: refusal.code, message: refusal.message } })),
  }
}
