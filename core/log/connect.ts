/** Short-lived Kafka clients of a command. The stack disconnects them when the command ends. */
import type { Admin, Kafka, Producer } from 'kafkajs'

export const connectAdmin = async (kafka: Kafka, stack: AsyncDisposableStack): Promise<Admin> => {
  const admin = kafka.admin()
  stack.defer(() => admin.disconnect())
  await admin.connect()
  return admin
}

export const connectProducer = async (kafka: Kafka, stack: AsyncDisposableStack): Promise<Producer> => {
  // Idempotent: when an answer is lost and the client sends a record again, Kafka stores it once.
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false })
  stack.defer(() => producer.disconnect())
  await producer.connect()
  return producer
}
