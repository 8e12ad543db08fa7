/** An installation under load, for faults of one or more of its three brokers or three nodes of Elasticsearch. */
import { beforeAll, expect } from 'vitest'
import type { Service } from '../../services/service.ts'
import { expectProjectedAsModelled } from './agreement.ts'
import { expectServedAsModelled, type Installation, RECOVERY_SHARED_MS, startInstallation } from './installation.ts'
import { readLog } from './log.ts'
import { startOwnCluster, startOwnServer } from './own-services.ts'
import { type Projector, startProjector, untilCaughtUp } from './processes.ts'
import { type Publisher, startPublisher } from './publisher.ts'
import { activeController } from './quorum.ts'
import type { Random } from './random.ts'
import { eventually, fileScope, type Scope } from './scope.ts'
import { canRunSeveralNodes, START_SEVERAL_MS } from './several-nodes.ts'
import type { Topics } from './topics.ts'
import { expectWalkedAsModelled } from './walkers.ts'

const RECORDS_TOGETHER = 5
const EVERY_MS = 100
/** Three brokers, Elasticsearch and all clients share the cores of the machine. */
const IN_SYNC_WITHIN_MS = 120_000

export type Brokers = {
  readonly address: string
  readonly nodes: readonly Service[]
  /** Returns the broker that leads a partition of the events. */
  readonly leader: (topics: Topics, partition: number) => Promise<Service>
  readonly controller: () => Promise<Service>
  /** Returns the broker that coordinates a consumer group. */
  readonly coordinator: (topics: Topics, groupId: string) => Promise<Service>
  /** Waits until each replica of both topics is in sync. */
  readonly untilInSync: (topics: Topics, replicas?: number) => Promise<void>
}

export const startBrokers = async (scope: Scope): Promise<Brokers> => {
  const { address, nodes } = await startOwnCluster(scope, { brokers: 3, secure: undefined })
  const nodeOf = (id: number): Service => {
    const node = nodes[id - 1]
    if (node === undefined) throw new Error(`no broker ${id}`)
    return node
  }
  return {
    address,
    nodes,
    leader: async (topics, partition) => {
      const all = await partitionsOf(topics)
      return nodeOf(all.find(one => one.name === topics.events && one.partitionId === partition)?.leader ?? 0)
    },
    coordinator: async ({ admin }, groupId) => {
      const { topics } = await admin.fetchTopicMetadata({ topics: [OFFSETS_TOPIC] })
      const partitions = topics[0]?.partitions ?? []
      const of = partitions.find(({ partitionId }) => partitionId === offsetsPartition(groupId, partitions.length))
      return nodeOf(of?.leader ?? 0)
    },
    controller: async () => nodeOf(await activeController(nodes[0]?.address ?? '')),
    untilInSync: (topics, replicas = nodes.length) => untilReplicasInSync(topics, replicas),
  }
}

type BothTopics = Pick<Topics, 'admin' | 'events' | 'apiKeys'>

const partitionsOf = async ({ admin, events, apiKeys }: BothTopics) => {
  const { topics } = await admin.fetchTopicMetadata({ topics: [events, apiKeys] })
  return topics.flatMap(({ name, partitions }) => partitions.map(partition => ({ name, ...partition })))
}

/** Waits until each partition of both topics has this number of replicas in sync. */
export const untilReplicasInSync = (topics: BothTopics, replicas: number): Promise<void> =>
  eventually(
    async () => {
      for (const { isr } of await partitionsOf(topics)) expect(isr.length).toBe(replicas)
    },
    { within: IN_SYNC_WITHIN_MS, every: 200 },
  )

type Servers = { readonly brokers: Brokers; readonly elasticsearch: string }

/** Starts three brokers and Elasticsearch for all tests of a file. Returns a function that a test gets them from. */
export const startServersOfFile = (seed: number): (() => Servers) => {
  const file = fileScope()
  let servers: Servers | undefined
  beforeAll(async () => {
    if (!canRunSeveralNodes) return
    console.log(`seed ${seed}`)
    const { address } = await startOwnServer(file, 'elasticsearch')
    servers = { brokers: await startBrokers(file), elasticsearch: address }
  }, START_SEVERAL_MS)
  return () => servers ?? expect.fail('the brokers do not run')
}

