/**
 * Three nodes of Elasticsearch under load. All three may be master and hold data; each shard has one replica. All nodes
 * restart one after the other, as an upgrade does. Then one node that holds only replicas stands still.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Service } from '../../services/service.ts'
import { type ElasticsearchNode, startElasticsearchNodes } from '../support/elasticsearch-nodes.ts'
import { startOwnServer } from '../support/own-services.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { expectIntactAfterLoad, type Loaded, startUnderLoad, untilMoving } from '../support/several-brokers.ts'
import { canRunSeveralNodes, START_SEVERAL_MS, seconds } from '../support/several-nodes.ts'
import { indexNamed, indexWith } from '../support/stored.ts'

/** Three nodes, Kafka and all clients share the cores of the machine. */
const WHOLE_WITHIN_MS = 180_000
/** While a node is gone: a request that it left open ends after 20 s, and the others may first elect a master. */
const WITHOUT_WITHIN_MS = 60_000
const TEST_TIMEOUT_MS = 600_000
/** Without an answer for some 30 s, the master removes a node from the cluster. */
const STAYS_MS = 15_000
const REMOVED_WITHIN_MS = 120_000
const seed = seedOfRun()
const file = fileScope()
let kafka: Service
let nodes: readonly ElasticsearchNode[]

beforeAll(async () => {
  if (!canRunSeveralNodes) return
  console.log(`seed ${seed}`)
  kafka = await startOwnServer(file, 'kafka')
  nodes = await startElasticsearchNodes(file)
}, START_SEVERAL_MS)

const load = (scope: Scope): Promise<Loaded> => {
  const [first = '', ...others] = nodes.map(({ service }) => service.address)
  const settings = { ELASTICSEARCH_SHARDS: '3', ELASTICSEARCH_REPLICAS: '1' }
  const random = createRandom(seed)
  return startUnderLoad(scope, kafka, { elasticsearch: first, others, settings, random })
}

/** Asks a node other than `except`. */
const get = async (path: string, except?: ElasticsearchNode): Promise<unknown> => {
  const asked = nodes.find(node => node !== except)
  const answer = await fetch(`${asked?.service.address}${path}`)
  expect(answer.status).toBe(200)
  return answer.json()
}
const untilNodes = (count: number, within: number, except?: ElasticsearchNode): Promise<void> =>
  eventually(async () => expect(await get('/_cluster/health', except)).toMatchObject({ number_of_nodes: count }), {
    within,
  })
const untilWhole = (): Promise<void> =>
  eventually(async () => expect(await get('/_cluster/health')).toMatchObject({ number_of_nodes: 3, status: 'green' }), {
    within: WHOLE_WITHIN_MS,
  })

type Copy = { readonly index: string; readonly shard: string; readonly prirep: string; readonly node: string }
const copiesOf = async (pattern: string) =>
  (await get(`/_cat/shards/${pattern}?format=json&h=index,shard,prirep,node`)) as readonly Copy[]

const MOST = 10_000
type Hits = { readonly hits: { readonly hits: readonly { readonly _id: string }[] } }
/** Returns what a search finds in one copy of a shard. */
const searchable = async (index: string, shard: string, node: string) => {
  const ids = Object.keys(((await get(`/_nodes/${node}/_none`)) as { nodes: object }).nodes)
  const preference = encodeURIComponent(`_shards:${shard}|_only_nodes:${ids.join()}`)
  const path = `/${index}/_search?preference=${preference}&version=true&size=${MOST}`
  const { hits } = ((await get(path)) as Hits).hits
  expect(hits.length).toBeLessThan(MOST)
  return hits.toSorted((a, b) => (a._id < b._id ? -1 : 1))
}

/** Expects that primary and replica of each shard have the same documents. */
const expectEqualCopies = async ({ prefix }: Loaded): Promise<void> => {
  for (const kind of ['reps', 'periods', 'payouts', 'payroll_files'] as const) {
    const copies = await copiesOf(indexWith(indexNamed(prefix, kind)))
    let documents = 0
    for (const { index, shard, node } of copies.filter(({ prirep }) => prirep === 'p')) {
      const replica = copies.find(copy => copy.shard === shard && copy.prirep === 'r')
      const inPrimary = await searchable(index, shard, node)
      expect(await searchable(index, shard, replica?.node ?? '')).toEqual(inPrimary)
      documents += inPrimary.length
    }
    expect(documents).toBeGreaterThan(0)
  }
}

const expectIntact = async (loaded: Loaded): Promise<void> => {
  await untilWhole()
  await expectIntactAfterLoad(loaded)
  await expectEqualCopies(loaded)
  const { pages, unavailable } = loaded.walkers.soFar()
  console.log(`pages ${pages}, of 503 ${unavailable}`)
}

describe.skipIf(!canRunSeveralNodes)('of three nodes of Elasticsearch', () => {
  test(
    'all restart one after the other: all moves again without each and with each',
    async t => {
      const loaded = await load(t)
      for (const { name, service } of nodes) {
        await untilWhole()
        await service.stop()
        const without = await untilMoving(loaded, WITHOUT_WITHIN_MS)
        await service.restart()
        const withIt = await untilMoving(loaded)
        console.log(`${name}: moving ${seconds(without)} after its stop, ${seconds(withIt)} after its return`)
      }
      await expectIntact(loaded)
    },
    TEST_TIMEOUT_MS,
  )

  /** After its restart, a node is not the master and holds only replicas. */
  const makeReplicasOnly = async ({ name, service }: ElasticsearchNode): Promise<void> => {
    await untilWhole()
    await service.stop()
    await untilNodes(2, WHOLE_WITHIN_MS)
    await service.restart()
    await untilWhole()
    const held = (await copiesOf('*')).filter(({ node }) => node === name)
    expect(held.length).toBeGreaterThan(0)
    expect(held.filter(({ prirep }) => prirep === 'p')).toEqual([])
  }

  const lags = [
    {
      how: 'stands still and stays a member',
      until: async (began: number) => {
        await eventually(() => expect(performance.now() - began).toBeGreaterThan(STAYS_MS), { every: 500 })
        expect(await get('/_cluster/health', nodes[2])).toMatchObject({ number_of_nodes: 3 })
      },
    },
    {
      how: 'stands still until it is removed',
      until: async (_: number, loaded: Loaded) => {
        await untilNodes(2, REMOVED_WITHIN_MS, nodes[2])
        console.log(`without it moving after ${seconds(await untilMoving(loaded, WITHOUT_WITHIN_MS))}`)
      },
    },
  ]
  test.for(lags)(
    'one that holds only replicas $how: all moves again after its return',
    { timeout: TEST_TIMEOUT_MS },
    async ({ until }, t) => {
      const loaded = await load(t)
      const [, , lagging] = nodes
      if (lagging === undefined) throw new Error('no third node')
      await makeReplicasOnly(lagging)
      await untilMoving(loaded)
      const began = performance.now()
      await lagging.service.freeze()
      await until(began, loaded)
      await lagging.service.thaw()
      console.log(`moving ${seconds(await untilMoving(loaded))} after its return`)
      await expectIntact(loaded)
    },
  )
})
