/** The new topic keeps the records as safely as the one before. */
import kafkajs, { type Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import { kafkaSettings, readSettings, topicSettings } from '../../../core/runtime/settings.ts'
import { prepareTopic } from '../../../tools/grow/prepare-topic.ts'

const FROM = 'commission.events'
const TO = 'commission.events-9'
const source = { topic: FROM, cluster_id: 'cluster-1', partitions: 6 }

type Topic = { readonly copies: readonly number[]; readonly own: Readonly<Record<string, string>> }
type Asked = { readonly resources: readonly [{ readonly type: number; readonly name: string }] }
type Created = {
  readonly topics: readonly [
    {
      readonly topic: string
      readonly numPartitions: number
      readonly replicationFactor: number
      readonly configEntries: readonly { readonly name: string; readonly value: string }[]
    },
  ]
}

const defaults = { 'min.insync.replicas': '1', 'unclean.leader.election.enable': 'false' }
const keepsAll = {
  'cleanup.policy': 'delete',
  ...{ 'retention.ms': '-1', 'retention.bytes': '-1', 'max.message.bytes': '10000000' },
  'message.timestamp.type': 'LogAppendTime',
}
const topicOf = (copies: readonly number[], own: Readonly<Record<string, string>> = {}): Topic => ({
  copies,
  own: { ...keepsAll, ...own },
})

const refused = new kafkajs.KafkaJSProtocolError({
  ...new Error('refused'),
  ...{ type: 'CLUSTER_AUTHORIZATION_FAILED', code: 31, retriable: false },
})

/**
 * Prepares the topic on a cluster with these topics.
 * @param ofBrokers their default number of replicas; null: the user may not read it
 */
const setUp = (from: Topic, to?: Topic, ofBrokers: number | null = 1) => {
  const topics: Record<string, Topic> = { [FROM]: from, ...(to && { [TO]: to }) }
  const created: Created['topics'][number][] = []
  const said: string[] = []
  const admin = {
    describeCluster: async () => ({ clusterId: 'cluster-1', controller: 1, brokers: [{ nodeId: 1 }] }),
    createTopics: async ({ topics: [asked] }: Created) => {
      if (topics[asked.topic] !== undefined) return false
      created.push(asked)
      const own = Object.fromEntries(asked.configEntries.map(({ name, value }) => [name, value]))
      topics[asked.topic] = { copies: Array(asked.numPartitions).fill(asked.replicationFactor), own }
      return true
    },
    fetchTopicMetadata: async ({ topics: [name = ''] }: { readonly topics: readonly string[] }) => {
      const partitions = topics[name]?.copies.map(copies => ({ leader: 1, replicas: Array(copies).fill(1) }))
      return { topics: [{ partitions }] }
    },
    describeConfigs: async ({ resources: [{ type, name }] }: Asked) => {
      if (type === kafkajs.ConfigResourceTypes.BROKER) {
        if (ofBrokers === null) throw refused
        const configEntries = [{ configName: 'default.replication.factor', configValue: String(ofBrokers) }]
        return { resources: [{ configEntries }] }
      }
      const own = topics[name]?.own ?? {}
      const configEntries = Object.entries({ ...defaults, ...own }).map(([configName, configValue]) => {
        const { TOPIC_CONFIG, DEFAULT_CONFIG } = kafkajs.ConfigSource
        return { configName, configValue, configSource: configName in own ? TOPIC_CONFIG : DEFAULT_CONFIG }
      })
      return { resources: [{ configEntries }] }
    },
  }
  const run = (environment: Readonly<Record<string, string>> = {}) => {
    const given = { KAFKA_BROKERS: 'kafka:9092', ...environment }
    return prepareTopic({ to: TO, partitions: 9 }, source, admin as unknown as Admin, {
      topics: { events: FROM, 'api-keys': 'commission.api-keys' },
      topicSettings: readSettings({ ...kafkaSettings, ...topicSettings }, given),
      say: line => void said.push(line),
      sleep: async () => undefined,
    })
  }
  return { created, said, run }
}
const six = (copies: number): number[] => Array(6).fill(copies)
const nine = (copies: number): number[] => Array(9).fill(copies)

test('a new topic has as many replicas as the one before, and its own settings of durability', async () => {
  const { created, run } = setUp(topicOf([3, 4, 3, 3, 3, 3], { 'min.insync.replicas': '2' }))
  await run()
  expect(created).toMatchObject([{ replicationFactor: 3 }])
  expect(created[0]?.configEntries).toContainEqual({ name: 'min.insync.replicas', value: '2' })
  expect(created[0]?.configEntries.map(({ name }) => name)).not.toContain('unclean.leader.election.enable')
})

test('KAFKA_REPLICATION_FACTOR gives a new topic more replicas, but never fewer', async () => {
  const more = setUp(topicOf(six(2)))
  await more.run({ KAFKA_REPLICATION_FACTOR: '3' })
  expect(more.created).toMatchObject([{ replicationFactor: 3 }])
  const fewer = setUp(topicOf(six(2)))
  await fewer.run({ KAFKA_REPLICATION_FACTOR: '1' })
  expect(fewer.created).toMatchObject([{ replicationFactor: 2 }])
})

test('without KAFKA_REPLICATION_FACTOR a new topic has the replicas of the brokers, if those are more', async () => {
  const { created, said, run } = setUp(topicOf(six(1)), undefined, 3)
  await run()
  expect(created).toMatchObject([{ replicationFactor: 3 }])
  expect(said).toEqual([`${TO} created with 9 partitions`])
})

test('a new topic has as many replicas as the one before, and says so, if the default of brokers is unknown', async () => {
  const { created, said, run } = setUp(topicOf(six(2)), undefined, null)
  await run()
  expect(created).toMatchObject([{ replicationFactor: 2 }])
  const why = 'the default of the brokers is unknown (KAFKA_REPLICATION_FACTOR)'
  expect(said).toEqual([`${TO} created with 9 partitions`, `${TO}: 2 replicas, as before; ${why}`])
})

test.each([
  ['one partition with a single replica', topicOf([...nine(3).slice(1), 1]), 'replicas: expected 3, got 1'],
  ['a lower min.insync.replicas', topicOf(nine(3), { 'min.insync.replicas': '1' }), 'expected 2 or more, got 1'],
  [
    'unclean elections',
    topicOf(nine(3), { 'min.insync.replicas': '2', 'unclean.leader.election.enable': 'true' }),
    'unclean.leader.election.enable: expected false, got true',
  ],
])('a topic that is there with %s is refused, and the setting is named', async (_, to, why) => {
  const { run } = setUp(topicOf(six(3), { 'min.insync.replicas': '2' }), to)
  await expect(run()).rejects.toThrow(`${TO} would keep the records less safely than ${FROM}: `)
  await expect(run()).rejects.toThrow(why)
})

test('a topic that is there and as safe is taken', async () => {
  const { created, run } = setUp(topicOf(six(2)), topicOf(nine(3), { 'min.insync.replicas': '2' }))
  expect(await run()).toMatchObject({ topic: TO, partitions: 9 })
  expect(created).toEqual([])
})
