import { describe, expect, test } from 'vitest'
import {
  chainId,
  indexOf,
  kinds,
  listKinds,
  listOrder,
  parkedId,
  positionId,
  recordId,
  versionId,
} from '../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices, type IndexDefinition } from '../../../schemas/stored/mappings.ts'

describe('document ids', () => {
  test('name the organization first, so that a document of another cannot be named', () => {
    expect(recordId('org_1', 'payout_1')).toBe('org_1:payout_1')
    expect(versionId('org_1', 'rep_1', 7)).toBe('org_1:rep_1:7')
    expect(chainId('org_1', 'rep_1', 'period_1')).toBe('org_1:rep_1:period_1')
  })

  test('name topic, partition and offset of what was parked, and generation and partition of a position', () => {
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
  const indices = { ...generationIndices('commission', 'g1', 2), ...commonIndices('commission') }

  test('are one of each kind for a generation, and three that all generations share, control first', () => {
    expect(Object.keys(indices)).toEqual([
      ...kinds.map(kind => `commission-g1-${kind}`),
      'commission-control',
      'commission-api-keys',
      'commission-api-keys-parked',
    ])
  })

  test('keep the body as it came: not indexed, and every other field is named', () => {
    for (const [name, { mappings }] of Object.entries(indices)) {
      expect([name, mappings.dynamic, mappings.properties.body]).toEqual([
        name,
        'strict',
        { type: 'object', enabled: false },
      ])
    }
  })

  test('that are listed are sorted in the order in which they are walked; no other is', () => {
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

  test('never hold money or text as something to calculate or search with', () => {
    const types = Object.values(indices).flatMap(({ mappings }) =>
      Object.values(mappings.properties).map(property => (property as { type: string }).type),
    )
    expect(new Set(types)).toEqual(new Set(['keyword', 'long', 'object', 'boolean']))
  })

  test('are refreshed by us alone', () => {
    for (const { settings } of Object.values(indices)) expect(settings.refresh_interval).toBe('-1')
  })

  test('have as many shards as asked for, and of what all generations share one', () => {
    for (const [name, { settings }] of Object.entries(indices)) {
      expect([name, settings.number_of_shards]).toEqual([name, name.includes('-g1-') ? 2 : 1])
    }
  })

  test('have a copy where there is a second node, or exactly as many as asked for', () => {
    const copies = (definitions: Record<string, IndexDefinition>) =>
      new Set(
        Object.values(definitions).map(({ settings }) =>
          [settings.auto_expand_replicas, settings.number_of_replicas].join(),
        ),
      )
    expect(copies(indices)).toEqual(new Set(['0-1,']))
    const given = { ...generationIndices('commission', 'g1', 2, 0), ...commonIndices('commission', 0) }
    expect(copies(given)).toEqual(new Set([',0']))
  })
})
