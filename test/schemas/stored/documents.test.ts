import { describe, expect, test } from 'vitest'
import { listOrder } from '../../../schemas/lists.ts'
import {
  chainId,
  indexOf,
  kinds,
  listKinds,
  parkedId,
  positionId,
  recordId,
  versionId,
} from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices, type IndexDefinition } from '../../../schemas/stored/mappings.ts'

describe('document ids', () => {
  test('begin with the organization, so a request cannot name a document of another organization', () => {
    expect(recordId('org_1', 'payout_1')).toBe('org_1:payout_1')
    expect(versionId('org_1', 'rep_1', 7)).toBe('org_1:rep_1:7')
    expect(chainId('org_1', 'rep_1', 'period_1')).toBe('org_1:rep_1:period_1')
  })

  test('of parked records have topic, partition and offset; those of positions have generation and partition', () => {
    expect(parkedId('commission.events', 3, 42)).toBe('commission.events:3:42')
    expect(positionId('g1', 3)).toBe('position:g1:3')
  })

  test('stay below the 512 bytes that Elasticsearch allows, at their longest', () => {
    const long = (prefix: string) => `${prefix}_${'x'.repeat(64)}`
    const longest = [
      versionId(long('org'), long('period'), Number.MAX_SAFE_INTEGER),
      chainId(long('org'), long('rep'), long('period')),
      parkedId('t'.repeat(249), 999_999, Number.MAX_SAFE_INTEGER),
    ]
    for (const id of longest) expect(Buffer.byteLength(id)).toBeLessThanOrEqual(512)
  })
})

describe('the indices', () => {
  const indices = {
    ...generationIndices('commission', { generation: 'g1' }, { shards: 2 }),
    ...commonIndices('commission'),
  }

  test('are one of each kind per generation, and three that all generations share, control first', () => {
    expect(Object.keys(indices)).toEqual([
      ...kinds.map(kind => `commission-g1-${kind}`),
      'commission-control',
      'commission-api-keys',
      'commission-api-keys-parked',
    ])
  })

  test('store the body without indexing it, and name every other field', () => {
    for (const [name, { mappings }] of Object.entries(indices)) {
      expect([name, mappings.dynamic, mappings.properties.body]).toEqual([
        name,
        'strict',
        { type: 'object', enabled: false },
      ])
    }
  })

  test('of lists are sorted in list order; no other index is sorted', () => {
    for (const kind of kinds) {
      const { settings } = indices[indexOf('commission', 'g1', kind)] ?? {}
      const order = kind in listOrder ? listOrder[kind as keyof typeof listOrder] : undefined
      expect([kind, settings?.sort]).toEqual([
        kind,
        order === undefined ? undefined : { field: ['org_id', order], order: ['asc', 'asc'] },
      ])
    }
    expect(Object.keys(listOrder)).toEqual([...listKinds])
  })

  test('never store money or text in a type for calculation or full-text search', () => {
    const types = Object.values(indices).flatMap(({ mappings }) =>
      Object.values(mappings.properties).map(property => (property as { type: string }).type),
    )
    expect(new Set(types)).toEqual(new Set(['keyword', 'long', 'object', 'boolean']))
  })

  test('are refreshed only by our own requests', () => {
    for (const { settings } of Object.values(indices)) expect(settings.refresh_interval).toBe('-1')
  })

  test('of a generation have the requested number of shards; shared ones have one', () => {
    for (const [name, { settings }] of Object.entries(indices)) {
      expect([name, settings.number_of_shards]).toEqual([name, name.includes('-g1-') ? 2 : 1])
    }
  })

  test('have a replica if there is a second node, or exactly the requested number', () => {
    const copies = (definitions: Record<string, IndexDefinition>) =>
      new Set(
        Object.values(definitions).map(({ settings }) =>
          [settings.auto_expand_replicas, settings.number_of_replicas].join(),
        ),
      )
    expect(copies(indices)).toEqual(new Set(['0-1,']))
    const given = {
      ...generationIndices('commission', { generation: 'g1' }, { shards: 2, replicas: 0 }),
      ...commonIndices('commission', 0),
    }
    expect(copies(given)).toEqual(new Set([',0']))
  })
})

describe('the indices of a generation that is routed by organization', () => {
  const indices = generationIndices('p', { generation: 'g1', layout: 2 }, { shards: 6 })

  test('refuse a document without a routing; parked records, which may have no organization, and the few balances are in one shard each', () => {
    const isRouted = Object.entries(indices).map(([name, { mappings, settings }]) => [
      name,
      mappings._routing?.required === true,
      settings.number_of_shards,
    ])
    expect(isRouted).toEqual([
      ['p-g1-payouts', true, 6],
      ['p-g1-statements', true, 6],
      ['p-g1-chains', true, 6],
      ['p-g1-parked', false, 1],
      ['p-g1-periods', false, 1],
    ])
  })

  test('have every field of every list, and are sorted by organization and change', () => {
    const byKind = generationIndices('p', { generation: 'g1' }, { shards: 6 })
    const of = (definitions: typeof indices, kind: string) => definitions[`p-g1-${kind}`]?.mappings.properties ?? {}
    for (const kind of listKinds) expect(of(indices, 'payouts')).toMatchObject(of(byKind, kind))
    expect(of(indices, 'payouts').kind).toEqual({ type: 'keyword' })
    expect(indices['p-g1-payouts']?.settings.sort).toEqual({ field: ['org_id', 'seq'], order: ['asc', 'asc'] })
    for (const kind of ['statements', 'chains', 'parked']) expect(of(indices, kind)).toEqual(of(byKind, kind))
  })

  test('divide an organization only if its generation says so', () => {
    const sizes = (size?: number) =>
      Object.values(
        generationIndices(
          'p',
          { generation: 'g1', layout: 2, ...(size && { routing_partition_size: size }) },
          { shards: 6 },
        ),
      ).map(({ settings }) => settings.routing_partition_size)
    expect(sizes()).toEqual([undefined, undefined, undefined, undefined, undefined])
    expect(sizes(2)).toEqual([2, 2, 2, undefined, undefined])
  })
})
