import { describe, expect, test } from 'vitest'
import { KEY_RULES_VERSION, RULES_VERSION } from '../../../../core/ledger/rules/rules.ts'
import { readGenerations } from '../../../../core/store/generations/generations.ts'
import {
  layoutOfNew,
  makeFirstLive,
  openGeneration,
  type PrepareSteps,
  prepareCommon,
  prepareGeneration,
} from '../../../../core/store/generations/prepare.ts'
import { recordIndices } from '../../../../core/store/generations/recorded.ts'
import type { GenerationDocument } from '../../../../schemas/stored/documents.ts'
import { commonIndices, generationIndices, type IndexDefinition } from '../../../../schemas/stored/mappings.ts'
import { StartedElasticsearch as Elasticsearch } from '../../../projector/started-elasticsearch.ts'
import { sending } from '../../../support/answering.ts'

const source = { topic: 'commission.events', cluster_id: 'cluster-1', partitions: 2 }
const ends = [
  { partition: 0, low: 0, end: 5 },
  { partition: 1, low: 0, end: 7 },
]
const stepsOf = (elasticsearch: Elasticsearch): PrepareSteps => ({
  request: elasticsearch.request,
  prefix: 'test',
  shards: 1,
})
const start = async (elasticsearch: Elasticsearch, steps = stepsOf(elasticsearch)): Promise<string> => {
  await prepareCommon(steps)
  const generation = (await readGenerations(steps))?.live ?? 'g1'
  await prepareGeneration(generation, source, ends, steps)
  await prepareGeneration('api-keys', { ...source, partitions: 1 }, ends.slice(0, 1), steps)
  await makeFirstLive(generation, steps)
  return generation
}
const started = async (): Promise<Elasticsearch> => {
  const elasticsearch = new Elasticsearch()
  await start(elasticsearch)
  return elasticsearch
}
const stops = (code: string) => expect.objectContaining({ code })
const layout = layoutOfNew({ shards: 1 })
const g1 = generationIndices('test', { generation: 'g1', ...layout }, { shards: 1 })
const all: Record<string, IndexDefinition> = { ...commonIndices('test'), ...g1 }
const idsOf = (...names: string[]) => {
  const all = ['test-control', ...names]
  const indices = Object.fromEntries(all.map(name => [name, `id of ${name}`]))
  return { indices, shards: Object.fromEntries(all.map(name => [`${name}/0`, `history of ${name}`])) }
}
const idsOfG1 = idsOf(...Object.keys(g1))
const idsOfKeys = idsOf('test-api-keys', 'test-api-keys-parked')
const position = { position: 0, last: null, at: 0, time: 0 }

describe('a first start', () => {
  test('creates every index, a position per partition and the generations, and makes one live', async () => {
    const elasticsearch = await started()
    expect([...elasticsearch.indices.keys()].sort()).toEqual(Object.keys(all).sort())
    for (const [name, { mappings, settings }] of Object.entries(all)) {
      expect(elasticsearch.indices.get(name)).toEqual({ mappings, settings: { index: settings } })
    }
    expect(Object.fromEntries(elasticsearch.documents)).toEqual({
      'test-control/position:g1:0': { kind: 'position', body: { ...position, serve_from: 0 } },
      'test-control/position:g1:1': { kind: 'position', body: { ...position, serve_from: 0 } },
      'test-control/generation:g1': {
        kind: 'generation',
        body: { generation: 'g1', ...source, rules_version: RULES_VERSION, ...layout, ...idsOfG1 },
      },
      // Keys are served once the topic is read up to the end that this start found.
      'test-control/position:api-keys:0': { kind: 'position', body: { ...position, serve_from: 5 } },
      'test-control/generation:api-keys': {
        kind: 'generation',
        body: {
          generation: 'api-keys',
          ...source,
          partitions: 1,
          rules_version: KEY_RULES_VERSION,
          ...idsOfKeys,
        },
      },
      'test-control/live': { kind: 'live', body: { generation: 'g1 (needs 1.2.0)' } },
    })
  })

  test('forbids Elasticsearch to create indices automatically before it creates the first one', async () => {
    expect((await started()).asked[0]).toBe('PUT /_index_template/test-no-auto-create')
  })

  test('that was interrupted after any request is completed by the next start', async () => {
    const whole = await started()
    for (let requests = 1; requests < whole.asked.length; requests++) {
      const elasticsearch = new Elasticsearch()
      const steps = stepsOf(elasticsearch)
      const cut = sending(async request => {
        if (elasticsearch.asked.length === requests) throw new Error('cut off')
        return elasticsearch.request(request)
      })
      await expect(start(elasticsearch, { ...steps, request: cut })).rejects.toThrow('cut off')
      expect(await start(elasticsearch), `cut off after ${requests} requests`).toBe('g1')
      expect(elasticsearch.documents).toEqual(whole.documents)
      expect(elasticsearch.indices).toEqual(whole.indices)
    }
  })

  test('that runs beside another one has the same result, whatever request the other one has reached', async () => {
    const whole = await started()
    for (let requests = 0; requests <= whole.asked.length; requests++) {
      const elasticsearch = new Elasticsearch()
      let count = 0
      let other: Promise<string> | undefined
      const request = sending(async asked => {
        if (count++ === requests) other = start(elasticsearch)
        await other
        return elasticsearch.request(asked)
      })
      expect(await start(elasticsearch, { ...stepsOf(elasticsearch), request })).toBe('g1')
      expect(elasticsearch.documents).toEqual(whole.documents)
    }
  })

  test('that alternates its requests with another one has the same result', async () => {
    const whole = await started()
    for (let delay = 0; delay < 12; delay++) {
      const elasticsearch = new Elasticsearch()
      const late = async (): Promise<string> => {
        for (let turn = 0; turn < delay; turn++) await Promise.resolve()
        return start(elasticsearch)
      }
      expect(await Promise.all([start(elasticsearch), late()])).toEqual(['g1', 'g1'])
      expect(elasticsearch.documents).toEqual(whole.documents)
    }
  })
})

