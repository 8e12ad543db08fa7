import { describe, expect, test } from 'vitest'
import { listTraits } from '../../../schemas/lists.ts'
import {
  API_KEYS_GENERATION,
  balanceId,
  chainId,
  type Kind,
  keptFormId,
  kinds,
  listKinds,
  parkedId,
  recordId,
  versionId,
} from '../../../schemas/stored/documents.ts'
import {
  type IndexKind,
  type LayoutSource,
  layoutOf,
  layoutOfKeys,
  parkedAddress,
  parkedIndexOf,
} from '../../../schemas/stored/layout.ts'
import { generationIndices } from '../../../schemas/stored/mappings.ts'
import { idPattern } from '../../../schemas/values.ts'

const byKind: LayoutSource = { generation: 'g1', topic: 't' }
const routed: LayoutSource = { ...byKind, layout: 2 }
const both = [
  ['by kind', byKind],
  ['routed', routed],
] as const

/** An id of each document of an organization. */
const documents = (org: string): readonly (readonly [Kind, string])[] => [
  ['reps', recordId(org, 'rep_1')],
  ['reps', versionId(org, 'rep_1', 7)],
  ['periods', recordId(org, 'period_1')],
  ['periods', versionId(org, 'period_1', 7)],
  ['payouts', recordId(org, 'payout_1')],
  ['payroll_files', recordId(org, 'payroll_1')],
  ['statements', recordId(org, 'payout_1')],
  ['chains', chainId(org, 'rep_1', 'period_1')],
]
const parked = ['parked', parkedId('t', 3, 42)] as const
const [orgs, all] = [['org_1', 'org_2'], ['org_1', 'org_2'].flatMap(documents)]

describe.each(both)('a generation with the layout %s', (_, generation) => {
  const layout = layoutOf('p', generation)

  test('has exactly the indices that are created for it', () => {
    expect(Object.keys(generationIndices('p', generation, { shards: 3 })).toSorted()).toEqual(layout.indices.toSorted())
  })

  test('has an index name that roles and patterns know', () => {
    for (const name of layout.indices) expect(kinds.map(kind => `p-g1-${kind}`)).toContain(name)
  })

  test('gives no two documents the same address', () => {
    const addresses = [...all, parked].map(([kind, id]) => layout.addressOf(kind, id))
    expect(new Set(addresses.map(({ _index, _id }) => `${_index} ${_id}`)).size).toBe(addresses.length)
  })

  test('knows the kind of each document by its address, also of one that is kept', () => {
    for (const [kind, id] of [...all, parked]) {
      const { _index } = layout.addressOf(kind, id)
      expect([id, layout.kindOf(_index, id)]).toEqual([id, kind])
      expect([id, layout.kindOf(_index, keptFormId(id))]).toEqual([id, kind])
    }
    expect(layout.kindOf('p-g2-payouts', recordId('org_1', 'payout_1'))).toBeUndefined()
  })

  test('keeps the earlier form of a document in the shard of the document', () => {
    for (const [kind, id] of [...all, parked]) {
      const { _index, _id, routing = _id } = layout.addressOf(kind, id)
      expect(layout.keptFormAddressOf(kind, id)).toEqual({ _index, _id: keptFormId(id), routing })
    }
  })

  test('searches only the organization that is asked for', () => {
    const { filters } = layout.searchOf(['payouts'], 'org_1')
    expect(filters).toContainEqual({ term: { org_id: 'org_1' } })
    expect(layout.searchOf(['parked'], '').filters).toEqual([{ bool: { must_not: { exists: { field: 'org_id' } } } }])
    expect(layout.searchOf(listKinds, undefined)).toMatchObject({ filters: [], routing: undefined })
  })

  test('has parked records at the same addresses as any other layout', () => {
    expect(parkedAddress('p', 'g1', parked[1])).toEqual(layout.addressOf(...parked))
    expect(parkedIndexOf('p', 'g1')).toBe(layout.indexOf('parked'))
    expect(layout.searchOf(['parked'], 'org_1').routing).toBeUndefined()
  })
})

