/** A member of a consumer group that is no projector of the test's installation. */
import type { Consumer, PartitionAssigner } from 'kafkajs'
import type { Topics } from './topics.ts'

/** Joins the group and reads nothing. The caller disconnects it. */
export const joinGroup = async (topics: Topics, groupId: string, assigner?: PartitionAssigner): Promise<Consumer> => {
  const consumer = topics.kafka.consumer({ groupId, ...(assigner && { partitionAssigners: [assigner] }) })
  const joined = Promise.withResolvers<void>()
  consumer.on(consumer.events.GROUP_JOIN, () => joined.resolve())
  await consumer.connect()
  await consumer.subscribe({ topics: [topics.events] })
  await consumer.run({ autoCommit: false, eachBatch: async () => undefined })
  await joined.promise
  return consumer
}
