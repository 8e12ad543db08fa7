import { describe, expect, test } from 'vitest'
import { identities } from '../../../schemas/access.ts'
import { hiddenAmong } from '../../../schemas/stored/hiding-roles.ts'

const PAYOUTS = 'commission-g1-payouts'
const ours = ['commission-control', 'commission-api-keys', PAYOUTS]
const read = ['read']
const everything = { names: ['commission-*'], privileges: read }
const query = ['{"term":{"org_id":"org_1"}}']
const hidden = (...indices: object[]) => hiddenAmong({ cluster: [], indices }, ours)

test.each([
  ['read', everything],
  ['a superuser', { names: ['*'], privileges: ['all'] }],
  ['all fields', { ...everything, field_security: [{ grant: ['*'] }] }],
  ['all fields, or some', { ...everything, field_security: [{ grant: ['seq'] }, { grant: ['*'], except: [] }] }],
  ['a part of the indices of others', { names: ['logs-*', '/commission2-.*/', PAYOUTS.slice(0, -1)], query }],
])('a user with %s sees all', (_, entry) => {
  expect(hidden({ privileges: read, ...entry })).toBeUndefined()
})

test.each([
  ['a query', { query }],
  ['a query among others', { query: ['{"match_all":{}}', ...query] }],
  ['some fields', { field_security: [{ grant: ['seq', 'org_*'] }] }],
  ['all fields but one', { field_security: [{ grant: ['*'], except: ['body'] }] }],
  ['perhaps no field', { field_security: [{}, { grant: ['seq'] }] }],
])('a user with %s does not see all', (_, part) => {
  expect(hidden({ ...everything, ...part })).toBe('commission-control')
})

test.each([
  '*',
  'commission-*',
  'c*-g?-payouts',
  '/commission-[a-z][a-z0-9]*-(reps|payouts)/',
  '/.*payouts/',
  // JavaScript may read these in another way.
  '/commission-<1-9>.*/',
  '/(?=x)/',
  '/[/',
  'commission\\-g1-payouts',
])('the names %s of an entry with a query are, or may be, those of our payouts', name => {
  expect(hiddenAmong({ indices: [{ names: ['x', name], privileges: read, query }] }, [PAYOUTS])).toBe(PAYOUTS)
})

describe('an entry without restriction', () => {
  const part = { names: ['*'], privileges: ['all'], query }

  test('that permits to read an index makes it whole again', () => {
    expect(hidden(part, everything)).toBeUndefined()
    expect(hidden(everything, { ...part, names: [PAYOUTS] })).toBeUndefined()
    expect(hidden(part, ...ours.map(name => ({ names: [name], privileges: read })))).toBeUndefined()
  })

  test('makes no other index whole', () => {
    expect(hidden(part, { names: ['commission-control', 'commission-api-*'], privileges: read })).toBe(PAYOUTS)
  })

  test('that does not permit to read makes nothing whole', () => {
    expect(hidden(part, { ...everything, privileges: ['view_index_metadata', 'index'] })).toBe('commission-control')
  })

  test('whose names JavaScript may read in another way makes nothing whole', () => {
    expect(hidden(part, { ...everything, names: ['/commission-.*&.*/'] })).toBe('commission-control')
  })
})

test('the roles of docs/access.md make whole what they name, also beside a role with a query', () => {
  const entries = identities.api.elasticsearch.indices.map(({ names, privileges }) => ({
    names: names.map(name => name.replace(`\${ELASTICSEARCH_INDEX_PREFIX}`, 'commission')),
    privileges,
  }))
  expect(hidden(...entries, { names: ['*'], privileges: read, query })).toBeUndefined()
})

test.each([undefined, null, {}, { indices: {} }, { indices: [{ names: '*', privileges: read }] }])(
  'an answer of another form does not pass for one without restrictions: %j',
  answer => {
    expect(() => hiddenAmong(answer, ours)).toThrow(TypeError)
  },
)
