/** `npm run topics`: creates missing topics, configured to keep every record. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { kafkaSettings, readSettings, SettingsError, topicSettings } from '../schemas/settings.ts'
import { kafkaConfig } from './client-options.ts'
import { nameOf, StopError } from './failures.ts'
import { withRight } from './kafka/access-refusal.ts'
import { assertOnePartition, checkTopicConfiguration, isUnknownTopic } from './kafka/source.ts'
import { endAtUnhandledErrors } from './unhandled-errors.ts'

const main = async (): Promise<void> => {
  const settings = readSettings({ ...kafkaSettings, ...topicSettings }, process.env, readFileSync)
  const admin = new kafkajs.Kafka(kafkaConfig(settings, 'commission-topics', readFileSync)).admin()
  await admin.connect()
  try {
    const wanted = [
      { topic: settings.KAFKA_EVENTS_TOPIC, numPartitions: settings.KAFKA_EVENTS_PARTITIONS, isOfKeys: false },
      // One partition: keys are few, and all uses of one secret must be in order, across organizations.
      { topic: settings.KAFKA_API_KEYS_TOPIC, numPartitions: 1, isOfKeys: true },
    ]
    const there = new Set(await admin.listTopics())
    for (const { topic, numPartitions, isOfKeys } of wanted) {
      if (there.has(topic)) {
        process.stdout.write(
          `${await describeExisting({ topic, numPartitions, isOfKeys }, settings.KAFKA_MAX_MESSAGE_BYTES, admin)}\n`,
        )
        continue
      }
      const replicationFactor = settings.KAFKA_REPLICATION_FACTOR ?? -1
      const created = admin.createTopics({
        // The client's own wait fails when the broker it asks does not know the topic yet.
        waitForLeaders: false,
        topics: [
          { topic, numPartitions, replicationFactor, configEntries: entriesOf(settings.KAFKA_MAX_MESSAGE_BYTES) },
        ],
      })
      await withRight('Create', `topic ${topic}`, created)
      await waitForTopic(topic, admin)
      process.stdout.write(`${topic} created with ${numPartitions} partition${numPartitions === 1 ? '' : 's'}\n`)
    }
  } finally {
    await admin.disconnect()
  }
}

/** Leaves an existing topic unchanged. @throws StopError if the projector would refuse it */
const describeExisting = async (
  { topic, numPartitions: wanted, isOfKeys }: { topic: string; numPartitions: number; isOfKeys: boolean },
  messageBytes: number,
  admin: kafkajs.Admin,
): Promise<string> => {
  const warnings = await checkTopicConfiguration(admin, topic, messageBytes)
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const got = topics[0]?.partitions.length ?? 0
  if (isOfKeys) assertOnePartition(topic, got)
  if (got !== wanted) warnings.unshift(`it has ${got} partitions, not ${wanted}; that cannot be changed`)
  return [`${topic} is there already`, ...warnings].join('; ')
}

/** Milliseconds between two checks for a new topic, and their number. */
const POLL_MS = 100
const POLLS_MAX = 300

const waitForTopic = async (topic: string, admin: kafkajs.Admin): Promise<void> => {
  for (let attempt = 0; attempt < POLLS_MAX; attempt++) {
    try {
      const { topics } = await withRight('Describe', `topic ${topic}`, admin.fetchTopicMetadata({ topics: [topic] }))
      if (topics[0]?.partitions.every(({ leader }) => leader >= 0)) return
    } catch (error) {
      if (!isUnknownTopic(error)) throw error
    }
    await sleep(POLL_MS)
  }
  throw new StopError('topic_missing', `${topic} was created and has no leaders`)
}

const entriesOf = (messageBytes: number) =>
  Object.entries({
    'cleanup.policy': 'delete',
    'retention.ms': '-1',
    'retention.bytes': '-1',
    'message.timestamp.type': 'LogAppendTime',
    'max.message.bytes': String(messageBytes),
  }).map(([name, value]) => ({ name, value }))

endAtUnhandledErrors(process, ({ error, at }) => {
  process.stderr.write(`a defect: ${[error, ...at].join('\n  ')}\n`)
})
try {
  await main()
} catch (error) {
  const isOurs = error instanceof SettingsError || error instanceof StopError
  // The client's message is safe: it names brokers and topics only.
  const reason = error instanceof Error ? error.message : nameOf(error)
  process.stderr.write(`${isOurs ? reason : `Kafka: ${reason}`}\n`)
  process.exitCode = 1
}
