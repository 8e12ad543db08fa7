/**
 * Two nodes of Elasticsearch, three shards with one replica each. The node that is not master is killed, and comes
 * back. Only the first node may be master: of two master-eligible nodes, the loss of either stops the cluster.
 */
import { beforeAll, expect, test } from 'vitest'
import { freePort } from '../../services/ports.ts'
import type { Service } from '../../services/service.ts'
import { foldAll } from '../support/agreement.ts'
import { expectIntact, expectRecovery, type Installation, startInstallation } from '../support/installation.ts'
import { keepPublishing } from '../support/load.ts'
import { startOwnServer } from '../support/own-services.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { type FaultProxy, startProxy } from '../support/proxy.ts'
import { createRandom, type Random, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { canRunSeveralNodes } from '../support/several-nodes.ts'
import { indexNamed, indexWith } from '../support/stored.ts'
import { expectWalkedAsModelled, startWalkers } from '../support/walkers.ts'

const SHARDS = 3
const ROUNDS = 2
const FEW = 5
/** Two nodes and all clients share the cores of the machine. */
const WHOLE_WITHIN_MS = 180_000
const TEST_TIMEOUT_MS = 600_000
const seed = seedOfRun()
const file = fileScope()
let kafka: Service

beforeAll(async () => {
  console.log(`seed ${seed}`)
  kafka = await startOwnServer(file, 'kafka')
})

type Nodes = {
  readonly first: Service
  readonly second: Service
  /** The proxies between the two nodes. Clients do not use them. */
  readonly between: readonly FaultProxy[]
}

/** The first node is always the master. The second one only holds data. */
const startNodes = async (scope: Scope): Promise<Nodes> => {
  const [one, other] = [await portThroughProxy(scope), await portThroughProxy(scope)]
  const cluster = {
    'discovery.type': 'multi-node',
    'discovery.seed_hosts': one.proxy.address,
    // As in docs/scale.md: a node without a master must not answer from its old data.
    'cluster.no_master_block': 'all',
    // Shards are small here: many recoveries at the same time are faster than two.
    'cluster.routing.allocation.node_concurrent_recoveries': '8',
  }
  const node = (settings: Record<string, string>) =>
    startOwnServer(scope, 'elasticsearch', { settings: { ...cluster, ...settings } })
  const first = await node({
    'node.name': 'first',
    'node.roles': 'master,data',
    'cluster.initial_master_nodes': 'first',
    ...one.settings,
  })
  const second = await node({ 'node.name': 'second', 'node.roles': 'data', ...other.settings })
  return { first, second, between: [one.proxy, other.proxy] }
}

/** Returns the transport settings of a node: it publishes the port of the proxy to the other node. */
const portThroughProxy = async (scope: Scope) => {
  const port = String(await freePort())
  const proxy = await startProxy(scope, `127.0.0.1:${port}`)
  return { proxy, settings: { 'transport.port': port, 'transport.publish_port': String(proxy.port) } }
}

const install = (scope: Scope, { first, second }: Nodes, random: Random): Promise<Installation> =>
  startInstallation(scope, {
    kafka: kafka.address,
    elasticsearch: first.address,
    others: [second.address],
    settings: { ELASTICSEARCH_SHARDS: String(SHARDS), ELASTICSEARCH_REPLICAS: '1' },
    random,
  })

const get = async (node: Service, path: string): Promise<unknown> => {
  const answer = await fetch(`${node.address}${path}`)
  expect(answer.status).toBe(200)
  return answer.json()
}
/** Returns the number of data nodes and the status, as the master sees them. */
const health = (node: Service) =>
  get(node, '/_cluster/health') as Promise<{ number_of_data_nodes: number; status: string }>
const whole = (node: Service): Promise<void> =>
  eventually(async () => expect(await health(node)).toMatchObject({ number_of_data_nodes: 2, status: 'green' }), {
    within: WHOLE_WITHIN_MS,
  })
const alone = (node: Service): Promise<void> =>
  eventually(async () => expect(await health(node)).toMatchObject({ number_of_data_nodes: 1, status: 'yellow' }))

const MOST = 10_000
type Hits = { readonly hits: { readonly hits: readonly { readonly _id: string }[] } }
/** Returns what a search finds in the shard copies of one node. */
const searchable = async (node: Service, name: string, index: string) => {
  const { nodes } = (await get(node, `/_nodes/${name}/_none`)) as { nodes: Record<string, object> }
  const only = `preference=_only_nodes:${Object.keys(nodes)[0]}&version=true&size=${MOST}`
  const { hits } = ((await get(node, `/${index}/_search?${only}`)) as Hits).hits
  expect(hits.length).toBeLessThan(MOST)
  return hits.toSorted((a, b) => (a._id < b._id ? -1 : 1))
}

const testNodes = test.runIf(canRunSeveralNodes)

testNodes(
  'a node that is killed during reads and writes loses nothing, and its shard copies are complete after its return',
  async t => {
    const nodes = await startNodes(t)
    const { first, second } = nodes
    await whole(first)
    const random = createRandom(seed)
    const installation = await install(t, nodes, random)
    const { prefix, proxy, projector, walkers, topics, next } = installation
    const payouts = indexNamed(prefix, 'payouts')
    const copies = (await get(first, `/_cat/shards/${payouts}?format=json&h=prirep,node`)) as { node: string }[]
    expect(copies.map(({ node }) => node).toSorted()).toEqual(['first', 'first', 'first', 'second', 'second', 'second'])
    const isBulk = (line: string): boolean => line.startsWith('POST /_bulk?filter_path')
    const took: Record<'lost' | 'back', number[]> = { lost: [], back: [] }

    for (let round = 0; round < ROUNDS; round++) {
      await whole(first)
      const loading = keepPublishing(t, topics, () => next(FEW))
      for (let bulks = 0; bulks < 1 + random.below(4); bulks++) await proxy.passes(isBulk)
      await second.kill()
      await alone(first)
      // The remaining node serves alone while records arrive.
      const { pages } = walkers.soFar()
      await eventually(() => expect(walkers.soFar().pages).toBeGreaterThan(pages + 5))
      await loading.stop()
      took.lost.push(await expectRecovery(installation, WHOLE_WITHIN_MS))

      const again = keepPublishing(t, topics, () => next(FEW))
      await second.restart()
      await whole(first)
      await again.stop()
      took.back.push(await expectRecovery(installation, WHOLE_WITHIN_MS))
    }
    const seconds = (all: readonly number[]): string => all.map(one => (one / 1_000).toFixed(1)).join(', ')
    console.log(`caught up ${seconds(took.lost)} s after the loss, ${seconds(took.back)} s after the return`)
    console.log(`pages ${walkers.soFar().pages}, of 503 ${walkers.soFar().unavailable}`)
    await expectIntact(installation)
    await untilCaughtUp(projector)
    for (const kind of ['reps', 'periods', 'payouts', 'payroll_files'] as const) {
      const index = indexWith(indexNamed(prefix, kind))
      const [one, other] = await Promise.all(['first', 'second'].map(name => searchable(first, name, index)))
      expect(one?.length).toBeGreaterThan(0)
      expect(other).toEqual(one)
    }
  },
  TEST_TIMEOUT_MS,
)

testNodes(
  'a node that is cut off from the master but reachable by clients never serves old data, and clients hardly notice it',
  async t => {
    const nodes = await startNodes(t)
    const { first, between } = nodes
    await whole(first)
    const installation = await install(t, nodes, createRandom(seed + 1))
    const { topics, next, walkers, keys } = installation
    await whole(first)
    const { api } = installation
    const many = startWalkers({ apis: () => [api], keys, random: createRandom(seed + 2), walkers: 4, every: 5 })
    t.onTestFinished(async () => void (await many.stop()))
    for (let round = 0; round < ROUNDS; round++) {
      for (const proxy of between) await proxy.inject({ kind: 'away' })
      await alone(first)
      const loading = keepPublishing(t, topics, () => next(FEW))
      const { pages } = many.soFar()
      await eventually(() => expect(many.soFar().pages).toBeGreaterThan(pages + 200))
      await loading.stop()
      await expectRecovery(installation, WHOLE_WITHIN_MS)
      for (const proxy of between) await proxy.heal()
      await whole(first)
      await expectRecovery(installation, WHOLE_WITHIN_MS)
    }
    const walked = await many.stop()
    const unavailable = walked.unavailable + walkers.soFar().unavailable
    console.log(`pages ${walked.pages}, of 503 ${unavailable}`)
    expect(unavailable).toBeLessThan(walked.pages / 10)
    await expectIntact(installation)
    expectWalkedAsModelled(walked, foldAll(topics).model)
  },
  TEST_TIMEOUT_MS,
)
