/** Removes what a demo made on services that it did not start. */
import type { Client } from '@elastic/elasticsearch'
import kafkajs, { type Kafka } from 'kafkajs'
import { templateNameOf } from '../../schemas/stored/documents.ts'
import type { DemoNames } from './installation.ts'

/** Deletes the topics and consumer groups of a demo. */
export const removeTopics = async ({ topics, group }: DemoNames, kafka: Kafka): Promise<void> => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const wanted = new Set(Object.values(topics))
    // The client retries the deletion of a missing topic for minutes.
    const there = (await admin.listTopics()).filter(topic => wanted.has(topic))
    if (there.length > 0) await admin.deleteTopics({ topics: there })
    const { groups } = await admin.listGroups()
    const ours = groups.map(({ groupId }) => groupId).filter(id => id.startsWith(`${group}-`))
    // The group of a killed process has its member for a while. Without topics the group expires.
    if (ours.length > 0) await admin.deleteGroups(ours).catch(unlessNotEmpty)
  } finally {
    await admin.disconnect()
  }
}

const unlessNotEmpty = (error: unknown): void => {
  if (!(error instanceof kafkajs.KafkaJSDeleteGroupsError)) throw error
}

/** Deletes the indices and the index template of a demo. */
export const removeIndices = async ({ prefix }: DemoNames, client: Client): Promise<void> => {
  // By name: Elasticsearch refuses deletion by pattern by default.
  const indices = Object.keys(await client.indices.get({ index: `${prefix}-*` }))
  if (indices.length > 0) await client.indices.delete({ index: indices })
  await client.indices.deleteIndexTemplate({ name: templateNameOf(prefix) }, { ignore: [404] })
}