describe('a first start whose index Elasticsearch refuses', () => {
  test.each([
    [
      400,
      'validation_exception; the cluster may allow no more shards: cluster.max_shards_per_node',
      { error: { type: 'validation_exception', reason: 'would add [2] shards' } },
    ],
    [400, 'no type', undefined],
    [404, 'resource_not_found_exception', { error: { type: 'resource_not_found_exception' } }],
  ])('with %i and %s stops with both, and does not say that an index is missing', async (status, type, body) => {
    const name = 'test-g1-payouts'
    const elasticsearch = new Elasticsearch()
    const request = sending(async asked =>
      asked.method === 'PUT' && asked.path === `/${name}` ? { status, body } : elasticsearch.request(asked),
    )
    const refused = start(elasticsearch, { ...stepsOf(elasticsearch), request })
    await expect(refused).rejects.toThrow(stops('write_refused'))
    await expect(refused).rejects.toThrow(
      new RegExp(`index for good, .*: creating ${name}: Elasticsearch answers ${status}, ${type}$`),
    )
    expect(elasticsearch.control('generation:g1')).toBeUndefined()
    expect(await start(elasticsearch)).toBe('g1')
  })

  test('names the index templates of others, which may have changed the index', async () => {
    const elasticsearch = new Elasticsearch()
    const templates = { index_templates: [{ name: 'few-fields', index_template: { index_patterns: ['*'] } }] }
    const request = sending(async asked => {
      if (asked.method === 'PUT' && asked.path === '/test-g1-payouts') {
        return { status: 400, body: { error: { type: 'illegal_argument_exception' } } }
      }
      if (asked.method === 'GET' && asked.path === '/_index_template') return { status: 200, body: templates }
      return elasticsearch.request(asked)
    })
    const named = /400, illegal_argument_exception; index templates of others that apply to it: few-fields$/
    await expect(start(elasticsearch, { ...stepsOf(elasticsearch), request })).rejects.toThrow(named)
  })
})

