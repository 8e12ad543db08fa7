/** `npm run topics`: creates the topics where they are missing, so that they keep every record. */
import { readFileSync } from 'node:fs'
import kafkajs from 'kafkajs'
import { TOPIC_MESSAGE_BYTES_MAX } from '../schemas/limits.ts'
import { kafkaSettings, readSettings, SettingsError, topicSettings } from '../schemas/settings.ts'
import { kafkaConfig } from './config.ts'
import { nameOf } from './failures.ts'

const main = async (): Promise<void> => {
  const settings = readSettings({ ...kafkaSettings, ...topicSettings }, process.env)
  const admin = new kafkajs.Kafka(kafkaConfig(settings, 'commission-topics', readFileSync)).admin()
  await admin.connect()
  try {
    const wanted = [
      { topic: settings.KAFKA_EVENTS_TOPIC, numPartitions: settings.KAFKA_EVENTS_PARTITIONS },
      // Keys are few, and a secret used twice must be seen in order, whichever organization uses it.
      { topic: settings.KAFKA_API_KEYS_TOPIC, numPartitions: 1 },
    ]
    const there = new Set(await admin.listTopics())
    for (const { topic, numPartitions } of wanted) {
      if (there.has(topic)) {
        process.stdout.write(`${topic} is there already\n`)
        continue
      }
      await admin.createTopics({
        waitForLeaders: true,
        topics: [{ topic, numPartitions, replicationFactor: settings.KAFKA_REPLICATION_FACTOR ?? -1, configEntries }],
      })
      process.stdout.write(`${topic} created with ${numPartitions} partition${numPartitions === 1 ? '' : 's'}\n`)
    }
  } finally {
    await admin.disconnect()
  }
}

const configEntries = Object.entries({
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}).map(([name, value]) => ({ name, value }))

try {
  await main()
} catch (error) {
  process.stderr.write(`${error instanceof SettingsError ? error.message : `Kafka: ${nameOf(error)}`}\n`)
  process.exitCode = 1
}
