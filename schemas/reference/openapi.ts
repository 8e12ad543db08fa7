/** The OpenAPI 3.1 document for clients, built from the resources, the refusals and the limits. */

import {
  API_KEY_LENGTH_MAX,
  API_KEY_LENGTH_MIN,
  IDS_MAX,
  PAGE_LIMIT_DEFAULT,
  PAGE_LIMIT_MAX,
  WAIT_SECONDS_MAX,
} from '../limits.ts'
import { feedFilters, listFilters, listTraits } from '../lists.ts'
import { changePattern, Refused, resourceParts, resources } from '../resources.ts'
import { isListKind, listKinds } from '../stored/documents.ts'
import { type IdPrefix, idPattern } from '../values.ts'
import { recordExamples } from './examples.ts'
import { headers } from './openapi-headers.ts'
import { documentSchema, info, tags } from './openapi-info.ts'
import { needsOf, tagOfPath } from './openapi-needs.ts'
import { createReadable, headerRefs, type Json, json, ref } from './openapi-parts.ts'
import { always, anywhere, counted, refusalRefs, refusalResponses, withKey } from './openapi-refusals.ts'
import { dealOfTotals, totalsContent, totalsParameters } from './openapi-totals.ts'

const readable = createReadable({ ...resources, ...resourceParts })

// --- answers

const fresh = [...counted, 'ETag', 'Projection-Time'] as const
const notModified = (names: readonly (keyof typeof headers)[]): Json => ({
  description: [
    'The client has this response already: `If-None-Match` names it. Not counted against the key, except for',
    '`If-None-Match: *`, and for a request with `wait` that waited less than a second.',
  ].join(' '),
  headers: headerRefs(names),
})
const data = (schema: unknown, example: unknown): Json => ({
  description: 'The record.',
  headers: headerRefs(fresh),
  content: json({ type: 'object', required: ['data'], properties: { data: schema } }, { data: example }),
})
const page = (name: ListedName, cursor: string): Json => ({
  description: 'A page of the list.',
  headers: headerRefs([...fresh, 'Link']),
  content: json(ref('schemas', `${name}List`), {
    data: [recordExamples[name]],
    has_more: false,
    next_cursor: cursor,
  }),
})
const listSchema = (name: ListedName, pattern: string): Json => ({
  type: 'object',
  required: ['data', 'has_more', 'next_cursor'],
  properties: {
    data: { type: 'array', items: ref('schemas', name) },
    has_more: {
      type: 'boolean',
      description: 'Whether more records follow this page. Without more, the walk ends here.',
    },
    next_cursor: {
      type: 'string',
      pattern: `^$|${pattern}`,
      description: [
        'The last id of the page, to send as `starting_after`.',
        'The last page has it, too: send it later to get new records.',
        'An empty page repeats `starting_after`, or has an empty text if there was none.',
        name === 'Change'
          ? 'With `after`, an empty page has the id of the change after which it begins.'
          : 'It is empty for a request with `ids`, too.',
      ].join(' '),
    },
  },
})

// --- operations

/** Paged lists: path, operation id, record, prefix of the cursors, summary. */
const lists = [
  ...listKinds.map(kind => {
    const { operationId, record, idPrefix, summary } = listTraits[kind]
    return [kind, operationId, record, idPrefix, summary] as const
  }),
  [
    'payouts/{id}/history',
    'listPayoutHistory',
    'PayoutStep',
    'payout',
    'All payouts ever made for the rep and the period of this one, oldest first, each with its difference to the one before.',
  ],
  [
    'changes',
    'listChanges',
    'Change',
    'change',
    [
      'All changes in order: a feed to follow.',
      'For an exact copy, read the lists as of one change, then the changes after it.',
    ].join(' '),
  ],
] as const
type ListedName = (typeof lists)[number][2]

