import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createHealth } from '../../core/runtime/health.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import { prepare, type StartContext } from '../../projector/start.ts'
import type { GenerationDocument, LiveDocument } from '../../schemas/stored/documents.ts'
import { startedAdmin as admin } from './started-admin.ts'
import { StartedElasticsearch } from './started-elasticsearch.ts'

const settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'kafka:9092',
  ELASTICSEARCH_URL: 'http://elasticsearch:9200',
  ELASTICSEARCH_INDEX_PREFIX: 'test',
})
/** The first start of an installation. `live` changes the document of the live generation, as a command does. */
const start = async (kafka: Partial<typeof admin> = {}) => {
  const elasticsearch = new StartedElasticsearch()
  const log = pino({ level: 'silent' })
  const health = createHealth(log, () => 0)
  let waits = 0
  const context: StartContext = {
    kafka: undefined as unknown as StartContext['kafka'],
    kafkaWithConnectHook: () => context.kafka,
    openLog: () => Promise.reject(new Error('nothing was read before')),
    elasticsearch: { send: elasticsearch.request },
    log,
    now: () => 0,
    elapsed: () => 0,
    retryOptions: { sleep: async () => void waits++, random: () => 0 },
    signal: new AbortController().signal,
  }
  const list = await prepare(settings, { ...admin, ...kafka }, health, context)
  const live = (body: LiveDocument['body']): void => {
    elasticsearch.documents.set('test-control/live', { kind: 'live', body })
  }
  /** Adds a generation that was made from another topic. */
  const addOther = (generation: string, topic: string, partitions = 1): void => {
    const { kind, body } = elasticsearch.documents.get('test-control/generation:g1') as GenerationDocument
    const other = { ...body, generation, topic, partitions }
    elasticsearch.documents.set(`test-control/generation:${generation}`, { kind, body: other })
  }
  /** Loses an index of a generation. */
  const lose = (generation: string): void => {
    elasticsearch.indices.delete(`test-${generation}-parked`)
  }
  return { waits, health, list: (failed: Parameters<typeof list>[0] = []) => list(failed), live, addOther, lose }
}

test('a first start gives the streams of API keys and of the first generation', async () => {
  const { list } = await start()
  const { live, streams, broken } = await list()
  expect([live, broken.size]).toEqual(['g1', 0])
  expect(streams.map(({ identity, groupId }) => [identity.generation, groupId])).toEqual([
    ['api-keys', 'test-projector-api-keys'],
    ['g1', 'test-projector-g1'],
  ])
})

test('the topics are known also while the only generation of this projector cannot be opened', async () => {
  const { list, live, addOther, lose } = await start()
  addOther('g2', 'commission.events-9')
  live({ generation: 'g2', kept: ['g1', 'g2'] })
  lose('g1')
  const { streams, sources, broken } = await list([{ generation: 'g1', code: 'index_missing' }])
  expect([streams.map(({ identity }) => identity.generation), [...broken.keys()]]).toEqual([['api-keys'], ['g1']])
  expect(sources).toMatchObject([
    { stream: 'api-keys', topic: 'commission.api-keys', partitions: 1 },
    { stream: 'events', topic: 'commission.events-9', partitions: 1 },
    { stream: 'events', topic: 'commission.events', partitions: 1 },
  ])
})

test('the topic of the live generation comes before that of this projector: publishers are on it', async () => {
  const { list, live, addOther } = await start()
  const eventSources = async () =>
    (await list()).sources.flatMap(({ stream, topic, partitions }) =>
      stream === 'events' ? [[topic, partitions]] : [],
    )
  addOther('g2', 'commission.events-9', 9)
  live({ generation: 'g1', kept: ['g1', 'g2'] })
  expect(await eventSources()).toEqual([['commission.events', 1]])
  live({ generation: 'g2', kept: ['g1', 'g2'] })
  expect(await eventSources()).toEqual([
    ['commission.events-9', 9],
    ['commission.events', 1],
  ])
})

test('a swap that cannot be finished is a reason not to be ready, until there is no swap to finish', async () => {
  const { health, list, live } = await start()
  live({ generation: 'g1', previous: 'g0', floor: null })
  await list()
  expect(health.reasons()).toEqual({ swap: expect.stringContaining('cannot be finished') })
  // Another process has finished it, or an operator has swapped again.
  live({ generation: 'g1', previous: 'g0', floor: [0] })
  await list()
  expect(health.reasons()).toEqual({})
})

test('a projector skips generations of another topic, and ends if there is no generation of its topic', async () => {
  const { list, live, addOther } = await start()
  addOther('g2', 'commission.events-9')
  live({ generation: 'g2', kept: ['g1', 'g2'] })
  const { streams, broken } = await list()
  expect([streams.map(({ identity }) => identity.generation), broken.size]).toEqual([['api-keys', 'g1'], 0])
  live({ generation: 'g2', kept: ['g2'] })
  await expect(list()).rejects.toMatchObject({
    code: 'source_changed',
    message: expect.stringContaining('topic: expected commission.events-9, got commission.events'),
  })
})

/** The published types lack the arguments of some constructors. */
const make = (type: new (...given: never[]) => Error, ...given: readonly unknown[]): Error =>
  Reflect.construct(type, given)

test('an authentication that fails after the first connection is a lost connection: the start goes on', async () => {
  const refused = make(kafkajs.KafkaJSSASLAuthenticationError, 'secret')
  let asked = 0
  const fetchTopicMetadata: typeof admin.fetchTopicMetadata = async options => {
    if (++asked === 1) throw make(kafkajs.KafkaJSNonRetriableError, refused, { cause: refused })
    return admin.fetchTopicMetadata(options)
  }
  const { waits, list } = await start({ fetchTopicMetadata })
  expect([waits, (await list()).live]).toEqual([1, 'g1'])
})

test('a start whose authentication fails ends, also if the client wraps that error: the credentials are wrong', async () => {
  const refused = make(kafkajs.KafkaJSSASLAuthenticationError, 'secret')
  const retried = make(kafkajs.KafkaJSNumberOfRetriesExceeded, refused, { retryCount: 5, retryTime: 1 })
  for (const error of [refused, retried]) {
    await expect(start({ connect: () => Promise.reject(error) })).rejects.toMatchObject({
      code: 'access_refused',
      message: expect.stringMatching(/: Kafka: KafkaJSSASLAuthenticationError$/),
    })
  }
})
