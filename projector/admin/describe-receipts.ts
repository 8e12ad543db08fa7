/** The OpenAPI document of receipts, for publishers: `contract/receipts.json`. */

import { parkCodes } from '../../schemas/errors.ts'
import { license } from '../../schemas/reference/openapi-info.ts'
import { RECEIPT_WAIT_SECONDS_MAX, RUN_OFFSETS_MAX, RUN_PARKED_LISTED_MAX } from '../limits.ts'

type Json = Record<string, unknown>

const number = (maximum = Number.MAX_SAFE_INTEGER): Json => ({ type: 'integer', format: 'int64', minimum: 0, maximum })
const object = (properties: Json, required = Object.keys(properties)): Json => ({
  type: 'object',
  required,
  properties,
})
const described = (schema: Json, description: string): Json => ({ ...schema, description })
const orUnknown = (description: string): Json => ({
  type: ['integer', 'null'],
  format: 'int64',
  minimum: 0,
  description,
})
const parameter = (name: string, where: 'path' | 'query', schema: Json, description: string): Json => ({
  name,
  in: where,
  required: name !== 'wait',
  description,
  schema,
})

const code = { type: 'string', enum: parkCodes, description: 'The cause. `docs/errors.md` has the action for each.' }
const topic = { type: 'string', description: 'A topic that the projector reads.' }
const partition = number(2 ** 31 - 1)

const schemas = {
  Receipt: described(
    object(
      {
        state: {
          type: 'string',
          enum: ['published', 'parked', 'not_yet'],
          description:
            '`published`: readers see it, or it is a duplicate. `parked`: it changes no data, for ever. `not_yet`: ask again.',
        },
        code: described(code, 'The cause, if the record is parked.'),
        detail: {
          type: 'string',
          description:
            'A sentence, if the record is parked: the field or the rule, what was expected and what was given. For people: its words may change.',
        },
        topic,
        partition,
        offset: number(),
      },
      ['state', 'topic', 'partition', 'offset'],
    ),
    'The outcome of one record.',
  ),
  RunReceipt: described(
    object({
      topic,
      partition,
      from: number(),
      to: number(),
      published: described(number(), 'Published offsets, without those of parked records.'),
      applied: orUnknown('Of the published: events that changed data. Null if unknown.'),
      without_effect: orUnknown('Of the published: duplicates, and offsets without an event. Null if unknown.'),
      parked: described(number(), 'Parked records.'),
      not_yet: described(number(), 'Offsets that are not published yet.'),
      parked_records: {
        type: 'array',
        maxItems: RUN_PARKED_LISTED_MAX,
        items: object({ offset: number(), code }),
        description: 'The first parked records, in order of offset.',
      },
      has_more: { type: 'boolean', description: 'Whether `parked_records` is not complete.' },
    }),
    'The outcome of all records between two offsets. `published`, `parked` and `not_yet` add up to the number of offsets.',
  ),
  ReceiptError: object({ error: { type: 'string', description: 'The expected and the given value.' } }),
}

const content = (schema: keyof typeof schemas): Json => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
})
const responses = (schema: 'Receipt' | 'RunReceipt'): Json => ({
  200: { description: 'The receipt.', content: content(schema) },
  400: { description: 'A parameter is not valid.', content: content('ReceiptError') },
  404: {
    description: 'The projector does not read this topic or partition, or the live generation is of another topic.',
    content: content('ReceiptError'),
  },
  503: {
    description: 'Not known now: ask again.',
    headers: { 'Retry-After': { schema: { type: 'integer' }, description: 'Seconds until the next try.' } },
    content: content('ReceiptError'),
  },
})
const wait = parameter(
  'wait',
  'query',
  { ...number(RECEIPT_WAIT_SECONDS_MAX), default: 0 },
  'The longest wait in seconds. The answer comes as soon as there is a result.',
)
const location = [
  parameter('topic', 'path', { type: 'string' }, 'The topic of the record.'),
  parameter('partition', 'path', partition, 'The partition of the record.'),
]

export const receiptsOpenapi = {
  openapi: '3.1.0',
  info: {
    title: 'Receipts',
    version: '1.0.0',
    description:
      'The outcome of published records. The admin port and the port of receipts of each projector serve it.',
    contact: { name: 'The operator of the projector' },
    license,
  },
  servers: [{ url: '/', description: 'A projector.' }],
  // Both ports are for the network of the operator, and ask for no key.
  security: [],
  tags: [{ name: 'receipts', description: 'What happened to published records: of one, or of a run of them.' }],
  paths: {
    '/receipts/{topic}/{partition}/{offset}': {
      get: {
        operationId: 'getReceipt',
        tags: ['receipts'],
        summary: 'The receipt of a record.',
        parameters: [...location, parameter('offset', 'path', number(), 'The offset of the record.'), wait],
        responses: responses('Receipt'),
      },
    },
    '/receipts/{topic}/{partition}': {
      get: {
        operationId: 'getRunReceipt',
        tags: ['receipts'],
        summary: 'The receipt of a run of records.',
        description: `A run has at most ${RUN_OFFSETS_MAX} offsets.`,
        parameters: [
          ...location,
          parameter('from', 'query', number(), 'The first offset of the run.'),
          parameter('to', 'query', number(), 'The last offset of the run, included.'),
          wait,
        ],
        responses: responses('RunReceipt'),
      },
    },
  },
  components: { schemas },
} as const