describe('the layout by kind', () => {
  const layout = layoutOf('p', byKind)

  test('routes each document by its id, and stores nothing more than the document', () => {
    for (const [kind, id] of all) {
      expect(layout.addressOf(kind, id)).toEqual({ _index: `p-g1-${kind}`, _id: id, routing: undefined })
      expect(layout.storedWith(kind)).toBe('')
    }
    expect(layout.searchOf(['payouts'], 'org_1').routing).toBeUndefined()
  })

  test('refreshes the index of each kind that lists search', () => {
    expect(layout.searchedIndices(new Set<IndexKind>(['payouts', 'chains', 'reps']))).toEqual([
      'p-g1-payouts',
      'p-g1-reps',
    ])
  })
})

describe('the routed layout', () => {
  const layout = layoutOf('p', routed)

  test('routes every document of an organization by the organization', () => {
    for (const org of orgs) {
      for (const [kind, id] of documents(org)) expect([id, layout.addressOf(kind, id).routing]).toEqual([id, org])
      for (const kind of listKinds) expect(layout.searchOf([kind], org).routing).toBe(org)
      for (const kind of ['statements', 'chains'] as const) expect(layout.searchOf([kind], org).routing).toBe(org)
    }
  })

  test('has one index for all that lists search, one request refreshes it, and the feed reads it alone', () => {
    expect(layout.indices).toEqual(['p-g1-payouts', 'p-g1-statements', 'p-g1-chains', 'p-g1-parked', 'p-g1-periods'])
    expect(layout.searchedIndices(new Set<IndexKind>(listKinds))).toEqual(['p-g1-payouts'])
    expect(layout.searchedIndices(new Set<IndexKind>(['reps', 'chains']))).toEqual(['p-g1-payouts'])
    expect(layout.searchedIndices(new Set<IndexKind>(['chains', 'statements', 'parked']))).toEqual([])
    expect(layout.searchOf(listKinds, 'org_1')).toMatchObject({
      index: 'p-g1-payouts',
      filters: [{ term: { org_id: 'org_1' } }],
    })
  })

  test('has balances in an index of their own that no search of kinds asks, and that roles for layout 1 open', () => {
    const id = balanceId('org_1', 1_000)
    expect(layout.addressOf('balances', id)).toEqual({ _index: 'p-g1-periods', _id: id, routing: undefined })
    expect(layout.kindOf('p-g1-periods', id)).toBe('balances')
    expect(layout.searchOf(kinds, undefined).index.split(',')).not.toContain('p-g1-periods')
    expect(layout.searchedIndices(new Set<IndexKind>(['balances']))).toEqual([])
    expect([layout.hasBalances, layoutOf('p', { generation: 'g1', topic: 't' }).hasBalances]).toEqual([true, false])
  })

  test('searches a list by the kind that its documents begin with, and expects no other ids', () => {
    for (const kind of listKinds) {
      expect(layout.storedWith(kind)).toBe(`"kind":"${kind}",`)
      const { filters, records } = layout.searchOf([kind], 'org_1')
      expect(filters).toContainEqual({ terms: { kind: [kind] } })
      expect(records).toEqual([{ name: 'p-g1-payouts', kind, idPrefix: `${listTraits[kind].idPrefix}_` }])
    }
    expect(layout.searchOf(['payouts', 'payroll_files'], undefined).filters).toEqual([
      { terms: { kind: ['payouts', 'payroll_files'] } },
    ])
    expect(layout.storedWith('statements') + layout.storedWith('chains') + layout.storedWith('parked')).toBe('')
  })

  test('tells kinds apart by the prefixes that the grammar of ids demands', () => {
    for (const kind of listKinds) {
      const pattern = new RegExp(idPattern(listTraits[kind].idPrefix))
      for (const other of listKinds) expect(pattern.test(`${listTraits[other].idPrefix}_1`)).toBe(kind === other)
    }
  })
})

test('the API keys have a layout of their own, whatever their document says', () => {
  const layout = layoutOf('p', { generation: API_KEYS_GENERATION, topic: 't', layout: 2 })
  expect(layout.indices).toEqual(layoutOfKeys('p').indices)
  expect(layout.addressOf('api-keys', 'org_1:key_1')).toEqual({
    _index: 'p-api-keys',
    _id: 'org_1:key_1',
    routing: undefined,
  })
  expect(layout.searchedIndices(new Set<IndexKind>(['api-keys', 'parked']))).toEqual([])
})
