/** Kafka and an installation that has started once, for tests of the doctor: it can start again, and be examined. */
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { enterGroup } from '../../../core/log/follow/group.ts'
import { assertNotTruncated, fetchEnds, type SourceAdmin } from '../../../core/log/kafka/source.ts'
import { createLastRecordReader } from '../../../core/log/records/last-records.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import type { InspectSteps } from '../../../core/projection/inspect-start.ts'
import { assertHasWritten } from '../../../core/projection/stream/assign.ts'
import { createHealth } from '../../../core/runtime/health.ts'
import { projectorSettings, readSettings } from '../../../core/runtime/settings.ts'
import { installationOf } from '../../../core/store/installation.ts'
import {
  createPublishedTimes,
  openPublishedPosition,
  type PublishedState,
  readWritten,
} from '../../../core/store/positions/publish.ts'
import { prepare, type StartContext } from '../../../projector/start.ts'
import { createAttempt } from '../../../tools/doctor/attempts.ts'
import type { Finding } from '../../../tools/doctor/finding.ts'
import { checkStart } from '../../../tools/doctor/start.ts'
import { checkTopic } from '../../../tools/doctor/topics.ts'
import { record } from '../../projector/records.ts'
import { StartedElasticsearch } from '../../projector/started-elasticsearch.ts'
import { fetchedOf } from '../../support/record-batches.ts'

const settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'kafka:9092',
  ELASTICSEARCH_URL: 'http://elasticsearch:9200',
  ELASTICSEARCH_INDEX_PREFIX: 'test',
})
export const EVENTS = settings.KAFKA_EVENTS_TOPIC
export const KEYS = settings.KAFKA_API_KEYS_TOPIC
export const GROUP = settings.KAFKA_GROUP_ID

/** Kafka with both topics, and an installation that has started once. */
export class World {
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

  /** The last record of each partition. */
  record = record({ key: 'a', value: 'b' })
  readonly openLog = async () =>
    ({
      onLeader: async () => ({
        responses: [{ partitions: [{ lastStableOffset: this.high, messages: [{ fetched: this.#fetched() }] }] }],
      }),
      disconnect: async () => undefined,
    }) as unknown as LogCluster
  #fetched() {
    return fetchedOf([{ ...this.record, offset: 4, kind: 'record' as const }])
  }

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
      ...{ retryOptions, signal, openLog: this.openLog },
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
      const known: Pick<PublishedState, 'position' | 'last'>[] = []
      for (let partition = 0; partition < identity.partitions; partition++) {
        const of = { index: controlIndex, generation, request, replace: request, times }
        const { position, last } = (await openPublishedPosition(partition, of)).current()
        assertNotTruncated(topic, partition, position, ends)
        const { written = null } = (await readWritten(partition, position, { identity, controlIndex, request })) ?? {}
        if (written) assertHasWritten(topic, partition, written.offset, ends)
        known.push({ position, last: written ?? last })
      }
      await createLastRecordReader(identity, this.openLog, signal).verify(known)
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
      ...{ openLog: this.openLog, signal: new AbortController().signal },
      topics: { events: EVENTS, 'api-keys': KEYS },
    }
    await checkStart(attempt, () => steps)
    return findings
  }
}
const unknownTopic = (): Error =>
  Object.assign(new kafkajs.KafkaJSError('unknown'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' })

export const started = async (): Promise<World> => {
  const world = new World()
  await world.start()
  return world
}
export const control = (world: World, id: string, changes: object): void => {
  const key = `test-control/${id}`
  const { kind, body } = world.elasticsearch.documents.get(key) as { kind: string; body: object }
  world.elasticsearch.documents.set(key, { kind, body: { ...body, ...changes } })
}
export const written = (world: World, body: object): void => {
  world.elasticsearch.documents.set('test-control/written:g1:1', { kind: 'written', body })
}
export const setting = (world: World, index: string, name: string, value: string): void => {
  const found = world.elasticsearch.indices.get(index)
  if (found) found.settings.index[name] = value
}
