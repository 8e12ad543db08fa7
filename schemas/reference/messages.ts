/** Messages of refusals. They never quote the request; a refused parameter has a longer message (see the API). */
import type { RefusalCode } from '../errors.ts'

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
