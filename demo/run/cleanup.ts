/** Removes what a demo made on services that are not its own. */
import type { Client } from '@elastic/elasticsearch'
import kafkajs, { type Kafka } from 'kafkajs'
import { templateNameOf } from '../../schemas/stored/documents.ts'
import type { Names } from './installation.ts'

export const removeTopics = async ({ topics, group }: Names, kafka: Kafka): Promise<void> => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const wanted = new Set(Object.values(topics))
    // Asked first: for a topic that is missing the client tries again for minutes.
    const there = (await admin.listTopics()).filter(topic => wanted.has(topic))
    if (there.length > 0) await admin.deleteTopics({ topics: there })
    const { groups } = await admin.listGroups()
    const ours = groups.map(({ groupId }) => groupId).filter(id => id.startsWith(`${group}-`))
    // A group still has its member for a while when that was killed. Without topics it expires by itself.
    if (ours.length > 0) await admin.deleteGroups(ours).catch(unlessNotEmpty)
  } finally {
    await admin.disconnect()
  }
}

const unlessNotEmpty = (error: unknown): void => {
  if (!(error instanceof kafkajs.KafkaJSDeleteGroupsError)) throw error
}

export const removeIndices = async ({ prefix }: Names, client: Client): Promise<void> => {
  // By their names: deleting by a pattern is refused by default.
  const indices = Object.keys(await client.indices.get({ index: `${prefix}-*` }))
  if (indices.length > 0) await client.indices.delete({ index: indices })
  await client.indices.deleteIndexTemplate({ name: templateNameOf(prefix) }, { ignore: [404] })
}
