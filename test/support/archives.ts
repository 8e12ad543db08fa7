import { hash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Admin, ConfigResourceTypes, type Producer } from 'kafkajs'
import { expect, inject } from 'vitest'
import { openCluster } from '../../core/log/records/open-cluster.ts'
import { type LogEntry, readLog } from '../../core/log/records/read-log.ts'
import { encodeEntry } from '../../tools/archive/segment.ts'
import { registerCodecs } from './codecs.ts'
import { runCommand } from './commands.ts'
import { compileCache } from './compile-cache.ts'
import type { Random } from './random.ts'
import type { Scope } from './scope.ts'
import { createStream, organizationsIn } from './streams.ts'
import { LONG_TRANSACTION, place, type Topics, toMessage } from './topics.ts'

export const PARTITIONS = 3

export const settingsOf = (topics: Topics) => ({
  ...compileCache,
  KAFKA_BROKERS: topics.brokers,
  KAFKA_EVENTS_TOPIC: topics.events,
  KAFKA_API_KEYS_TOPIC: topics.apiKeys,
})

export const newDirectory = async (t: Scope): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'archive')
}

export const done = async (args: readonly string[], topics: Topics) => {
  const ran = await runCommand(args, settingsOf(topics))
  expect(ran.code, ran.said).toBe(0)
  return ran
}

/** Publishes events plain and in transactions that overlap, some of which are aborted. Returns the organizations. */
export const publishMixed = async (t: Scope, topics: Topics, random: Random, groups: number): Promise<string[]> => {
  const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
  const stream = createStream(random, organizations, PARTITIONS, { reps: 3, periods: 3 })
  const producers: Producer[] = []
  for (const id of ['a', 'b']) {
    const transactionalId = `${topics.events}-${id}`
    const producer = topics.kafka.producer({ ...LONG_TRANSACTION, transactionalId, maxInFlightRequests: 1 })
    await producer.connect()
    t.onTestFinished(() => producer.disconnect())
    producers.push(producer)
  }
  const messages = (count: number) =>
    stream
      .take(count)
      .filter(record => record.stream === 'events')
      .map(record => toMessage(place(record, PARTITIONS)))
  for (let group = 0; group < groups; group++) {
    await topics.publish(stream.take(20))
    const open = await Promise.all(producers.map(producer => producer.transaction()))
    for (const transaction of [...open, ...open]) {
      await transaction.send({ topic: topics.events, messages: messages(4) })
      await topics.publish(stream.take(3))
    }
    for (const transaction of open) await (random.next() < 0.5 ? transaction.abort() : transaction.commit())
  }
  await topics.publish(stream.take(20))
  return organizations
}

export const logOf = async (t: Scope, topics: Topics, topic: string, partition: number): Promise<LogEntry[]> => {
  registerCodecs()
  const config = { brokers: inject('kafkaBrokers').split(',') }
  const cluster = await openCluster({ config, logger: topics.kafka.logger() }, topic, new AbortController().signal)
  t.onTestFinished(() => cluster.disconnect())
  const reader = readLog(cluster, topic)
  const entries: LogEntry[] = []
  for (;;) {
    const part = await reader.read(partition, entries.length)
    if (part.entries.length === 0) return entries
    entries.push(...part.entries)
  }
}

/** The records that readers see, every byte of them; other offsets are holes. */
export const contentOf = ({ kind, offset, timestamp, key, value, headers }: LogEntry): string =>
  kind === 'record'
    ? `${offset} ${timestamp} ${hash('sha256', encodeEntry({ kind, offset, timestamp, key, value, headers }))}`
    : `${offset} hole`

export const compareTopics = async (
  t: Scope,
  from: Topics,
  to: Topics,
): Promise<{ records: number; holes: number }> => {
  let records = 0
  let holes = 0
  for (const [stream, partitions] of [
    ['events', from.partitions],
    ['api-keys', 1],
  ] as const) {
    for (let partition = 0; partition < partitions; partition++) {
      const before = await logOf(t, from, from.name(stream), partition)
      const after = await logOf(t, to, to.name(stream), partition)
      expect(after.map(contentOf)).toEqual(before.map(contentOf))
      records += before.filter(({ kind }) => kind === 'record').length
      holes += before.filter(({ kind }) => kind !== 'record').length
    }
  }
  return { records, holes }
}

export const timestampTypeOf = async (admin: Admin, name: string): Promise<string | undefined> => {
  const resource = { type: ConfigResourceTypes.TOPIC, name }
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
  return resources[0]?.configEntries.find(({ configName }) => configName === 'message.timestamp.type')?.configValue
}