/** The broker that has a role, with the role in words. */
export const brokersByRole = {
  leader: {
    who: 'the leader of a partition',
    choose: (brokers: Brokers, { topics }: Loaded) => brokers.leader(topics, 0),
  },
  controller: { who: 'the active controller', choose: (brokers: Brokers) => brokers.controller() },
  coordinator: {
    who: 'the coordinator of the projectors',
    choose: (brokers: Brokers, { topics, prefix }: Loaded) => brokers.coordinator(topics, `${prefix}-g1`),
  },
}

const OFFSETS_TOPIC = '__consumer_offsets'
/** Kafka takes the hash of Java of the group id, without its sign. */
const offsetsPartition = (groupId: string, partitions: number): number => {
  let hash = 0
  for (const letter of groupId) hash = (31 * hash + letter.charCodeAt(0)) | 0
  return (hash & 0x7fffffff) % partitions
}

export type Loaded = Installation & {
  readonly projectors: readonly Projector[]
  readonly publisher: Publisher
  readonly startAnother: () => Promise<Projector>
}

type Options = {
  readonly elasticsearch: string
  /** As in `startInstallation`. */
  readonly others?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  readonly random: Random
  readonly projectors?: number
  readonly configuration?: Readonly<Record<string, string>>
}

/** Starts projectors, an API, a publisher, and clients that walk. */
export const startUnderLoad = async (
  scope: Scope,
  { address }: Pick<Brokers, 'address'>,
  options: Options,
): Promise<Loaded> => {
  const { projectors = 2, ...others } = options
  const installation = await startInstallation(scope, { kafka: address, ...others })
  const { topics, prefix, settings, next, projector } = installation
  const startAnother = (): Promise<Projector> => startProjector(scope, { topics, prefix, settings })
  const all = [projector, ...(await Promise.all(Array.from({ length: projectors - 1 }, startAnother)))]
  const publisher = await startPublisher(scope, topics, endless(next), EVERY_MS)
  scope.onTestFinished(async () => void publisher.stop())
  await untilMoving({ ...installation, publisher })
  return { ...installation, projectors: all, publisher, startAnother }
}

function* endless(next: Installation['next']) {
  for (;;) yield next(RECORDS_TOGETHER)
}

/**
 * Waits until each partition has published a record that was sent from now on, and clients read. Returns milliseconds.
 */
export const untilMoving = async (
  { positions, publisher, walkers }: Pick<Loaded, 'positions' | 'publisher' | 'walkers'>,
  within = RECOVERY_SHARED_MS,
): Promise<number> => {
  const began = performance.now()
  const { pages } = walkers.soFar()
  await eventually(
    () => {
      const latest = positions.latest()
      const said = `acknowledged ${publisher.soFar()}; positions ${latest}`
      for (const [partition, end] of publisher.endsSince(began).entries()) {
        expect(latest[partition], said).toBeGreaterThanOrEqual(end ?? Number.POSITIVE_INFINITY)
      }
      expect(walkers.soFar().pages).toBeGreaterThan(pages)
    },
    { within, every: 20 },
  )
  return performance.now() - began
}

/** Ends the load. Expects that nothing is lost or twice, and that no client and no process saw anything else. */
export const expectIntactAfterLoad = async (loaded: Loaded): Promise<void> => {
  const { publisher, projectors, api, topics, prefix, keys, positions, walkers } = loaded
  await publisher.stop()
  for (const projector of projectors) await untilCaughtUp(projector)
  for (const { exit, log } of [...projectors, api]) expect(exit(), log()).toBeUndefined()
  const walked = await walkers.stop()
  await positions.stop()
  expect(positions.wentBack()).toEqual([])
  const log = await readLog(topics)
  for (const [partition, end] of publisher.ends().entries()) {
    const inLog = log.filter(record => record.stream === 'events' && record.partition === partition)
    expect(inLog.length).toBeGreaterThanOrEqual(end)
  }
  const model = await expectProjectedAsModelled(prefix, { ...topics, published: () => log })
  await expectServedAsModelled([api], keys, model, 50)
  expectWalkedAsModelled(walked, model)
}
