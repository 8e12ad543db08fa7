/** Removes what a demo made on services that are not its own. */
import type { Client } from '@elastic/elasticsearch'
import type { Kafka } from 'kafkajs'
import { templateNameOf } from '../schemas/documents.ts'
import type { Names } from './installation.ts'

export const removeAll = async ({ topics, prefix, group }: Names, kafka: Kafka, client: Client): Promise<void> => {
  const admin = kafka.admin()
  await admin.connect()
  try {
    const wanted = new Set(Object.values(topics))
    const there = (await admin.listTopics()).filter(topic => wanted.has(topic))
    if (there.length > 0) await admin.deleteTopics({ topics: there })
    const { groups } = await admin.listGroups()
    const ours = groups.map(({ groupId }) => groupId).filter(id => id.startsWith(`${group}-`))
    if (ours.length > 0) await admin.deleteGroups(ours)
  } finally {
    await admin.disconnect()
  }
  // By their names: a pattern is refused where nobody may delete by pattern.
  const indices = Object.keys(await client.indices.get({ index: `${prefix}-*` }))
  if (indices.length > 0) await client.indices.delete({ index: indices })
  await client.indices.deleteIndexTemplate({ name: templateNameOf(prefix) }, { ignore: [404] })
}
