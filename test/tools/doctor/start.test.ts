/**
 * `npm run doctor` asks what a projector asks at its start: each fault that stops a start is found, with the same stop
 * code, and nothing changes. The table below has every refusal of a start.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { enterGroup } from '../../../core/log/follow/group.ts'
import { assertNotTruncated, fetchEnds, type SourceAdmin } from '../../../core/log/kafka/source.ts'
import type { InspectSteps } from '../../../core/projection/inspect-start.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { createHealth } from '../../../core/runtime/health.ts'
import { projectorSettings, readSettings } from '../../../core/runtime/settings.ts'
import { installationOf } from '../../../core/store/installation.ts'
import { openPublishedPosition } from '../../../core/store/positions/publish.ts'
import { createPublishedTimes } from '../../../core/store/positions/publish-times.ts'
import { prepare, type StartContext } from '../../../projector/start.ts'
import { createAttempt } from '../../../tools/doctor/attempts.ts'
import type { Finding } from '../../../tools/doctor/finding.ts'
import { checkStart } from '../../../tools/doctor/start.ts'
import { checkTopic } from '../../../tools/doctor/topics.ts'
import { StartedElasticsearch } from '../../projector/started-elasticsearch.ts'

const settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'kafka:9092',
  ELASTICSEARCH_URL: 'http://elasticsearch:9200',
  ELASTICSEARCH_INDEX_PREFIX: 'test',
})
const EVENTS = settings.KAFKA_EVENTS_TOPIC
const KEYS = settings.KAFKA_API_KEYS_TOPIC
const GROUP = settings.KAFKA_GROUP_ID

/** Kafka with both topics, and an installation that has started once. */
class World {
  readonly elasticsearch = new StartedElasticsearch()
  clusterId = 'cluster-1'
  topicId = 'AAAAAAAAAAAAAAAAAAAAAA'
  readonly partitions: Record<string, number> = { [EVENTS]: 2, [KEYS]: 1 }
  readonly configuration: Record<string, string> = {
    'cleanup.policy': 'delete',
    'retention.ms': '-1',
    'retention.bytes': '-1',
    'message.timestamp.type': 'LogAppendTime',
    'max.message.bytes': '10000000',
  }
  low = '0'
  high = '5'
  /** Members of other installations, by consumer group. */
  readonly members: Record<string, string> = {}

  readonly admin = {
    connect: async () => undefined,
    describeCluster: async () => ({ clusterId: this.clusterId }),
    fetchTopicMetadata: async ({ topics: [topic = ''] }: { topics: string[] }) => {
      const partitions = this.partitions[topic]
      if (partitions === undefined) throw unknownTopic()
      return {
        topics: [
          {
            partitions: Array.from({ length: partitions }, () => ({ replicas: [1], isr: [1], topicId: this.topicId })),
          },
        ],
      }
    },
    describeConfigs: async () => ({
      resources: [
        {
          configEntries: Object.entries(this.configuration).map(([configName, configValue]) => ({
            configName,
            configValue,
          })),
        },
      ],
    }),
    fetchTopicOffsets: async (topic: string) =>
      Array.from({ length: this.partitions[topic] ?? 0 }, (_, partition) => ({
        partition,
        low: this.low,
        high: this.high,
      })),
    describeGroups: async ([group = '']: string[]) => {
      const prefix = this.members[group]
      const userData = Buffer.from(JSON.stringify({ prefix, elasticsearch: null }))
      const memberMetadata = kafkajs.AssignerProtocol.MemberMetadata.encode({ version: 1, topics: [], userData })
      return {
        groups: [{ state: 'Stable', members: prefix ? [{ memberMetadata, memberAssignment: Buffer.alloc(0) }] : [] }],
      }
    },
  } as unknown as SourceAdmin & { connect(): Promise<void> }

