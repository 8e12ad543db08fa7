/**
 * Recognizes that Kafka refuses a right: no retry mends that. Refused credentials are not recognized: the client gives
 * them the same error as a connection that is lost during the authentication.
 */
import kafkajs from 'kafkajs'

/** Returns the refusal in the words of the protocol; undefined for any other error. */
export const accessRefusal = (error: unknown): string | undefined => {
  if (error instanceof kafkajs.KafkaJSProtocolError && refusedRights.has(error.type)) return error.type
  // The client wraps some errors.
  return error instanceof kafkajs.KafkaJSError && error.cause !== undefined ? accessRefusal(error.cause) : undefined
}

const refusedRights: ReadonlySet<string> = new Set([
  'TOPIC_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
])
