import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { readRefusal, withRight } from '../../../../core/log/kafka/access-refusal.ts'
import { asUnanswered } from '../../../../core/log/kafka-retry.ts'
import { StopError } from '../../../../core/runtime/failures.ts'

const protocolError = (type: string, code: number): Error =>
  new kafkajs.KafkaJSProtocolError({ type, code, retriable: false, message: 'not for a log' } as never)

/** The published types lack the arguments of some constructors. */
const make = (type: new (...given: never[]) => Error, ...given: readonly unknown[]): Error =>
  Reflect.construct(type, given)

const thrown = (error: unknown): unknown => {
  try {
    return asUnanswered(error)
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

describe('the caller of a request names the right', () => {
  const refused = protocolError('TOPIC_AUTHORIZATION_FAILED', 29)
  const right = { operation: 'Create', resource: 'topic events', refusal: 'TOPIC_AUTHORIZATION_FAILED' }

  test.each([
    ['as it is', refused],
    ['wrapped', make(kafkajs.KafkaJSNonRetriableError, refused, { cause: refused })],
    ['among others', make(kafkajs.KafkaJSAggregateError, 'Topic creation errors', [refused])],
  ])('of a refusal %s', async (_, error) => {
    await expect(withRight('Create', 'topic events', Promise.reject(error))).rejects.toMatchObject({
      code: 'access_refused',
      message: 'Kafka or Elasticsearch refuses the credentials or a right: Kafka refuses Create on topic events',
      where: right,
    })
  })

  test('and leaves other errors and answers as they are', async () => {
    const error = new kafkajs.KafkaJSConnectionError('gone')
    await expect(withRight('Create', 'topic events', Promise.reject(error))).rejects.toBe(error)
    expect(await withRight('Create', 'topic events', Promise.resolve(1))).toBe(1)
  })

  test.each([
    ['TOPIC_AUTHORIZATION_FAILED', 29, 'Read on topic events'],
    ['GROUP_AUTHORIZATION_FAILED', 30, 'Read on group ours'],
  ])('a consumer that gets %s names its right', (type, code, what) => {
    expect(readRefusal(protocolError(type, code as number), 'events', 'ours')?.message).toContain(what as string)
    expect(readRefusal(new kafkajs.KafkaJSConnectionError('gone'), 'events', 'ours')).toBeUndefined()
  })
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
  expect(thrown(error)).toMatchObject({ name: 'Unanswered', status: 0 })
})

test('an error of ours stays as it is', () => {
  const error = new StopError('topic_missing', 'events')
  expect(thrown(error)).toBe(error)
})
