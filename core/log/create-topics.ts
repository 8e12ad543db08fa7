/**
 * Creates the two topics where they are missing, configured to keep every record. Leaves an existing topic unchanged.
 */

import kafkajs, { type Admin } from 'kafkajs'
import { KEYS_PARTITIONS } from '../../schemas/partition.ts'
import type { kafkaSettings, Read, topicSettings } from '../runtime/index.ts'
import type { Durability } from './durability.ts'
import { accessRefusal, withRight } from './kafka/access-refusal.ts'
import { assertOnePartition, checkTopicConfiguration, isUnknownTopic, type SourceAdmin } from './kafka/source.ts'

type TopicsAdmin = SourceAdmin & Pick<Admin, 'listTopics' | 'createTopics'>

export type TopicsContext = {
  readonly admin: TopicsAdmin
  readonly sleep: (milliseconds: number) => Promise<unknown>
  /** Called with a line for each topic. */
  readonly say: (line: string) => void
}

/**
 * Creates another topic of events with a number of partitions, configured like the first one, with its number of
 * replicas or more, unless it is there already.
 */
export const createEventsTopic = async (
  topic: string,
  numPartitions: number,
  settings: Pick<
    Read<typeof kafkaSettings & typeof topicSettings>,
    'KAFKA_MAX_MESSAGE_BYTES' | 'KAFKA_REPLICATION_FACTOR'
  >,
  { replicas, own }: Durability,
  { admin, sleep, say }: TopicsContext,
): Promise<void> => {
  const entries = [...entriesOf(settings.KAFKA_MAX_MESSAGE_BYTES), ...own]
  const wanted = settings.KAFKA_REPLICATION_FACTOR ?? (await readDefaultReplicas(admin))
  const isNew = await create({ topic, numPartitions }, Math.max(wanted ?? replicas, replicas), entries, admin)
  await waitForTopic(topic, admin, sleep)
  if (!isNew) return
  say(`${topic} created with ${numPartitions} partitions`)
  if (wanted !== undefined) return
  say(`${topic}: ${replicas} replicas, as before; the default of the brokers is unknown (KAFKA_REPLICATION_FACTOR)`)
}

const DEFAULT_REPLICAS = 'default.replication.factor'

/** Returns the number of replicas of a topic that asks for none; undefined if Kafka does not tell it. */
const readDefaultReplicas = async (admin: TopicsAdmin): Promise<number | undefined> => {
  const { brokers, controller } = await admin.describeCluster()
  const name = String(controller ?? brokers[0]?.nodeId)
  const asked = { type: kafkajs.ConfigResourceTypes.BROKER, name, configNames: [DEFAULT_REPLICAS] }
  try {
    const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [asked] })
    const found = resources[0]?.configEntries.find(({ configName }) => configName === DEFAULT_REPLICAS)
    return Number(found?.configValue) || undefined
  } catch (error) {
    if (accessRefusal(error) === undefined) throw error
    return undefined
  }
}

type WantedTopic = { readonly topic: string; readonly numPartitions: number; readonly isOfKeys: boolean }

/**
 * @throws StopError if the projector would refuse an existing topic, or Kafka refuses a right; Error if a topic is not
 * ready in time
 */
export const createMissingTopics = async (
  settings: Read<typeof kafkaSettings & typeof topicSettings>,
  { admin, sleep, say }: TopicsContext,
): Promise<void> => {
  const wanted: readonly WantedTopic[] = [
    { topic: settings.KAFKA_EVENTS_TOPIC, numPartitions: settings.KAFKA_EVENTS_PARTITIONS, isOfKeys: false },
    { topic: settings.KAFKA_API_KEYS_TOPIC, numPartitions: KEYS_PARTITIONS, isOfKeys: true },
  ]
  const { KAFKA_MAX_MESSAGE_BYTES: messageBytes, KAFKA_REPLICATION_FACTOR: replicationFactor = -1 } = settings
  const there = new Set(await admin.listTopics())
  for (const one of wanted) {
    const { topic, numPartitions } = one
    const isMissing = !there.has(topic)
    const isNew = isMissing && (await create(one, replicationFactor, entriesOf(messageBytes), admin))
    if (isMissing) await waitForTopic(topic, admin, sleep)
    say(
      isNew
        ? `${topic} created with ${numPartitions} partition${numPartitions === 1 ? '' : 's'}`
        : await describeExisting(one, messageBytes, { admin, sleep }),
    )
  }
}

