import kafkajs from 'kafkajs'
import { expect, test } from 'vitest'
import { asUnavailable } from '../../../projector/elasticsearch/retry.ts'
import { StopError } from '../../../projector/failures.ts'

const protocolError = (type: string, code: number): Error =>
  new kafkajs.KafkaJSProtocolError({ type, code, retriable: false, message: 'not for a log' } as never)

/** The published types lack the arguments of some constructors. */
const make = (type: new (...given: never[]) => Error, ...given: readonly unknown[]): Error =>
  Reflect.construct(type, given)

const thrown = (error: unknown): unknown => {
  try {
    return asUnavailable(error)
  } catch (failure) {
    return failure
  }
}

test.each([
  ['a topic', protocolError('TOPIC_AUTHORIZATION_FAILED', 29), 'TOPIC_AUTHORIZATION_FAILED'],
  ['the group', protocolError('GROUP_AUTHORIZATION_FAILED', 30), 'GROUP_AUTHORIZATION_FAILED'],
  ['the cluster', protocolError('CLUSTER_AUTHORIZATION_FAILED', 31), 'CLUSTER_AUTHORIZATION_FAILED'],
])('a refusal of %s stops the projector and names the right, not the message', (_, error, name) => {
  expect(thrown(error)).toMatchObject({ code: 'access_refused', message: expect.stringContaining(`Kafka: ${name}`) })
  expect(String(thrown(error))).not.toContain('not for a log')
})

test('a refusal that the client wraps is recognized', () => {
  const cause = protocolError('TOPIC_AUTHORIZATION_FAILED', 29)
  expect(thrown(make(kafkajs.KafkaJSNonRetriableError, cause, { cause }))).toMatchObject({
    code: 'access_refused',
  })
})

test.each([
  ['a lost connection', new kafkajs.KafkaJSConnectionError('gone')],
  ['a broker without a leader', protocolError('LEADER_NOT_AVAILABLE', 5)],
  ['a connection lost while authenticating', make(kafkajs.KafkaJSSASLAuthenticationError, 'Closed connection')],
  ['an unknown error', 'text'],
])('%s is retried', (_, error) => {
  expect(thrown(error)).toMatchObject({ name: 'Unavailable', status: 0 })
})

test('an error of ours stays as it is', () => {
  const error = new StopError('topic_missing', 'events')
  expect(thrown(error)).toBe(error)
})
