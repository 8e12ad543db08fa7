/** The response headers, as components of the OpenAPI document. */
import { RATE_UNIT_BYTES } from '../limits.ts'

const text = (description: string, pattern: string, example: string) => ({
  description,
  schema: { type: 'string', pattern },
  example,
})

export const headers = {
  'X-Request-Id': text(
    'Identifies this response in the logs of the service.',
    '^[0-9a-f-]{36}$',
    '0b9f3b9e-6a3c-4f0e-9d0a-2f4b8a6c1d7e',
  ),
  'X-Content-Type-Options': text('Clients must not guess another content type.', '^nosniff$', 'nosniff'),
  'Cache-Control': text(
    [
      'A cache must revalidate a stored response before it uses it, except for a record or totals as of a change:',
      'they stay the same. An operator can forbid all storage.',
    ].join(' '),
    '^((private, )?no-cache|private, max-age=[0-9]+, immutable|no-store)$',
    'private, no-cache',
  ),
  Vary: text(
    'Another key may get another response, and so may a page of another origin.',
    '^(Origin, )?Authorization$',
    'Authorization',
  ),
  ETag: text(
    'Identifies the content of the response; the same for every key of the organization.',
    '^"[A-Za-z0-9_-]+"$',
    '"3x1D3aeGMDJQvkR7guvZF7ZlJfn"',
  ),
  'Projection-Time': {
    description: [
      'The response includes everything that was published for the organization up to this instant.',
      'The instant usually advances every second; it stands still while something may be missing.',
      'For a client that stays with one process it never goes back, with one exception:',
      'a time that was ahead because of wrong clocks is corrected.',
    ].join(' '),
    schema: { type: 'string', pattern: '^[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}Z$' },
    example: '2026-02-02T07:15:05.000Z',
  },
  Link: text(
    [
      'The address of the next page (RFC 8288), only while `has_more` is true. The host is the one that the client',
      'used; behind a proxy that does not name the scheme, the address is only a path.',
    ].join(' '),
    '^<[^>]+>; rel="next"$',
    '<https://example.com/api/v1/payouts?starting_after=payout_2&limit=2>; rel="next"',
  ),
  'RateLimit-Policy': text(
    [
      'How many units (q) a key has in how many seconds (w).',
      `A request costs one unit, and one more for each further ${RATE_UNIT_BYTES} bytes (commission-unit-bytes) of`,
      'its response, rounded up. Ordinary pages cost one unit, whatever their limit.',
      'The second policy says how many requests of a key may be under way at once.',
      'Fields of draft-ietf-httpapi-ratelimit-headers.',
    ].join(' '),
    '^"default";q=\\d+;w=\\d+;qu="requests";commission-unit-bytes=\\d+, "concurrent";q=\\d+;qu="concurrent-requests"$',
    `"default";q=600;w=60;qu="requests";commission-unit-bytes=${RATE_UNIT_BYTES}, "concurrent";q=100;qu="concurrent-requests"`,
  ),
  RateLimit: text(
    'How many units are left (r) after this response, and in how many seconds the window ends (t).',
    '^"default";r=\\d+;t=\\d+$',
    '"default";r=598;t=41',
  ),
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 1 },
    example: 12,
  },
  'WWW-Authenticate': text('How to authenticate.', '^Bearer$', 'Bearer'),
  Allow: text('The supported methods.', '^GET, HEAD$', 'GET, HEAD'),
} as const
