/**
 * An archive follows one topic: nothing of another topic of the same name is archived, in any partition. Kafka is a
 * double with two partitions of events, of which the first has no record in the archive.
 */

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Admin, Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { NO_HEADERS } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import { type ArchiveSteps, archive } from '../../../tools/archive/archive.ts'
import { archivedStreams, readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { verifyArchive } from '../../../tools/archive/read-archive.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { exitCodes } from '../../../tools/failures.ts'
import { ARCHIVE_FLUSH_MS } from '../../../tools/limits.ts'
import { fetchedOf } from '../../support/record-batches.ts'
import type { Scope } from '../../support/scope.ts'

type Log = { id: string | undefined; readonly partitions: string[][] }
const logOf = (id: string | undefined, first: string[], second: string[]): Log => ({ id, partitions: [first, second] })
const ARCHIVED = logOf('topic1', [], ['a', 'b'])

const setUp = async (t: Scope) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  const logs: Record<string, Log> = { events: ARCHIVED, keys: { id: 'keys1', partitions: [['k']] } }
  const of = (topic: string): Log => logs[topic] ?? ARCHIVED
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeCluster: async () => ({ clusterId: 'cluster' }),
    fetchTopicMetadata: async ({ topics: [topic = ''] = [] }) => {
      const { id: topicId, partitions } = of(topic)
      return { topics: [{ partitions: partitions.map(() => (topicId === undefined ? {} : { topicId })) }] }
    },
    fetchTopicOffsets: async (topic: string) =>
      of(topic).partitions.map(({ length }, partition) => ({ partition, low: '0', high: `${length}` })),
  } as unknown as Admin
  const clusterOf = (topic: string) =>
    ({
      onLeader: async (partition: number, ask: (leader: object) => unknown) =>
        ask({
          fetch: async (asked: { topics: { partitions: { fetchOffset: string }[] }[] }) => {
            const from = Number(asked.topics[0]?.partitions[0]?.fetchOffset)
            const values = of(topic).partitions[partition] ?? []
            const entries = values.map((value, offset) => ({
              kind: 'record' as const,
              offset,
              timestamp: 0,
              key: null,
              value: Buffer.from(value),
              headers: NO_HEADERS,
            }))
            const messages = from < entries.length ? [{ offset: '0', fetched: fetchedOf(entries.slice(from)) }] : []
            return { responses: [{ partitions: [{ messages, lastStableOffset: `${values.length}` }] }] }
          },
        }),
      logEnds: async (asked: readonly number[]) => new Map(asked.map(partition => [partition, 0])),
      disconnect: async () => undefined,
    }) as unknown as LogCluster
  let milliseconds = 0
  let onSleep = (): void => undefined
  const steps: ArchiveSteps = {
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    elapsed: () => {
      milliseconds += 2 * ARCHIVE_FLUSH_MS
      return milliseconds
    },
    now: Date.now,
    sleep: async () => onSleep(),
    signal: new AbortController().signal,
    kafka: { admin: () => admin } as unknown as Kafka,
    topics: { events: 'events', 'api-keys': 'keys' },
    openCluster: async topic => clusterOf(topic),
    openTarget: async () => target,
    processes: { self: async () => ({ host: 'h', place: null, pid: 1, started: '1' }), startOf: async () => '1' },
  }
  const run = (follow = false) =>
    archive({ to: ['archive'], follow, maxRate: Number.POSITIVE_INFINITY, json: false }, steps)
  const manifest = async () => {
    const found = await readManifest(target, 'events')
    if (found === undefined) throw new Error('no manifest')
    return found
  }
  return {
    run,
    manifest,
    target,
    replaceBy: (log: Log, topic = 'events'): void => {
      logs[topic] = log
    },
    whileItSleeps: (then: () => void): void => {
      onSleep = then
    },
    /** The archive is whole, and has nothing of another topic. */
    expectUnchanged: async () => {
      await verifyArchive(target, { report: () => undefined }, new AbortController().signal)
      expect((await manifest()).partitions.map(({ end }) => end)).toEqual([0, 2])
      expect(await readdir(join(directory, 'events'))).toEqual(['1', 'manifest.json'])
    },
  }
}