describe('a later start', () => {
  test('creates and changes nothing', async () => {
    const elasticsearch = await started()
    const before = structuredClone([...elasticsearch.documents])
    elasticsearch.asked.length = 0
    await start(elasticsearch)
    expect([...elasticsearch.documents]).toEqual(before)
    const writes = elasticsearch.asked.filter(asked => asked.startsWith('PUT'))
    expect(writes).toEqual(['PUT /_index_template/test-no-auto-create', 'PUT /test-control/_create/live'])
  })

  test('continues with the live generation', async () => {
    const elasticsearch = await started()
    elasticsearch.documents.set('test-control/live', { kind: 'live', body: { generation: 'g2' } })
    expect(await readGenerations(stepsOf(elasticsearch))).toMatchObject({ live: 'g2', active: ['g2'] })
  })

  test.each(Object.keys(all))(
    'is refused if %s is missing: an empty index must not look like an empty organization',
    async name => {
      const elasticsearch = await started()
      elasticsearch.indices.delete(name)
      await expect(start(elasticsearch)).rejects.toThrow(stops('index_missing'))
      expect(elasticsearch.indices.has(name)).toBe(false)
    },
  )

  test.each(Object.keys(all))('is refused if %s has a different mapping or sort order', async name => {
    const right = (await started()).indices.get(name)
    const { sort: _, ...others } = right?.settings.index ?? {}
    for (const change of [
      { mappings: { dynamic: 'true', properties: {} } },
      { settings: { index: { ...right?.settings.index, sort: { field: ['seq'], order: ['desc'] } } } },
      ...(right?.settings.index.sort === undefined ? [] : [{ settings: { index: others } }]),
    ]) {
      const elasticsearch = await started()
      if (right) elasticsearch.indices.set(name, { ...right, ...change })
      await expect(start(elasticsearch)).rejects.toThrow(stops('index_unsuitable'))
    }
  })

  test('creates nothing if the control index is missing but an index of a projection exists', async () => {
    const left = ['test-api-keys', 'test-api-keys-parked', 'test-g1-reps', 'test-g2-payouts', 'test-g17-parked']
    for (const name of left) {
      const elasticsearch = new Elasticsearch()
      elasticsearch.indices.set(name, { mappings: {}, settings: { index: {} } })
      const refused = start(elasticsearch)
      await expect(refused).rejects.toThrow(stops('index_missing'))
      await expect(refused).rejects.toThrow(`test-control, but there are ${name}; restore test-control`)
      expect([...elasticsearch.indices.keys()]).toEqual([name])
      expect(elasticsearch.documents.size).toBe(0)
    }
  })

  test('names the first few of the remaining indices, and their number', async () => {
    const elasticsearch = await started()
    elasticsearch.indices.delete('test-control')
    await expect(start(elasticsearch)).rejects.toThrow(
      `there are test-api-keys, test-api-keys-parked, test-g1-chains, … (${Object.keys(all).length - 1} in all)`,
    )
  })

  test('is a first start beside sandboxes and installations with a similar prefix', async () => {
    const whole = await started()
    const elasticsearch = new Elasticsearch()
    for (const prefix of ['test-eu', 'test-g1', 'test-sandbox', 'tes', 'testing'])
      for (const name of ['control', 'api-keys', 'api-keys-parked', 'g1-reps', 's1-payouts'])
        elasticsearch.indices.set(`${prefix}-${name}`, { mappings: {}, settings: { index: {} } })
    expect(await start(elasticsearch)).toBe('g1')
    expect(elasticsearch.documents).toEqual(whole.documents)
  })

  test('is refused if the live document is missing and a second generation exists', async () => {
    const elasticsearch = await started()
    elasticsearch.documents.delete('test-control/live')
    elasticsearch.indices.set('test-g2-reps', { mappings: {}, settings: { index: {} } })
    const before = structuredClone(elasticsearch.documents)
    await expect(start(elasticsearch)).rejects.toThrow('document "live" of test-control, but there are indices of g2')
    expect(elasticsearch.documents).toEqual(before)
  })

  test.each(Object.keys(all))('is refused if %s was replaced: restored, or created again', async name => {
    const elasticsearch = await started()
    elasticsearch.replaced.add(name)
    const before = structuredClone(elasticsearch.documents)
    const refused = start(elasticsearch)
    await expect(refused).rejects.toThrow(stops('index_replaced'))
    await expect(refused).rejects.toThrow(name)
    expect(elasticsearch.documents).toEqual(before)
  })

  test('records the ids of its indices if an earlier version did not, and checks them from then on', async () => {
    const whole = await started()
    const elasticsearch = await started()
    for (const id of ['generation:g1', 'generation:api-keys']) {
      const { kind, body } = elasticsearch.control(id) as { kind: string; body: object }
      elasticsearch.documents.set(`test-control/${id}`, {
        kind,
        body: { ...body, indices: undefined, shards: undefined },
      })
    }
    expect(await start(elasticsearch)).toBe('g1')
    expect(elasticsearch.documents).toEqual(whole.documents)
    elasticsearch.replaced.add('test-g1-payouts')
    await expect(start(elasticsearch)).rejects.toThrow(stops('index_replaced'))
  })

  test('notes a shard that lost documents for the readers, and never another id of it', async () => {
    const elasticsearch = await started()
    const { body } = elasticsearch.control('generation:g1') as GenerationDocument
    elasticsearch.lost.add('test-g1-payouts')
    for (const _ of [1, 2]) await expect(start(elasticsearch)).rejects.toThrow(stops('index_replaced'))
    expect(elasticsearch.control('generation:g1')).toMatchObject({ body: { ...body, lost: 'test-g1-payouts/0' } })
  })

  test('records no ids for a generation that was dropped meanwhile: its document would come back', async () => {
    const elasticsearch = await started()
    const { body } = elasticsearch.control('generation:g1') as GenerationDocument
    elasticsearch.documents.delete('test-control/generation:g1')
    const { indices: _, ...identity } = body
    const names = Object.keys(g1)
    const before = structuredClone(elasticsearch.documents)
    await expect(recordIndices(identity, names, stepsOf(elasticsearch))).rejects.toThrow(stops('index_missing'))
    expect(elasticsearch.documents).toEqual(before)
  })

  test('leaves the number of replicas to the operator', async () => {
    const elasticsearch = await started()
    for (const index of elasticsearch.indices.values()) index.settings.index.auto_expand_replicas = '0-2'
    expect(await start(elasticsearch)).toBe('g1')
  })

  test('is refused with another source or another version of the rules', async () => {
    const elasticsearch = await started()
    const steps = stepsOf(elasticsearch)
    const other = prepareGeneration('g1', { ...source, cluster_id: 'cluster-2' }, ends, steps)
    await expect(other).rejects.toThrow(stops('source_changed'))

    const body = { generation: 'g1', ...source, ...layout, rules_version: RULES_VERSION + 1 }
    elasticsearch.documents.set('test-control/generation:g1', { kind: 'generation', body })
    await expect(start(elasticsearch)).rejects.toThrow(stops('rules_changed'))
  })

  test('of API keys does not depend on the version of the rules for commission events', async () => {
    const elasticsearch = await started()
    const steps = { ...stepsOf(elasticsearch), rulesVersion: RULES_VERSION + 1 }
    const keys = await prepareGeneration('api-keys', { ...source, partitions: 1 }, ends.slice(0, 1), steps)
    expect(keys.rules_version).toBe(KEY_RULES_VERSION)
    const made = await prepareGeneration('g2', source, ends, steps, 'g1')
    expect(made).toMatchObject({ generation: 'g2', rules_version: RULES_VERSION + 1, follows: 'g1' })
  })
})

