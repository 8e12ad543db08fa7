import { setTimeout } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { Unanswered } from '../../core/runtime/keep-trying.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import { runProjector } from '../../projector/projector.ts'
import type { StartContext } from '../../projector/start.ts'
import { sending } from '../support/answering.ts'
import { startedAdmin } from './started-admin.ts'
import { StartedElasticsearch } from './started-elasticsearch.ts'

const settings = readSettings(projectorSettings, {
  KAFKA_BROKERS: 'nowhere:9092',
  ELASTICSEARCH_URL: 'http://nowhere:9200',
  PROJECTOR_ADMIN_PORT: '0',
})

/** Neither Kafka nor Elasticsearch answers. `onLine` gets the message and the reason of each log line. */
const contextOf = (stop: AbortController, onLine: (message: string, reason?: string) => void): StartContext => {
  const admin = { connect: () => Promise.reject(new Error('away')), disconnect: async () => undefined }
  const kafka = { admin: () => admin } as unknown as StartContext['kafka']
  return {
    kafka,
    kafkaWithConnectHook: () => kafka,
    openLog: () => Promise.reject(new Error('away')),
    elasticsearch: { send: sending(() => Promise.reject(new Unanswered('elasticsearch', 0))) },
    log: pino(
      { level: 'info' },
      { write: (line: string) => void onLine(JSON.parse(line).msg, JSON.parse(line).reason) },
    ),
    now: () => 0,
    elapsed: () => 0,
    retryOptions: {
      // No time passes: a stop must not wait for a time limit.
      sleep: (_, signal) => setTimeout(2 ** 30, undefined, { signal, ref: false }),
      random: () => 0,
    },
    signal: stop.signal,
  }
}

test.each(['not ready yet', 'the admin port listens', 'does not work; trying again'])(
  'a projector that is told to stop at its line "%s" stops',
  async moment => {
    const stop = new AbortController()
    const lines: string[] = []
    const context = contextOf(stop, message => {
      lines.push(message)
      if (message === moment) stop.abort()
    })
    await runProjector(settings, context)
    expect(lines).toContain(moment)
  },
)

test('a stream whose authentication fails after the start says so, and tries again: its connection may be lost', async () => {
  const stop = new AbortController()
  const lines: string[] = []
  const context = contextOf(stop, (message, reason) => {
    if (message !== 'does not work; trying again') return
    lines.push(String(reason))
    stop.abort()
  })
  // The published types lack the arguments of the constructor.
  const lost = Reflect.construct(kafkajs.KafkaJSSASLAuthenticationError, ['closed']) as Error
  let admins = 0
  const admin = () => {
    const connect = admins++ === 0 ? startedAdmin.connect : () => Promise.reject(lost)
    return { ...startedAdmin, connect, disconnect: async () => undefined }
  }
  const kafka = { admin } as unknown as StartContext['kafka']
  const elasticsearch = { send: new StartedElasticsearch().request }
  await runProjector(settings, { ...context, kafka, elasticsearch })
  expect(lines).toEqual(['does not answer (KafkaJSSASLAuthenticationError)'])
  expect(admins).toBeGreaterThan(1)
})
