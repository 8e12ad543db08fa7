/** The headers of the API's answers, as components of the OpenAPI document. */
import { RATE_UNIT_BYTES } from '../limits.ts'

const text = (description: string, pattern: string, example: string) => ({
  description,
  schema: { type: 'string', pattern },
  example,
})

export const headers = {
  'X-Request-Id': text(
    'Names this answer in the logs of the service.',
    '^[0-9a-f-]{36}$',
    '0b9f3b9e-6a3c-4f0e-9d0a-2f4b8a6c1d7e',
  ),
  'X-Content-Type-Options': text('The body is what Content-Type says.', '^nosniff$', 'nosniff'),
  'Cache-Control': text(
    'A stored answer is asked about again before it is used.',
    '^(private, )?no-cache$',
    'private, no-cache',
  ),
  Vary: text('Another key may be answered otherwise.', '^Authorization$', 'Authorization'),
  ETag: text(
    'Names what is answered; the same for every key of the organization.',
    '^"[A-Za-z0-9_-]+"$',
    '"3x1D3aeGMDJQvkR7guvZF7ZlJfn"',
  ),
  'Projection-Time': {
    description:
      'The instant up to which everything published for the organization is included. It moves on at least every second, and never goes back for a client that keeps to one process, but once clocks were wrong: a time that was ahead of them all is taken back.',
    schema: { type: 'string', format: 'date-time' },
    example: '2026-02-02T07:15:05.000Z',
  },
  'RateLimit-Policy': text(
    `How many units (q) a key has in how many seconds (w). A request counts one unit, and one more for each further ${RATE_UNIT_BYTES} bytes (commission-unit-bytes) of its answer that were begun: ordinary pages count one, whatever their limit. And how many requests of a key may be under way at once. Fields of draft-ietf-httpapi-ratelimit-headers.`,
    '^"default";q=\\d+;w=\\d+;qu="requests";commission-unit-bytes=\\d+, "concurrent";q=\\d+;qu="concurrent-requests"$',
    `"default";q=600;w=60;qu="requests";commission-unit-bytes=${RATE_UNIT_BYTES}, "concurrent";q=100;qu="concurrent-requests"`,
  ),
  RateLimit: text(
    'How many units are left (r), after this answer is paid for, and in how many seconds the window ends (t).',
    '^"default";r=\\d+;t=\\d+$',
    '"default";r=598;t=41',
  ),
  'Retry-After': {
    description: 'Seconds after which to try again.',
    schema: { type: 'integer', minimum: 1 },
    example: 12,
  },
  'WWW-Authenticate': text('How to authenticate.', '^Bearer$', 'Bearer'),
  Allow: text('The methods that are offered.', '^GET, HEAD$', 'GET, HEAD'),
} as const
