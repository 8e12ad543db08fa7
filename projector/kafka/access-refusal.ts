/** Recognizes that Kafka refuses the credentials or a right: no retry mends that. */
import kafkajs from 'kafkajs'

/** Returns the refusal in the words of the client or of the protocol; undefined for any other error. */
export const accessRefusal = (error: unknown): string | undefined => {
  if (error instanceof kafkajs.KafkaJSSASLAuthenticationError) return error.name
  if (error instanceof kafkajs.KafkaJSProtocolError && refusedRights.has(error.type)) return error.type
  // The client wraps some errors.
  return error instanceof kafkajs.KafkaJSError && error.cause !== undefined ? accessRefusal(error.cause) : undefined
}

const refusedRights: ReadonlySet<string> = new Set([
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
])
