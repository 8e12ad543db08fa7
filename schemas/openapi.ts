/**
 * The OpenAPI 3.1 document, for clients: built from the resources, the refusals and the limits, so that it cannot say
 * anything else than they do.
 */
import { type RefusalCode, refusals } from './errors.ts'
import { recordExamples } from './examples.ts'
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX } from './limits.ts'
import { messages } from './messages.ts'
import { headers } from './openapi-headers.ts'
import { Refused, type ResourceName, resources } from './resources.ts'
import { type IdPrefix, idPattern } from './values.ts'

type Json = Record<string, unknown>
const ref = (section: string, name: string): Json => ({ $ref: `#/components/${section}/${name}` })
const headerRefs = (names: readonly (keyof typeof headers)[]): Json =>
  Object.fromEntries(names.map(name => [name, ref('headers', name)]))
const json = (schema: Json, example?: unknown): Json => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
})

/** A union of constants as an enumeration: the same rule, and what generators of clients understand. */
const readable = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(readable)
  if (typeof schema !== 'object' || schema === null) return schema
  const { anyOf, ...rest } = schema as { anyOf?: Json[] }
  if (anyOf?.every(choice => 'const' in choice)) {
    return { type: 'string', ...rest, enum: anyOf.map(choice => choice.const) }
  }
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, readable(value)]))
}

// --- refusals

const reasons: Record<RefusalCode, string> = {
  invalid_request: 'A bad parameter (its name is in the message), or bytes that are not HTTP.',
  invalid_cursor: '`starting_after` does not name a record of this list that this key can read.',
  unauthorized: 'The Authorization header is missing, repeated or malformed, or names an unknown or revoked key.',
  forbidden: 'The key is valid but may not read.',
  not_found: 'No such path, or no record with that id that this key can read.',
  method_not_allowed: 'Another method than GET or HEAD.',
  request_timeout: 'The headers of the request did not arrive in time.',
  request_too_large: 'The request has a large body; none is read.',
  uri_too_long: 'The address of the request is too long.',
  expectation_failed: 'The request has an Expect header that cannot be met.',
  rate_limited:
    'The key has made too many requests, or the address too many without a valid key (then without RateLimit headers). Try again after `Retry-After`.',
  headers_too_large: 'The headers of the request are too large or too many.',
  internal: 'The request could not be answered.',
  unavailable: 'The records cannot be read now: never a page with records missing. Try again.',
}

const always = ['X-Request-Id', 'X-Content-Type-Options'] as const
const authenticated = [...always, 'Cache-Control', 'Vary'] as const
const counted = [...authenticated, 'RateLimit-Policy', 'RateLimit'] as const
const headersOf: Partial<Record<RefusalCode, readonly (keyof typeof headers)[]>> = {
  unauthorized: [...authenticated, 'WWW-Authenticate'],
  forbidden: counted,
  not_found: counted,
  rate_limited: [...counted, 'Retry-After'],
  method_not_allowed: [...always, 'Allow'],
  unavailable: [...always, 'Retry-After'],
}

