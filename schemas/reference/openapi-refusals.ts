/** Refusals in the OpenAPI document: their reasons, their headers, and the operations that return them. */
import { messages, type RefusalCode, refusals } from '../errors.ts'
import { keysOf } from '../objects.ts'
import { refusalCatalogue } from './error-catalogue.ts'
import type { headers } from './openapi-headers.ts'
import { headerRefs, type Json, ref } from './openapi-parts.ts'

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
      description: codes.map(code => `\`${code}\`: ${refusalCatalogue[code].cause}`).join(' '),
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
