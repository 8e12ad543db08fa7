/**
 * Recognizes that Kafka refuses a right: no retry mends that. Refused credentials are not recognized: the client gives
 * them the same error as a connection that is lost during the authentication. Kafka says only which kind of resource it
 * refuses: the caller of a request knows the operation and the name, as `schemas/access.ts` lists them.
 */
import kafkajs from 'kafkajs'
import { type KafkaOperation, kafkaRefusals } from '../../../schemas/access.ts'
import { StopError } from '../../runtime/index.ts'

/** Returns the refusal in the words of the protocol; undefined for any other error. */
export const accessRefusal = (error: unknown): string | undefined => causesOf(error).map(refusalIn).find(Boolean)

const refusalIn = (error: unknown): string | undefined => {
  if (error instanceof kafkajs.KafkaJSProtocolError && kafkaRefusals.has(error.type)) return error.type
  if (error instanceof kafkajs.KafkaJSAggregateError) return error.errors.map(accessRefusal).find(Boolean)
  if (error instanceof kafkajs.KafkaJSDeleteGroupsError)
    return error.groups.map(({ error }) => accessRefusal(error)).find(Boolean)
  return undefined
}

/** Returns the class of a failed authentication; undefined for any other error. */
export const failedAuthentication = (error: unknown): string | undefined =>
  causesOf(error).find(cause => cause instanceof kafkajs.KafkaJSSASLAuthenticationError)?.name

/** Returns the error and its causes, outermost first: the client wraps what it has retried, and some other errors. */
export const causesOf = (error: unknown): readonly unknown[] => {
  const causes: unknown[] = []
  for (let cause = error; cause !== undefined && causes.length < CAUSES_READ; ) {
    causes.push(cause)
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return causes
}

/** The client makes three at most. An error may be its own cause. */
const CAUSES_READ = 8

/** The resource of a right: its kind as in Kafka, and its name. */
type Resource = `${'topic' | 'group' | 'transactional id'} ${string}`

/** Awaits an answer of Kafka. @throws StopError `access_refused` that names the right, if Kafka refuses it */
export const withRight = <Answer>(
  operation: KafkaOperation,
  resource: Resource,
  answer: Promise<Answer>,
): Promise<Answer> =>
  answer.catch((error: unknown) => {
    const refusal = accessRefusal(error)
    throw refusal === undefined ? error : refusedRight(operation, resource, refusal)
  })

/** Returns the refusal of a consumer, which reads with its group; undefined for any other error. */
export const readRefusal = (error: unknown, topic: string, groupId: string): StopError | undefined => {
  const refusal = accessRefusal(error)
  if (refusal === undefined) return undefined
  return refusedRight('Read', refusal.startsWith('GROUP') ? `group ${groupId}` : `topic ${topic}`, refusal)
}

const refusedRight = (operation: KafkaOperation, resource: Resource, refusal: string): StopError =>
  new StopError('access_refused', `Kafka refuses ${operation} on ${resource}`, { operation, resource, refusal })
