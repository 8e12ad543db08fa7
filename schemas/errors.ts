/** The closed lists of codes that publishers and clients see: why a record is parked, and how a request is refused. */

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
