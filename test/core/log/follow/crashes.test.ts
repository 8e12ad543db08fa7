/** The words for a consumer that fails, with a client that emits the errors which kafkajs wraps. */
import kafkajs, { type Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { consume } from '../../../../core/log/follow/consume.ts'

/** The published types lack the arguments of some constructors. */
const make = (type: new (...given: never[]) => Error, ...given: readonly unknown[]): Error =>
  Reflect.construct(type, given)

const refused = make(kafkajs.KafkaJSProtocolError, { type: 'GROUP_MAX_SIZE_REACHED', code: 81, message: 'secret' })
const wrapped = make(kafkajs.KafkaJSNonRetriableError, refused, { cause: refused })
const retried = make(kafkajs.KafkaJSNumberOfRetriesExceeded, wrapped, { retryCount: 5, retryTime: 1 })
const lost = make(kafkajs.KafkaJSSASLAuthenticationError, 'secret')
const unauthenticated = make(kafkajs.KafkaJSNumberOfRetriesExceeded, lost, { retryCount: 5, retryTime: 1 })
const ofItself = make(kafkajs.KafkaJSNonRetriableError, 'secret')
ofItself.cause = ofItself

/** Returns the words for a crash of the client. */
const wordsFor = async (error: Error, restart: boolean): Promise<string> => {
  let crash = (_: unknown): void => undefined
  const consumer = {
    ...{ events: { GROUP_JOIN: 'join', CRASH: 'crash', REBALANCING: 'rebalancing' } },
    on: (event: string, listener: typeof crash): void => {
      if (event === 'crash') crash = listener
    },
    ...{ connect: async () => undefined, subscribe: async () => undefined, run: async () => undefined },
  }
  let words = 'nothing'
  const handlers = {
    ...{ onAssigned: () => undefined, onBatch: () => undefined, onUndecodable: () => undefined },
    ...{ onUnpacked: () => undefined, onRebalancing: () => undefined, sleep: async () => undefined },
    onTrouble: (name: string): void => {
      words = name
    },
    onStopped: (stop: Error): void => {
      words = stop.message
    },
  }
  const kafka = { consumer: () => consumer } as unknown as Kafka
  await consume(kafka, { topic: 't', partitions: 1 }, 'g', { prefix: 'p', elasticsearch: null }, handlers)
  crash({ payload: { error, restart } })
  return words
}

test.each([
  ['has stopped', refused, false, /: KafkaJSProtocolError, GROUP_MAX_SIZE_REACHED$/],
  ['has stopped, wrapped once', wrapped, false, /: KafkaJSNonRetriableError, GROUP_MAX_SIZE_REACHED$/],
  ['restarts, wrapped twice', retried, true, /^KafkaJSNumberOfRetriesExceeded, GROUP_MAX_SIZE_REACHED$/],
  [
    'restarts, whose authentication failed',
    unauthenticated,
    true,
    /^KafkaJSNumberOf.+, KafkaJSSASLAuthenticationError$/,
  ],
  ['has stopped with an error that is its own cause', ofItself, false, /: KafkaJSNonRetriableError$/],
])('a consumer that %s names the code of the protocol, or the first cause', async (_, error, restart, words) => {
  expect(await wordsFor(error, restart)).toMatch(words)
})
