import { describe, expect, test } from 'vitest'
import type { AnyNewDocument, NewDocument } from '../../../../core/ledger/rules/state.ts'
import { CHAIN_LENGTH_MAX, UNTIL_FOREVER } from '../../../../schemas/limits.ts'
import type { HeadDocument } from '../../../../schemas/stored/documents.ts'
import { tell, tellAfter } from '../../../projector/given.ts'
import { period, rep } from '../../../projector/story.ts'
import * as examples from '../../../schemas/examples.ts'

describe('a rep', () => {
  test('has a document for each version, and a head that lists them', async () => {
    const documents = await tell([rep(), 'applied'], [rep({ name: 'Ada King', status: 'departed' }), 'applied'])
    const { org_id: _, ...body } = examples.rep
    expect(documents.get('reps/org_1:rep_1:0')).toEqual({
      org_id: 'org_1',
      first_seq: 0,
      seq: 0,
      ordinal: 1,
      until_seq: 1,
      at: 1_000,
      hash: expect.any(String),
      body,
    })
    expect(documents.get('reps/org_1:rep_1:1')).toEqual({
      org_id: 'org_1',
      first_seq: 0,
      seq: 1,
      ordinal: 2,
      until_seq: UNTIL_FOREVER,
      at: 1_001,
      hash: expect.any(String),
      body: { ...body, name: 'Ada King', status: 'departed' },
    })
    expect(documents.get('reps/org_1:rep_1')).toEqual({
      org_id: 'org_1',
      body: {
        versions: [
          { seq: 0, hash: expect.any(String) },
          { seq: 1, hash: expect.any(String) },
        ],
      },
    })
  })

  test('that repeats the current version is a duplicate; one that repeats an earlier version is a new version', async () => {
    const documents = await tell(
      [rep({ name: 'A' }), 'applied'],
      [rep({ name: 'A' }), 'duplicate'],
      [rep({ name: 'B' }), 'applied'],
      [rep({ name: 'B' }), 'duplicate'],
      [rep({ name: 'A' }), 'applied'],
      [rep({ name: 'A' }), 'duplicate'],
    )
    const versions = [0, 2, 4].map(seq => documents.get(`reps/org_1:rep_1:${seq}`))
    expect(versions).toMatchObject([
      { first_seq: 0, until_seq: 2, body: { name: 'A' } },
      { first_seq: 0, until_seq: 4, body: { name: 'B' } },
      { first_seq: 0, until_seq: UNTIL_FOREVER, body: { name: 'A' } },
    ])
    expect(documents.all().filter(([key]) => key.startsWith('reps/'))).toHaveLength(4)
  })

  test('of another organization is another rep', async () => {
    const documents = await tell([rep({ name: 'A' }), 'applied'], [rep({ org_id: 'org_2', name: 'B' }), 'applied'])
    expect(documents.get('reps/org_1:rep_1:0')).toMatchObject({ until_seq: UNTIL_FOREVER, body: { name: 'A' } })
    expect(documents.get('reps/org_2:rep_1:1')).toMatchObject({ first_seq: 1, body: { name: 'B' } })
  })

  test('may change every field except its id', async () => {
    await tell(
      [rep(), 'applied'],
      [rep({ email: null }), 'applied'],
      [rep({ started_on: null }), 'applied'],
      [rep({ departed_on: '2026-01-31' }), 'applied'],
      [rep({ status: 'departed' }), 'applied'],
    )
  })
})

describe('a period', () => {
  test('may change its name, and every version stays', async () => {
    const documents = await tell(
      [period(), 'applied'],
      [period({ name: 'Jan' }), 'applied'],
      [period({ name: 'Jan' }), 'duplicate'],
      [period(), 'applied'],
    )
    const versions = [0, 1, 3].map(seq => documents.get(`periods/org_1:period_1:${seq}`))
    expect(versions).toMatchObject([
      { first_seq: 0, ordinal: 1, until_seq: 1, body: { name: 'January 2026' } },
      { first_seq: 0, ordinal: 2, until_seq: 3, body: { name: 'Jan' } },
      { first_seq: 0, ordinal: 3, until_seq: UNTIL_FOREVER, body: { name: 'January 2026' } },
    ])
  })

  test.each([
    ['kind', { kind: 'quarter' }],
    ['time zone', { timezone: 'Europe/Vienna' }],
    ['start', { starts_at: '2026-01-01T00:00:01+01:00' }],
    ['end', { ends_at: '2026-02-01T00:00:01+01:00' }],
    ['notation of the start', { starts_at: '2025-12-31T23:00:00Z' }],
    ['notation of the end', { ends_at: '2026-02-01T00:00:00.0+01:00' }],
    ['name for the same time zone', { timezone: 'Europe/Busingen', name: 'Jan' }],
  ] as const)('with another %s is period_changed, and changes nothing', async (_, change) => {
    const documents = await tell(
      [period(), 'applied'],
      [period(change), 'period_changed'],
      [period({ ...change, name: 'Jan' }), 'period_changed'],
      [period(), 'duplicate'],
      [period({ name: 'Jan' }), 'applied'],
    )
    const { org_id: __, ...body } = examples.period
    expect(documents.get('periods/org_1:period_1:4')).toMatchObject({ first_seq: 0, body: { ...body, name: 'Jan' } })
    expect(documents.get('periods/org_1:period_1')).toMatchObject({ body: { versions: [{ seq: 0 }, { seq: 4 }] } })
  })

  test('of another organization may have other boundaries', async () => {
    await tell([period(), 'applied'], [period({ org_id: 'org_2', kind: 'year' }), 'applied'])
  })
})

describe.each([
  ['rep', 'reps', rep],
  ['period', 'periods', period],
] as const)('a %s', (name, place, recorded) => {
  test('has 10,000 versions and no more; a repetition of the current one is still a duplicate', async () => {
    const documents = await tell([recorded({ name: 'current' }), 'applied'])
    const id = `${place}/org_1:${name}_1` as const
    const {
      versions: [current],
    } = (documents.get(id) as NewDocument<HeadDocument>).body
    const versions = Array.from({ length: CHAIN_LENGTH_MAX - 2 }, (_, seq) => ({
      seq: seq - CHAIN_LENGTH_MAX,
      hash: 'x',
    }))
    documents.put(id, 0, { org_id: 'org_1', body: { versions: [...versions, current] } } as AnyNewDocument)
    await tellAfter(
      { documents, from: 1 },
      [recorded({ name: 'the last' }), 'applied'],
      [recorded({ name: 'one too many' }), 'chain_too_long'],
      [recorded({ name: 'the last' }), 'duplicate'],
    )
  })
})