const singles = [
  ['reps/{id}', 'getRep', 'Rep', 'rep', 'One rep.'],
  ['periods/{id}', 'getPeriod', 'Period', 'period', 'One period.'],
  ['payouts/{id}', 'getPayout', 'Payout', 'payout', 'One payout, current or replaced.'],
  [
    'statements/{id}',
    'getStatement',
    'Statement',
    'payout',
    'A payout with its calculation trace, by the id of the payout.',
  ],
  ['payroll_files/{id}', 'getPayrollRecord', 'PayrollRecord', 'payroll', 'One payroll record.'],
  [
    'totals',
    'getTotals',
    'Totals',
    'payout',
    'Amounts owed, paid and open, by period and currency. They prove that a copy of the lists is complete.',
  ],
  [
    'checkpoint',
    'getCheckpoint',
    'Checkpoint',
    'payout',
    [
      'A signed digest of all changes. It proves that a copy is complete and unaltered.',
      'The same one is returned for a minute, or until a further change is published.',
      'It costs a unit for each MiB of the changes that were read for it, and may answer 503 while they are read.',
      'Refused if the operator has set no key for it.',
    ].join(' '),
  ],
] as const

const security = [{ apiKey: [] }]
const ifNoneMatch = ref('parameters', 'IfNoneMatch')
const asOf = ref('parameters', 'AsOf')
const cursorOf = (prefix: IdPrefix | 'change') =>
  prefix === 'change'
    ? { pattern: changePattern, example: recordExamples.Change.id }
    : { pattern: idPattern(prefix), example: idExamples[prefix] ?? '' }
const idExamples: Partial<Record<IdPrefix, string>> = {
  rep: recordExamples.Rep.id,
  period: recordExamples.Period.id,
  payout: recordExamples.Payout.id,
  payroll: recordExamples.PayrollRecord.id,
}
const idsOf = (path: string, prefix: IdPrefix | 'change'): Json[] => {
  if (!path.includes('{id}')) return []
  const { pattern, example } = cursorOf(prefix)
  return [{ name: 'id', in: 'path', required: true, schema: { type: 'string', pattern }, example }]
}

const filtersOf = (path: string): Json[] => {
  const ofList = isListKind(path) ? listTraits[path].filters : []
  return (path === 'changes' ? feedFilters : ofList).map(name => ref('parameters', listFilters[name].component))
}
const filterParameters = Object.entries(listFilters).map(([name, { component, description, pattern, example }]) => [
  component,
  { name, in: 'query', description, schema: { type: 'string', pattern }, example },
])

/** By the path of a list; of a feed or a history no record is read by its id. */
const idsParameterOf = (path: string, prefix: IdPrefix | 'change'): Json[] => {
  if (prefix === 'change' || !isListKind(path)) return []
  const id = `${prefix}_[0-9A-Za-z]{1,64}`
  return [
    {
      name: 'ids',
      in: 'query',
      description: [
        `Reads these records instead: 1 to ${IDS_MAX} ids, each once, separated by commas. They are returned in this order,`,
        'replaced payouts too; an unknown id is left out. Only `as_of` may be given beside it.',
        '`next_cursor` is empty. If `has_more` is true, the records are large: ask for the ids after the last one.',
      ].join(' '),
      schema: { type: 'string', pattern: `^${id}(?:,${id}){0,${IDS_MAX - 1}}$` },
      example: idExamples[prefix],
    },
  ]
}

const listPaths = lists.map(([path, operationId, name, prefix, summary]) => {
  const { pattern, example } = cursorOf(prefix)
  const startingAfter = {
    name: 'starting_after',
    in: 'query',
    description:
      'Continue after this id: send the `next_cursor` of the previous page. Without it, the first page is returned.',
    schema: { type: 'string', pattern },
    example,
  }
  const operation = {
    operationId,
    tags: [tagOfPath(path)],
    summary,
    description: needsOf(path),
    security,
    parameters: [
      ...idsOf(path, prefix),
      startingAfter,
      ref('parameters', 'Limit'),
      ...filtersOf(path),
      ...idsParameterOf(path, prefix),
      ...(path === 'changes' ? [ref('parameters', 'Wait'), ref('parameters', 'After')] : []),
      asOf,
      ifNoneMatch,
    ],
    responses: {
      200: page(name, example),
      304: ref('responses', 'NotModified'),
      ...refusalRefs([...withKey, 'invalid_cursor', ...(path.includes('{id}') ? (['not_found'] as const) : [])]),
    },
  }
  return [`/${path}`, { get: operation }] as const
})

