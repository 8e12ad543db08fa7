/** Reads the topics with the test's own client: what they really hold, even if publishing was disturbed. */
import { registerCodecs } from './codecs.ts'
import type { Published, Topics } from './topics.ts'

/** Returns every record of both topics, in order within each partition. */
export const readLog = async (topics: Topics): Promise<Published[]> => {
  registerCodecs()
  const { kafka } = topics
  // A new admin client: faults may have broken the one of the topics.
  const admin = kafka.admin()
  const found: Published[] = []
  const missing = new Set<string>()
  const place = (topic: string, partition: number): string => `${topic}:${partition}`
  await admin.connect()
  for (const topic of [topics.events, topics.apiKeys]) {
    for (const { partition, high } of await admin.fetchTopicOffsets(topic)) {
      if (Number(high) > 0) missing.add(`${place(topic, partition)}:${Number(high) - 1}`)
    }
  }
  await admin.disconnect()
  const consumer = kafka.consumer({ groupId: `log-of-${topics.events}`, maxWaitTimeInMs: 100 })
  const { promise: whole, resolve } = Promise.withResolvers<void>()
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [topics.events, topics.apiKeys], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ topic, partition, message: { offset, key, headers = {}, value } }) => {
        found.push({
          stream: topic === topics.events ? 'events' : 'api-keys',
          partition,
          offset: Number(offset),
          key,
          headers: Object.entries(headers).flatMap(([name, values]) =>
            (Array.isArray(values) ? values : [values]).map(
              header => [name, Buffer.from(header ?? '')] as [string, Buffer],
            ),
          ),
          value,
        })
        missing.delete(`${place(topic, partition)}:${offset}`)
        if (missing.size === 0) resolve()
      },
    })
    if (missing.size > 0) await whole
  } finally {
    await consumer.disconnect()
  }
  return found
}
