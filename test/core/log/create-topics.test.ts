import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { createMissingTopics, type TopicsContext } from '../../../core/log/create-topics.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { kafkaSettings, readSettings, topicSettings } from '../../../core/runtime/settings.ts'

const settings = readSettings({ ...kafkaSettings, ...topicSettings }, { KAFKA_BROKERS: 'kafka:9092' })
const EVENTS = 'commission.events'
const KEYS = 'commission.api-keys'
/** As a broker answers that has not learned of the topic yet. */
const unknownTopic = {
  ...{ type: 'UNKNOWN_TOPIC_OR_PARTITION', code: 3, retriable: true },
  ...{ name: 'KafkaJSProtocolError', message: 'This server does not host this topic-partition' },
}

type Entries = readonly { readonly name: string; readonly value: string }[]
type Topic = { readonly partitions: number; readonly entries: Entries }
type Created = {
  readonly topics: readonly [
    { readonly topic: string; readonly numPartitions: number; readonly configEntries: Entries },
  ]
}

/** A cluster with these topics. `meanwhile` runs when a topic is created, before it exists. A leader of -1: none. */
const setUp = (topics: Record<string, Topic>, meanwhile = (): void => undefined, leader = 1) => {
  const said: string[] = []
  const admin = {
    listTopics: async () => Object.keys(topics),
    createTopics: async ({ topics: [{ topic, numPartitions, configEntries }] }: Created) => {
      meanwhile()
      // As the client: false if the topic exists.
      if (topics[topic] !== undefined) return false
      topics[topic] = { partitions: numPartitions, entries: configEntries }
      return true
    },
    fetchTopicMetadata: async ({ topics: [name = ''] }: { readonly topics: readonly string[] }) => ({
      topics: [{ partitions: Array.from({ length: topics[name]?.partitions ?? 0 }, () => ({ leader })) }],
    }),
    describeConfigs: async ({
      resources: [{ name }],
    }: {
      readonly resources: readonly [{ readonly name: string }]
    }) => ({
      resources: [
        { configEntries: topics[name]?.entries.map(one => ({ configName: one.name, configValue: one.value })) },
      ],
    }),
  }
  const context = { admin, sleep: async () => undefined, say: (line: string) => said.push(line) }
  return { topics, said, context, run: () => createMissingTopics(settings, context as unknown as TopicsContext) }
}

test('missing topics are created, configured to keep every record; the next run finds them and changes nothing', async () => {
  const { topics, said, run } = setUp({})
  await run()
  expect(said).toEqual([`${EVENTS} created with 6 partitions`, `${KEYS} created with 1 partition`])
  const created = structuredClone(topics)
  await run()
  expect(said.slice(2)).toEqual([`${EVENTS} is there already`, `${KEYS} is there already`])
  expect(topics).toEqual(created)
})

test('a topic that another process creates at the same moment is not reported as created, but checked', async () => {
  const other: Record<string, Topic> = {}
  const entries = [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: '-1' },
    { name: 'retention.bytes', value: '-1' },
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
    { name: 'max.message.bytes', value: '10000000' },
  ]
  const { said, run } = setUp(other, () => {
    other[EVENTS] ??= { partitions: 12, entries }
  })
  await run()
  expect(said[0]).toBe(`${EVENTS} is there already; it has 12 partitions, not 6; that cannot be changed`)

  const compacted: Record<string, Topic> = {}
  const { run: runAgain } = setUp(compacted, () => {
    compacted[EVENTS] ??= { partitions: 6, entries: [{ name: 'cleanup.policy', value: 'compact' }] }
  })
  await expect(runAgain()).rejects.toMatchObject({ code: 'topic_unsuitable' })
})

test('a topic that the asked broker does not know yet is asked for again, in a later run too', async () => {
  const { context, said, run } = setUp({})
  await run()
  const { describeConfigs } = context.admin
  let refusals = 3
  context.admin.describeConfigs = async asked => {
    if (refusals-- > 0) throw new kafkajs.KafkaJSProtocolError(unknownTopic)
    return describeConfigs(asked)
  }
  await run()
  expect(said.slice(2)).toEqual([`${EVENTS} is there already`, `${KEYS} is there already`])
  refusals = Number.POSITIVE_INFINITY
  await expect(run()).rejects.toThrow(`${EVENTS} is there, but after 30 s not every broker knows it; run again`)
})

test('a created topic without leaders is not called missing: it is not ready yet', async () => {
  const { said, topics, run } = setUp({}, undefined, -1)
  const error = await run().catch((thrown: unknown) => thrown)
  expect(error).not.toBeInstanceOf(StopError)
  expect(error).toHaveProperty(
    'message',
    `${EVENTS} was created, but after 30 s not all its partitions have a leader; run again: npx commission topics`,
  )
  expect(Object.keys(topics)).toEqual([EVENTS])
  expect(said).toEqual([])
})
