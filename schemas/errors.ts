/**
 * The closed lists of codes that publishers and clients see: why a record is parked, and how a request is refused, with
 * the message of each refusal.
 */

/** Why a record was parked. If several reasons apply, the first in this list counts. */
export const parkCodes = [
  'batch_undecodable',
  'record_undecodable',
  'type_unknown',
  'data_invalid',
  'org_mismatch',
  'partition_mismatch',
  'lines_do_not_sum',
  'id_reused',
  'period_changed',
  'rep_unknown',
  'period_unknown',
  'supersedes_mismatch',
  'payout_mismatch',
  'payroll_already_recorded',
  'payroll_reversal_invalid',
  'key_unknown',
  'chain_too_long',
] as const
export type ParkCode = (typeof parkCodes)[number]

/** How a request is refused: the code in the body and its HTTP status. */
export const refusals = {
  invalid_request: 400,
  invalid_cursor: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  request_too_large: 413,
  uri_too_long: 414,
  expectation_failed: 417,
  rate_limited: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
} as const
export type RefusalCode = keyof typeof refusals

/** Messages of refusals. They never quote the request; a refused parameter has a longer message (see the API). */
export const messages: Record<RefusalCode, string> = {
  invalid_request: 'The request is not valid.',
  invalid_cursor: '`starting_after` does not name a record of this list that this key can read.',
  unauthorized: 'A valid API key is required: `Authorization: Bearer <API key>`.',
  forbidden: 'This API key lacks a permission.',
  not_found: 'There is nothing at this address that this key can read.',
  method_not_allowed: 'Only GET and HEAD are supported.',
  request_timeout: 'The request did not arrive in time.',
  request_too_large: 'The request body is too large. The API reads no body.',
  uri_too_long: 'The URL of the request is too long.',
  expectation_failed: 'Unsupported Expect header.',
  rate_limited: 'Too many requests. Try again after the seconds in Retry-After.',
  headers_too_large: 'The headers of the request are too large or too many.',
  internal: 'The request could not be answered.',
  unavailable: 'The records cannot be read now. Try again.',
}