test('a topic with another id is refused before anything of it is archived, also in a partition that was empty', async t => {
  const { run, manifest, replaceBy, expectUnchanged } = await setUp(t)
  expect(await run()).toBe(exitCodes.done)
  expect((await manifest()).topic_id).toBe('topic1')
  for (const made of [
    logOf('topic2', ['x'], []),
    logOf('topic2', ['x'], ['a', 'b']),
    logOf('topic2', [], ['redacted', 'b']),
  ]) {
    replaceBy(made)
    await expect(run()).rejects.toThrow('topic_id: expected topic1, got topic2')
    await expectUnchanged()
  }
})

test('without topic ids, the last record of every partition is compared before anything is archived', async t => {
  const { run, replaceBy, expectUnchanged } = await setUp(t)
  replaceBy({ ...ARCHIVED, id: undefined })
  expect(await run()).toBe(exitCodes.done)
  replaceBy(logOf(undefined, ['x'], ['c', 'd', 'e']))
  await expect(run()).rejects.toThrow('partition 1 of events has another record at offset 1')
  await expectUnchanged()
  replaceBy(logOf(undefined, ['x'], []))
  await expect(run()).rejects.toThrow('partition 1 of events ends before offset 2')
  await expectUnchanged()
})

test('a topic of the other stream that was made anew stops both', async t => {
  const { run, replaceBy, expectUnchanged } = await setUp(t)
  expect(await run()).toBe(exitCodes.done)
  replaceBy({ id: 'keys2', partitions: [['k']] }, 'keys')
  replaceBy(logOf('topic1', ['x'], ['a', 'b', 'c']))
  await expect(run()).rejects.toThrow('topic_id: expected keys1, got keys2')
  await expectUnchanged()
})

test.for([
  ['with topic ids', 'topic1', 'topic2', /topic_id: expected topic1, got topic2/],
  ['without', undefined, undefined, /partition 1 of events has another record at offset 1/],
] as const)(
  'a topic that is made anew while it is followed: nothing of it is archived, %s',
  async ([, before, after, refusal], t) => {
    const { run, replaceBy, whileItSleeps, expectUnchanged } = await setUp(t)
    replaceBy({ ...ARCHIVED, id: before })
    expect(await run()).toBe(exitCodes.done)
    let polls = 0
    whileItSleeps(() => {
      if (++polls === 3) replaceBy(logOf(after, ['x'], ['c', 'd']))
    })
    await expect(run(true)).rejects.toThrow(refusal)
    await expectUnchanged()
  },
)

test('an archive without a topic id is compared by its records, and then has the id of its topic', async t => {
  const { run, manifest, target, replaceBy } = await setUp(t)
  expect(await run()).toBe(exitCodes.done)
  for (const stream of archivedStreams) {
    const written = await readManifest(target, stream)
    if (written === undefined) throw new Error('no manifest')
    const { topic_id: _, beside: __, ...old } = written
    await writeManifest(target, old)
  }
  replaceBy(logOf('topic7', [], ['a', 'other']))
  await expect(run()).rejects.toThrow('another record at offset 1')
  expect(await manifest()).not.toHaveProperty('topic_id')
  replaceBy(logOf('topic7', ['x'], ['a', 'b']))
  expect(await run()).toBe(exitCodes.done)
  expect((await manifest()).topic_id).toBe('topic7')
  replaceBy(logOf('topic8', ['x'], ['a', 'b']))
  await expect(run()).rejects.toThrow('topic_id: expected topic7, got topic8')
})

test('an archive keeps its topic id beside brokers that have none', async t => {
  const { run, manifest, replaceBy } = await setUp(t)
  expect(await run()).toBe(exitCodes.done)
  replaceBy(logOf(undefined, ['x'], ['a', 'b']))
  expect(await run()).toBe(exitCodes.done)
  expect(await manifest()).toMatchObject({ topic_id: 'topic1', partitions: [{ end: 1 }, { end: 2 }] })
})

test('events are not archived beside the keys of another archive: nobody could restore both', async t => {
  const { run, target, replaceBy } = await setUp(t)
  expect(await run()).toBe(exitCodes.done)
  await rm(join(target.name, 'events'), { recursive: true })
  replaceBy(logOf('topic2', ['x'], []))
  await expect(run()).rejects.toThrow('not of one installation: id of the topic beside it: api-keys has topic1')
  expect(await readdir(join(target.name, 'events'))).toEqual(['manifest.json'])
})
