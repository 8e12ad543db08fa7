/** The consumer of kafkajs, whose cluster rejects with an error that kafkajs treats as fatal. */
import { createRequire } from 'node:module'
import type { Consumer } from 'kafkajs'
import { expect, test } from 'vitest'
import { markTransientErrorsRetriable } from '../../../../core/log/kafka/patch-retries.ts'

const load = createRequire(import.meta.url)
const errors = load('kafkajs/src/errors') as Readonly<Record<string, new (message: string) => Error>>
const createConsumer = load('kafkajs/src/consumer') as (options: object) => Consumer
const createRetry = load('kafkajs/src/retry') as (options: object) => (work: () => Promise<never>) => Promise<never>

const log = { info: () => undefined, error: () => undefined, debug: () => undefined, warn: () => undefined }
const logger = { ...log, namespace: () => logger }

/** Returns whether kafkajs restarts a consumer after this error, and how often it tried before. */
const crashOf = async (error: Error) => {
  let tries = 0
  const retry = { retries: 2, initialRetryTime: 1, maxRetryTime: 1 }
  const cluster = {
    connect: () =>
      createRetry(retry)(async () => {
        tries++
        throw error
      }),
    disconnect: async () => undefined,
    addMultipleTargetTopics: async () => undefined,
  }
  const consumer = createConsumer({ cluster, groupId: 'g', retry, logger })
  const crashed = Promise.withResolvers<boolean>()
  consumer.on(consumer.events.CRASH, ({ payload: { restart } }) => crashed.resolve(restart))
  await consumer.subscribe({ topics: ['t'] })
  await consumer.run({ eachBatch: async () => undefined })
  const restarts = await crashed.promise
  await consumer.disconnect()
  return { restarts, tries }
}

test.each(['KafkaJSGroupCoordinatorNotFound', 'KafkaJSTimeout', 'KafkaJSSASLAuthenticationError'])(
  'a consumer that fails with %s tries again, and restarts; with an error that no retry mends it does neither',
  async name => {
    markTransientErrorsRetriable()
    markTransientErrorsRetriable()
    const of = (type: string): Error => Reflect.construct(errors[type] ?? Error, ['away'])
    expect(await crashOf(of(name))).toEqual({ restarts: true, tries: 3 })
    expect(await crashOf(of('KafkaJSNonRetriableError'))).toEqual({ restarts: false, tries: 1 })
  },
)