  /** Starts as a projector does, up to its first record. */
  async start(): Promise<void> {
    const log = pino({ level: 'silent' })
    const health = createHealth(log, () => 0)
    const retryOptions = { sleep: () => Promise.reject(new Error('nothing is retried')), random: () => 0 }
    const { signal } = new AbortController()
    const elasticsearch = { send: this.elasticsearch.request }
    const kafka = undefined as unknown as StartContext['kafka']
    const context: StartContext = {
      ...{ kafka, kafkaWithConnectHook: () => kafka, elasticsearch, log, now: () => 0, elapsed: () => 0 },
      ...{ retryOptions, signal, openLog: () => Promise.reject(new Error('nothing was read before')) },
    }
    const list = await prepare(settings, this.admin, health, context)
    for (const stream of (await list([])).streams) {
      const { identity, controlIndex, prefix, groupId } = stream
      const ours = await installationOf(prefix, elasticsearch)
      await enterGroup({ groupId, identity }, ours, { admin: this.admin, retryOptions, health }, signal)
      const { generation, topic } = identity
      const { request } = this.elasticsearch
      const times = createPublishedTimes(controlIndex, generation, request)
      const ends = await fetchEnds(this.admin, topic)
      for (let partition = 0; partition < identity.partitions; partition++) {
        const of = { index: controlIndex, generation, request, replace: request, times }
        const { position } = (await openPublishedPosition(partition, of)).current()
        assertNotTruncated(topic, partition, position, ends)
      }
    }
  }

  /** Runs the checks of the doctor. */
  async doctor(): Promise<readonly Finding[]> {
    const findings: Finding[] = []
    const attempt = createAttempt(new AbortController().signal, finding => findings.push(finding))
    for (const [topic, partitions] of [
      [EVENTS, undefined],
      [KEYS, 1],
    ] as const) {
      const { admin } = this as unknown as { admin: Parameters<typeof checkTopic>[0]['admin'] }
      await attempt(`topic ${topic}`, () => checkTopic({ admin, topic, partitions, messageBytes: 1_000 }))
    }
    const { request } = this.elasticsearch
    const steps: InspectSteps = {
      ...{ request, send: request, admin: this.admin, prefix: 'test', groupId: GROUP },
      topics: { events: EVENTS, 'api-keys': KEYS },
    }
    await checkStart(attempt, () => steps)
    return findings
  }
}
const unknownTopic = (): Error =>
  Object.assign(new kafkajs.KafkaJSError('unknown'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' })

const started = async (): Promise<World> => {
  const world = new World()
  await world.start()
  return world
}
const control = (world: World, id: string, changes: object): void => {
  const key = `test-control/${id}`
  const { kind, body } = world.elasticsearch.documents.get(key) as { kind: string; body: object }
  world.elasticsearch.documents.set(key, { kind, body: { ...body, ...changes } })
}
const setting = (world: World, index: string, name: string, value: string): void => {
  const found = world.elasticsearch.indices.get(index)
  if (found) found.settings.index[name] = value
}

/** A fault that stops a start, by the refusal of `refusals` below. */
const faults: readonly (readonly [what: string, code: string, make: (world: World) => void])[] = [
  ['the topic of events is missing', 'topic_missing', world => delete world.partitions[EVENTS]],
  ['the topic of keys is missing', 'topic_missing', world => delete world.partitions[KEYS]],
  ['a topic is compacted', 'topic_unsuitable', world => (world.configuration['cleanup.policy'] = 'compact')],
  ['the topic of keys has two partitions', 'topic_unsuitable', world => (world.partitions[KEYS] = 2)],
  ['records were deleted', 'records_deleted', world => (world.low = '3')],
  ['the cluster is another one', 'source_changed', world => (world.clusterId = 'cluster-2')],
  ['a topic was made anew', 'source_changed', world => (world.topicId = 'BBBBBBBBBBBBBBBBBBBBBB')],
  ['the topic has another number of partitions', 'source_changed', world => (world.partitions[EVENTS] = 3)],
  [
    'the log ends before a position of events',
    'records_deleted',
    world => control(world, 'position:g1:1', { position: 6 }),
  ],
  [
    'the log ends before the position of keys',
    'records_deleted',
    world => control(world, 'position:api-keys:0', { position: 6 }),
  ],
  [
    'the live document is gone',
    'index_missing',
    world => {
      world.elasticsearch.documents.delete('test-control/live')
      world.elasticsearch.indices.set('test-g2-reps', { mappings: {}, settings: { index: {} } })
    },
  ],
  ['the control index is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-control')],
  [
    'the document of the generation is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/generation:g1'),
  ],
  [
    'the document of the generation of keys is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/generation:api-keys'),
  ],
  ['an index is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-g1-reps')],
  ['an index of keys is gone', 'index_missing', world => world.elasticsearch.indices.delete('test-api-keys')],
  ['a position is gone', 'index_missing', world => world.elasticsearch.documents.delete('test-control/position:g1:1')],
  [
    'the position of keys is gone',
    'index_missing',
    world => world.elasticsearch.documents.delete('test-control/position:api-keys:0'),
  ],
  ['documents are being removed', 'position_went_back', world => control(world, 'position:g1:0', { removing: true })],
  ['an index of events was restored', 'index_replaced', world => world.elasticsearch.replaced.add('test-g1-payouts')],
  [
    'an index of keys was restored',
    'index_replaced',
    world => world.elasticsearch.replaced.add('test-api-keys-parked'),
  ],
  ['the control index was restored', 'index_replaced', world => world.elasticsearch.replaced.add('test-control')],
  [
    'an index has another mapping',
    'index_unsuitable',
    world => {
      const index = world.elasticsearch.indices.get('test-g1-reps')
      if (index) index.mappings = { dynamic: 'true' }
    },
  ],
  ['an index has a pipeline', 'index_unsuitable', world => setting(world, 'test-g1-payouts', 'final_pipeline', 'x')],
  [
    'the control index has a pipeline',
    'index_unsuitable',
    world => setting(world, 'test-control', 'default_pipeline', 'x'),
  ],
  ['a template of others refuses ours', 'index_unsuitable', world => (world.elasticsearch.templateStatus = 400)],
  [
    'acknowledged documents can be lost',
    'index_unsuitable',
    world => {
      world.elasticsearch.mayManage = false
      setting(world, 'test-api-keys', 'translog.durability', 'async')
    },
  ],
  ['an index is an alias', 'index_unsuitable', world => world.elasticsearch.aliases.add('test-g1-reps')],
  ['the projection has other rules', 'rules_changed', world => control(world, 'generation:g1', { rules_version: 99 })],
  ['the keys have other rules', 'rules_changed', world => control(world, 'generation:api-keys', { rules_version: 99 })],
  ['the group of events is another installation’s', 'group_shared', world => (world.members[`${GROUP}-g1`] = 'other')],
  [
    'the group of keys is another installation’s',
    'group_shared',
    world => (world.members[`${GROUP}-api-keys`] = 'other'),
  ],
]