const singlePaths = singles.map(([path, operationId, name, prefix, summary]) => {
  const operation = {
    operationId,
    tags: [tagOfPath(path)],
    summary,
    description: needsOf(path),
    security,
    parameters: [
      ...idsOf(path, prefix),
      ...(path === 'totals' ? totalsParameters : []),
      // A checkpoint is of now.
      ...(path === 'checkpoint' ? [] : [asOf]),
      ifNoneMatch,
    ],
    responses: {
      200: {
        ...data(ref('schemas', name), recordExamples[name]),
        ...(name === 'Totals' && { content: totalsContent }),
      },
      304: ref('responses', 'NotModified'),
      ...refusalRefs([...withKey, ...(path.includes('{id}') ? (['not_found'] as const) : [])]),
    },
  }
  return [`/${path}`, { get: operation }] as const
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
      content: json(documentSchema),
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
  info,
  servers: [{ url: '/api/v1', description: 'Relative to the address of the API.' }],
  security,
  tags,
  paths,
  components: {
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        description: [
          `An API key of the organization: ${API_KEY_LENGTH_MIN} to ${API_KEY_LENGTH_MAX} characters of`,
          'A-Za-z0-9_-.',
          'It can only read, and only what its permissions name: each operation says which one it needs.',
        ].join(' '),
      },
    },
    parameters: {
      Limit: {
        name: 'limit',
        in: 'query',
        description: [
          `Records per page. A value above ${PAGE_LIMIT_MAX} counts as ${PAGE_LIMIT_MAX}.`,
          'A page of large records may have fewer.',
        ].join(' '),
        schema: { type: 'integer', minimum: 1, default: PAGE_LIMIT_DEFAULT },
      },
      ...Object.fromEntries(filterParameters),
      DealOfTotals: dealOfTotals,
      Wait: {
        name: 'wait',
        in: 'query',
        description: [
          `Waits up to this many seconds for a change if there is none after \`starting_after\`; ${WAIT_SECONDS_MAX} at most,`,
          'also if it is larger. Then the page is empty. Not together with `as_of`.',
        ].join(' '),
        schema: { type: 'integer', minimum: 0 },
        example: 30,
      },
      After: {
        name: 'after',
        in: 'query',
        description: [
          'In place of `starting_after`: the `sequence` of the change after which the page begins, or 0.',
          'For programs that keep the largest number they have seen. Not together with `starting_after` and `wait`.',
        ].join(' '),
        schema: { type: 'integer', minimum: 0 },
        example: recordExamples.Change.sequence,
      },
      AsOf: {
        name: 'as_of',
        in: 'query',
        description: [
          'Reads the organization as published at an earlier moment: a past instant (RFC 3339;',
          'write a plus sign as %2B), or the id of a change, which is included.',
          'An instant includes the changes whose `published_at` is the instant or before it.',
          'If the order of the changes contradicts their times there, the instant is refused: use the id of a change.',
          'Later records are absent, and cursors must be ids of records of that moment.',
          'All pages that are read with the same `as_of` show one state.',
        ].join(' '),
        // Not a union of both forms: they are texts all the same, and generators make types that do not compile.
        schema: { type: 'string' },
        examples: {
          instant: { summary: 'A past instant.', value: '2026-02-01T08:30:00Z' },
          change: { summary: 'The id of a change, which is included.', value: recordExamples.Change.id },
        },
      },
      IfNoneMatch: {
        name: 'If-None-Match',
        in: 'header',
        description: 'Entity tags of responses that the client has, or `*`.',
        schema: { type: 'string' },
      },
    },
    headers,
    responses: { NotModified: notModified(fresh), ...refusalResponses },
    schemas: {
      ...readable.components(),
      ...Object.fromEntries(
        lists.map(([, , name, prefix]) => [`${name}List`, listSchema(name, cursorOf(prefix).pattern)]),
      ),
      Refusal: readable.schema(Refused),
    },
  },
}
