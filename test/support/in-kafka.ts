/** Reads Kafka without the projector. */
import { randomBytes } from 'node:crypto'
import type { KafkaMessage } from 'kafkajs'
import type { Topics } from './topics.ts'

export const readFromKafka = async (
  { kafka, events }: Pick<Topics, 'kafka' | 'events'>,
  partition: number,
  offset: number,
): Promise<KafkaMessage> => {
  const consumer = kafka.consumer({ groupId: `reader-${randomBytes(6).toString('hex')}`, maxWaitTimeInMs: 100 })
  const found = Promise.withResolvers<KafkaMessage>()
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [events], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ partition: of, message }) => {
        if (of === partition && Number(message.offset) === offset) found.resolve(message)
      },
    })
    return await found.promise
  } finally {
    await consumer.disconnect()
  }
}

/** Returns the timestamps of the records of the events topic: by partition and in order. */
export const timesInKafka = async ({ kafka, events, admin }: Topics): Promise<ReadonlyMap<number, number[]>> => {
  const wanted = (await admin.fetchTopicOffsets(events)).reduce((sum, { high }) => sum + Number(high), 0)
  const consumer = kafka.consumer({ groupId: `reader-${randomBytes(6).toString('hex')}`, maxWaitTimeInMs: 100 })
  const times = new Map<number, number[]>()
  const all = Promise.withResolvers<void>()
  let read = 0
  await consumer.connect()
  try {
    await consumer.subscribe({ topics: [events], fromBeginning: true })
    await consumer.run({
      eachMessage: async ({ partition, message }) => {
        times.set(partition, [...(times.get(partition) ?? []), Number(message.timestamp)])
        if (++read === wanted) all.resolve()
      },
    })
    await all.promise
    return times
  } finally {
    await consumer.disconnect()
  }
}

export const countInKafka = async ({ admin, events, apiKeys }: Topics): Promise<number> => {
  const offsets = await Promise.all([events, apiKeys].map(topic => admin.fetchTopicOffsets(topic)))
  return offsets.flat().reduce((sum, { high }) => sum + Number(high), 0)
}