/** Refusals of one status share an answer: OpenAPI describes answers by status. */
const refusalResponses = Object.fromEntries(
  [...new Set(Object.values(refusals))].map(status => {
    const codes = (Object.keys(refusals) as RefusalCode[]).filter(code => refusals[code] === status)
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
const refusalRefs = (codes: readonly RefusalCode[]): Json =>
  Object.fromEntries(codes.map(code => [refusals[code], ref('responses', `Refused${refusals[code]}`)]))

const anywhere = [
  'invalid_request',
  'method_not_allowed',
  'request_timeout',
  'request_too_large',
  'uri_too_long',
  'expectation_failed',
  'headers_too_large',
  'internal',
] as const
const withKey = [...anywhere, 'unauthorized', 'forbidden', 'rate_limited', 'unavailable'] as const

// --- answers

const fresh = [...counted, 'ETag', 'Projection-Time'] as const
const notModified = (names: readonly (keyof typeof headers)[]): Json => ({
  description: 'What would be answered is what `If-None-Match` names. Not counted against the key.',
  headers: headerRefs(names),
})
const data = (schema: unknown, example: unknown): Json => ({
  description: 'The record.',
  headers: headerRefs(fresh),
  content: json({ type: 'object', required: ['data'], properties: { data: schema } }, { data: example }),
})
const page = (name: ResourceName): Json => ({
  description: 'A page of the list.',
  headers: headerRefs(fresh),
  content: json(ref('schemas', `${name}List`), listExample(name)),
})
const listExample = (name: ResourceName): Json => ({
  data: [recordExamples[name]],
  has_more: false,
  next_cursor: recordExamples[name].id,
})
const listSchema = (name: ResourceName, prefix: IdPrefix): Json => ({
  type: 'object',
  required: ['data', 'has_more', 'next_cursor'],
  properties: {
    data: { type: 'array', items: ref('schemas', name) },
    has_more: { type: 'boolean', description: 'Whether more records follow this page.' },
    next_cursor: {
      type: 'string',
      pattern: `^$|${idPattern(prefix)}`,
      description:
        'The last id of the page, to send back as `starting_after`: also on the last page, to come back later for what is new. On an empty page it repeats `starting_after`, or is empty where there was none.',
    },
  },
})

// --- operations

const lists = [
  ['reps', 'Reps', 'Rep', 'rep', 'All reps, those who have left too, oldest (first recorded) first.'],
  ['periods', 'Periods', 'Period', 'period', 'Every period of the organization, in the order first recorded.'],
  [
    'payouts',
    'Payouts',
    'Payout',
    'payout',
    'The current payouts, one for each rep and period. A replacement comes later than what it replaced; keep the last payout read of each (rep_id, period_id).',
  ],
  [
    'payroll_files',
    'PayrollRecords',
    'PayrollRecord',
    'payroll',
    'Money that has left. A void is a record of its own.',
  ],
] as const
const singles = [
  ['reps', 'Rep', 'Rep', 'rep', 'One rep.'],
  ['periods', 'Period', 'Period', 'period', 'One period.'],
  ['payouts', 'Payout', 'Payout', 'payout', 'One payout, also one that has been replaced.'],
  ['statements', 'Statement', 'Statement', 'payout', 'A payout with its calculation trace, by the id of the payout.'],
  ['payroll_files', 'PayrollRecord', 'PayrollRecord', 'payroll', 'One payroll record.'],
] as const

const security = [{ apiKey: [] }]
const ifNoneMatch = ref('parameters', 'IfNoneMatch')
const idExample = (prefix: IdPrefix) =>
  Object.values(recordExamples).find(({ id }) => id.startsWith(`${prefix}_`))?.id ?? ''

const listPaths = lists.map(([path, operation, name, prefix, summary]) => {
  const startingAfter = {
    name: 'starting_after',
    in: 'query',
    description: 'Continue after this id: send the `next_cursor` of the page before. Without it the list begins.',
    schema: { type: 'string', pattern: idPattern(prefix) },
    example: idExample(prefix),
  }
  const operationObject = {
    operationId: `list${operation}`,
    tags: [path],
    summary,
    security,
    parameters: [startingAfter, ref('parameters', 'Limit'), ifNoneMatch],
    responses: {
      200: page(name),
      304: ref('responses', 'NotModified'),
      ...refusalRefs([...withKey, 'invalid_cursor']),
    },
  }
  return [`/${path}`, { get: operationObject }] as const
})

const singlePaths = singles.map(([path, operation, name, prefix, summary]) => {
  const id = {
    name: 'id',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: idPattern(prefix) },
    example: idExample(prefix),
  }
  const operationObject = {
    operationId: `get${operation}`,
    tags: [path],
    summary,
    security,
    parameters: [id, ifNoneMatch],
    responses: {
      200: data(ref('schemas', name), recordExamples[name]),
      304: ref('responses', 'NotModified'),
      ...refusalRefs([...withKey, 'not_found']),
    },
  }
  return [`/${path}/{id}`, { get: operationObject }] as const
})

const descriptionOperation = {
  operationId: 'getDescription',
  tags: ['openapi'],
  summary: 'This document. No key is needed.',
  security: [],
  parameters: [ifNoneMatch],
  responses: {
    200: {
      description: 'The OpenAPI 3.1 document.',
      headers: headerRefs([...always, 'Cache-Control', 'ETag']),
      content: json({ type: 'object', required: ['openapi', 'info', 'paths'] }),
    },
    304: notModified([...always, 'Cache-Control', 'ETag']),
    ...refusalRefs(anywhere),
  },
}

const paths: Record<string, { readonly get: Json }> = {
  ...Object.fromEntries([...listPaths, ...singlePaths]),
  '/openapi.json': { get: descriptionOperation },
}

export const openapi = {
  openapi: '3.1.0',
  info: {
    title: 'API',
    version: '1.0.0',
    description:
      'Read-only access to the commission data of one organization: reps, periods, payouts with their line items, statements with the whole calculation trace, and payroll records. Amounts are decimal strings; parse them into a decimal type. Every request but that for this document has a key: `Authorization: Bearer <key>`. HEAD is answered like GET, without the body.',
  },
  servers: [{ url: '/api/v1', description: 'At the address of the API.' }],
  security,
  tags: [...lists.map(([path]) => ({ name: path })), { name: 'statements' }, { name: 'openapi' }],
  paths,
  components: {
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        description: `An API key of the organization: ${API_KEY_LENGTH_MIN} to ${API_KEY_LENGTH_MAX} characters of A-Za-z0-9_-. It can only read.`,
      },
    },
    parameters: {
      Limit: {
        name: 'limit',
        in: 'query',
        description: `Records on the page. A value above ${PAGE_LIMIT_MAX} is served as ${PAGE_LIMIT_MAX}. A page of large records may hold fewer.`,
        schema: { type: 'integer', minimum: 1, default: PAGE_LIMIT_DEFAULT },
      },
      IfNoneMatch: {
        name: 'If-None-Match',
        in: 'header',
        description: 'Entity tags of answers the client has, or `*`.',
        schema: { type: 'string' },
      },
    },
    headers,
    responses: { NotModified: notModified(fresh), ...refusalResponses },
    schemas: {
      ...(Object.fromEntries(Object.entries(resources).map(([name, schema]) => [name, readable(schema)])) as Json),
      ...Object.fromEntries(lists.map(([, , name, prefix]) => [`${name}List`, listSchema(name, prefix)])),
      Refusal: readable(Refused) as Json,
    },
  },
}
