/** Clients of Kafka that a command needs for a while: they end with it. */
import type { Admin, Kafka, Producer } from 'kafkajs'

export const connectAdmin = async (kafka: Kafka, stack: AsyncDisposableStack): Promise<Admin> => {
  const admin = kafka.admin()
  stack.defer(() => admin.disconnect())
  await admin.connect()
  return admin
}

export const connectProducer = async (kafka: Kafka, stack: AsyncDisposableStack): Promise<Producer> => {
  // Idempotent: a record that is sent twice because an answer was lost is stored once.
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false })
  stack.defer(() => producer.disconnect())
  await producer.connect()
  return producer
}