describe('what stops a start is found, and nothing changes:', () => {
  test.each(faults)('%s', async (_, code, make) => {
    const world = await started()
    make(world)
    const before = structuredClone([...world.elasticsearch.documents])
    const asked = world.elasticsearch.asked.length
    const failed = (await world.doctor()).filter(({ outcome }) => outcome === 'failed')
    expect(failed.length).toBeGreaterThan(0)
    const writes = world.elasticsearch.asked
      .slice(asked)
      .filter(one => !/^(GET|POST \/_index_template\/_simulate)/.test(one))
    expect(writes).toEqual([])
    expect([...world.elasticsearch.documents]).toEqual(before)
    const refused = await world.start().then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(refused).toBeInstanceOf(StopError)
    expect(refused).toMatchObject({ code })
    // The checks of topics have their own words.
    if (!code.startsWith('topic'))
      expect(failed.map(({ detail }) => detail).join('\n')).toMatch(new RegExp(`\\b${code}\\b`))
  })
})

test('a healthy installation, and one before its first start, has nothing that stops a start', async () => {
  for (const world of [await started(), new World()]) {
    const found = await world.doctor()
    expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual([])
    expect(found.filter(({ check, outcome }) => check === 'projection' && outcome !== 'ok')).toEqual([])
    await world.start()
  }
})

test('a spare generation that would not be projected is a warning, as a projector leaves it', async () => {
  const world = await started()
  control(world, 'live', { kept: ['g1', 'g2'] })
  const found = await world.doctor()
  await world.start()
  expect(found.filter(({ outcome }) => outcome === 'failed')).toEqual([])
  expect(found).toContainEqual(
    expect.objectContaining({
      outcome: 'warning',
      detail: expect.stringContaining('spare generation g2 would not be projected: index_missing'),
    }),
  )
})

test('a setting that a start puts back is told, and stays', async () => {
  const world = await started()
  setting(world, 'test-g1-reps', 'refresh_interval', '1s')
  const found = await world.doctor()
  expect(found).toContainEqual(
    expect.objectContaining({
      check: 'index test-g1-reps',
      outcome: 'warning',
      detail: expect.stringContaining('index.refresh_interval: expected -1, got 1s'),
    }),
  )
  expect(world.elasticsearch.indices.get('test-g1-reps')?.settings.index.refresh_interval).toBe('1s')
})

