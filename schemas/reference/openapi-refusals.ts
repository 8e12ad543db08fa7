/** Refusals in the OpenAPI document: their reasons, their headers, and the operations that return them. */
import { type RefusalCode, refusals } from '../errors.ts'
import { keysOf } from '../objects.ts'
import { messages } from './messages.ts'
import type { headers } from './openapi-headers.ts'
import { headerRefs, type Json, ref } from './openapi-parts.ts'

const reasons: Record<RefusalCode, string> = {
  invalid_request: 'A bad parameter (its name is in the message), or bytes that are not HTTP.',
  invalid_cursor: '`starting_after` does not name a record of this list that this key can read.',
  unauthorized: 'The Authorization header is missing, repeated or malformed, or names an unknown or revoked key.',
  forbidden: 'The key is valid but may not read.',
  not_found: 'No such path, or no record with that id that this key can read.',
  method_not_allowed: 'A method other than GET or HEAD.',
  request_timeout: 'The headers of the request did not arrive in time.',
  request_too_large: 'The request body is too large. The API reads no body.',
  uri_too_long: 'The URL of the request is too long.',
  expectation_failed: 'The request has an Expect header other than `100-continue`.',
  rate_limited:
    'The key has used the units of its window. Or the key, or its organization, has too many requests under way. Or the client address tried many unknown keys, and too many look-ups for such addresses wait (then without RateLimit headers). Try again after `Retry-After`.',
  headers_too_large: 'The headers of the request are too large or too many.',
  internal: 'The request could not be answered.',
  unavailable:
    'The records cannot be read now. The API never returns a page with missing records instead. Also if other requests of the same organization use its whole share of reads. Try again after `Retry-After`.',
}

export const always = ['X-Request-Id', 'X-Content-Type-Options'] as const
const authenticated = [...always, 'Cache-Control', 'Vary'] as const
export const counted = [...authenticated, 'RateLimit-Policy', 'RateLimit'] as const
const headersOf: Partial<Record<RefusalCode, readonly (keyof typeof headers)[]>> = {
  unauthorized: [...authenticated, 'WWW-Authenticate'],
  forbidden: counted,
  not_found: counted,
  rate_limited: [...counted, 'Retry-After'],
  method_not_allowed: [...always, 'Allow'],
  unavailable: [...always, 'Retry-After'],
}

/** Refusals of one status share a response: OpenAPI describes responses by status. */
export const refusalResponses = Object.fromEntries(
  [...new Set(Object.values(refusals))].map(status => {
    const codes = keysOf(refusals).filter(code => refusals[code] === status)
    const response = {
      description: codes.map(code => `\`${code}\`: ${reasons[code]}`).join(' '),
      headers: headerRefs(codes.length === 1 && codes[0] ? (headersOf[codes[0]] ?? always) : always),
      content: {
        'application/json': {
          schema: ref('schemas', 'Refusal'),
          examples: Object.fromEntries(
            codes.map(code => [code, { value: { error: { code, message: messages[code] } } }]),
          ),
        },
      },
    }
    return [`Refused${status}`, response]
  }),
)
export const refusalRefs = (codes: readonly RefusalCode[]): Json =>
  Object.fromEntries(codes.map(code => [refusals[code], ref('responses', `Refused${refusals[code]}`)]))

export const anywhere = [
  'invalid_request',
  'method_not_allowed',
  'request_timeout',
  'request_too_large',
  'uri_too_long',
  'expectation_failed',
  'headers_too_large',
  'internal',
] as const
export const withKey = [...anywhere, 'unauthorized', 'forbidden', 'rate_limited', 'unavailable'] as const