/** Returns false if the topic exists: another process has created it meanwhile, or an earlier attempt of ours. */
const create = (
  { topic, numPartitions }: Pick<WantedTopic, 'topic' | 'numPartitions'>,
  replicationFactor: number,
  configEntries: ReturnType<typeof entriesOf>,
  admin: TopicsAdmin,
): Promise<boolean> => {
  const created = admin.createTopics({
    // The client's own wait fails when the broker it asks does not know the topic yet.
    waitForLeaders: false,
    topics: [{ topic, numPartitions, replicationFactor, configEntries }],
  })
  return withRight('Create', `topic ${topic}`, created)
}

/** Leaves an existing topic unchanged. @throws StopError if the projector would refuse it */
const describeExisting = async (
  { topic, numPartitions: wanted, isOfKeys }: WantedTopic,
  messageBytes: number,
  { admin, sleep }: Pick<TopicsContext, 'admin' | 'sleep'>,
): Promise<string> => {
  const read = async () => {
    const warnings = await checkTopicConfiguration(admin, topic, messageBytes)
    return { warnings, ...(await admin.fetchTopicMetadata({ topics: [topic] })) }
  }
  const { warnings, topics } = await untilKnown(
    read,
    sleep,
    `${topic} is there, but after ${WAITED_S} s not every broker knows it`,
  )
  const got = topics[0]?.partitions.length ?? 0
  if (isOfKeys) assertOnePartition(topic, got)
  if (got !== wanted) warnings.unshift(`it has ${got} partitions, not ${wanted}; that cannot be changed`)
  return [`${topic} is there already`, ...warnings].join('; ')
}

/** Waiting until a broker knows a new topic: milliseconds between two requests, their number, seconds in all. */
const POLL_MS = 100
const POLLS_MAX = 300
const WAITED_S = (POLL_MS * POLLS_MAX) / 1000

const waitForTopic = async (topic: string, admin: TopicsAdmin, sleep: TopicsContext['sleep']): Promise<void> => {
  const look = async () => {
    const { topics } = await withRight('Describe', `topic ${topic}`, admin.fetchTopicMetadata({ topics: [topic] }))
    return topics[0]?.partitions.every(({ leader }) => leader >= 0) || undefined
  }
  await untilKnown(look, sleep, `${topic} was created, but after ${WAITED_S} s not all its partitions have a leader`)
}

/** Asks until there is an answer: each broker learns of a new topic in its own time. @throws Error if none came */
const untilKnown = async <Answer>(
  ask: () => Promise<Answer | undefined>,
  sleep: TopicsContext['sleep'],
  notInTime: string,
): Promise<Answer> => {
  for (let polls = 0; polls < POLLS_MAX; polls++) {
    try {
      const answer = await ask()
      if (answer !== undefined) return answer
    } catch (error) {
      if (!isUnknownTopic(error)) throw error
    }
    await sleep(POLL_MS)
  }
  throw new Error(`${notInTime}; run again: npx commission topics`)
}

const entriesOf = (messageBytes: number) =>
  Object.entries({
    'cleanup.policy': 'delete',
    'retention.ms': '-1',
    'retention.bytes': '-1',
    'message.timestamp.type': 'LogAppendTime',
    'max.message.bytes': String(messageBytes),
  }).map(([name, value]) => ({ name, value }))