/** How often each file refuses with each code before the first record, and how the doctor finds it. */
type Row = { readonly times: number; readonly doctor: 'same function' | 'another check' | `not found: ${string}` }
const LATER = 'not found: only after the first record'
const WRITES = 'not found: only a write shows it'
const same = (times: number): Row => ({ times, doctor: 'same function' })
const other = (times: number): Row => ({ times, doctor: 'another check' })
const refusals: Readonly<Record<string, Row>> = {
  // The live generation, or the position of keys, is gone between two requests.
  'projector/start.ts index_missing': { times: 3, doctor: 'not found: it lasts for a moment' },
  'projector/start.ts access_refused': other(1),
  'core/store/generations/check-index.ts index_missing': same(1),
  'core/store/generations/check-index.ts index_unsuitable': same(3),
  'core/store/generations/prepare.ts index_unsuitable': same(1),
  // One of them while a first start writes.
  'core/store/generations/prepare.ts index_missing': same(6),
  'core/store/generations/prepare.ts rules_changed': same(1),
  // A cluster that may hold no more shards.
  'core/store/generations/prepare.ts write_refused': { times: 1, doctor: WRITES },
  'core/store/generations/indices.ts index_missing': same(2),
  'core/store/generations/indices.ts index_replaced': same(1),
  // A swap that cannot be finished does not stop a projector: `/readyz` says so.
  'core/store/generations/generations.ts index_missing': { times: 5, doctor: WRITES },
  'core/log/kafka/source.ts topic_missing': same(1),
  'core/log/kafka/source.ts topic_unsuitable': same(2),
  // The doctor asks for the identity, and reads no record: the last known one may be another one.
  'core/log/kafka/source.ts source_changed': same(2),
  'core/log/kafka/source.ts records_deleted': same(2),
  'core/log/kafka/access-refusal.ts access_refused': other(1),
  'core/store/elasticsearch/client.ts access_refused': other(1),
  'core/store/elasticsearch/client.ts index_missing': { times: 1, doctor: LATER },
  'core/store/elasticsearch/client.ts write_refused': same(2),
  'core/log/retry.ts access_refused': other(1),
  'core/log/follow/group.ts group_shared': same(1),
  // A hole in the log, another record than the one whose documents are written, and a log that ends before it.
  'core/projection/stream/assign.ts source_changed': { times: 1, doctor: 'not found: the record itself must be read' },
  'core/projection/stream/open-partition.ts records_deleted': { times: 1, doctor: 'not found: a start compares it' },
  'core/projection/stream/assign.ts records_deleted': { times: 1, doctor: 'not found: the record itself must be read' },
  'core/log/follow/consume.ts consumer_stopped': { times: 1, doctor: LATER },
  'core/projection/stream/monitor-source.ts stuck': { times: 2, doctor: LATER },
  // One is a missing position, the other one a write.
  'core/store/positions/publish.ts index_missing': same(2),
  // One of them only after the first record.
  'core/store/positions/publish.ts position_went_back': same(2),
  'core/store/positions/publish.ts source_changed': { times: 1, doctor: LATER },
  'core/store/positions/publish-times.ts index_missing': { times: 1, doctor: LATER },
  'core/projection/flow/follow.ts index_missing': { times: 2, doctor: LATER },
  // The running projector has the port.
  'projector/admin/admin.ts port_unavailable': { times: 1, doctor: 'not found: a running projector has the port' },
}

/** The files that run before the first record: all that refuse, of these rooms. */
const root = join(import.meta.dirname, '../../..')
const startRooms = ['projector', 'core/projection', 'core/projection/stream', 'core/store/generations', 'core/log']
  .concat(['core/log/kafka', 'core/log/follow', 'core/store/elasticsearch', 'core/store/positions', 'core/store'])
  .concat(['core/runtime'])
const startFiles = startRooms
  .flatMap(room => readdirSync(join(root, room)).map(name => join(room, name)))
  .filter(file => file.endsWith('.ts') && !file.endsWith('primary-reads.ts'))
  .concat('core/projection/flow/follow.ts', 'projector/admin/admin.ts')

test('the table has every refusal in the files that a start goes through', () => {
  const found: Record<string, number> = {}
  for (const file of startFiles) {
    for (const [, code] of readFileSync(join(root, file), 'utf8').matchAll(/new StopError\(\s*'(\w+)'/g)) {
      found[`${file} ${code}`] = (found[`${file} ${code}`] ?? 0) + 1
    }
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(refusals).map(([key, { times }]) => [key, times])))
})