describe('the layout of a generation', () => {
  const made = async (name: string, given: Partial<PrepareSteps>) => {
    const elasticsearch = await started()
    const steps = { ...stepsOf(elasticsearch), ...given }
    const identity = await prepareGeneration(name, source, ends, steps)
    return { elasticsearch, steps, identity }
  }

  test.each([1, 2, 3] as const)('%i is stored with it, and is the same at every later start', async of => {
    const { elasticsearch, steps, identity } = await made('g2', { layout: of })
    const ours = of === 1 ? {} : { layout: of }
    expect({ layout: identity.layout }).toEqual({ layout: undefined, ...ours })
    const wanted = generationIndices('test', { generation: 'g2', ...ours }, { shards: 1 })
    expect([...elasticsearch.indices.keys()].filter(name => name.includes('-g2-'))).toEqual(Object.keys(wanted))
    const again = { ...steps, layout: of === 1 ? (3 as const) : (1 as const) }
    expect(await openGeneration('g2', source, again)).toEqual(identity)
    expect(await prepareGeneration('g2', source, ends, again)).toEqual(identity)
  })

  test('is 3 unless a test says another one', async () => {
    expect((await made('g2', {})).identity).toMatchObject({ layout: 3 })
    expect((await made('g2', {})).identity).not.toHaveProperty('routing_partition_size')
  })

  test('has the shards of an organization, too, fewer than there are', async () => {
    const { elasticsearch, identity } = await made('g2', { layout: 2, shards: 3, routingPartitionSize: 2 })
    expect(identity).toMatchObject({ layout: 2, routing_partition_size: 2 })
    expect(elasticsearch.indices.get('test-g2-payouts')?.settings.index.routing_partition_size).toBe(2)
    const tooMany = made('g3', { layout: 2, shards: 3, routingPartitionSize: 3 })
    await expect(tooMany).rejects.toThrow('ELASTICSEARCH_ROUTING_PARTITION_SIZE is 3, ELASTICSEARCH_SHARDS is 3')
  })

  test('must be that of the indices that are there', async () => {
    const { elasticsearch } = await made('g2', { layout: 1 })
    elasticsearch.documents.delete('test-control/generation:g2')
    const other = prepareGeneration('g2', source, ends, { ...stepsOf(elasticsearch), layout: 2 })
    await expect(other).rejects.toThrow(stops('index_unsuitable'))
  })
})
