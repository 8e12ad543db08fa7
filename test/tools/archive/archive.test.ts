/** Archives in several targets: one that fails takes nothing from the others. Kafka is a double with one partition. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { UNDECODABLE_BATCH_HEADER } from '../../../core/ledger/event/decode.ts'
import { encodeHeaders, NO_HEADERS } from '../../../core/log/kafka/encoded-headers.ts'
import { UNDECODABLE_LOGGED } from '../../../core/log/limits.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import { createSigningKey, textOfSigningKey } from '../../../core/runtime/index.ts'
import { type ArchiveSteps, archive } from '../../../tools/archive/archive.ts'
import { readManifests } from '../../../tools/archive/read-archive.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { exitCodes } from '../../../tools/failures.ts'
import { ARCHIVE_FLUSH_MS } from '../../../tools/limits.ts'
import { NOTE_FILE } from '../../../tools/signing/sign-manifest.ts'
import { fetchedOf } from '../../support/record-batches.ts'
import type { Scope } from '../../support/scope.ts'

const RECORDS = 3
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const adminOf = (partitions: number, end = RECORDS) =>
  ({
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeCluster: async () => ({ clusterId: 'cluster' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: Array.from({ length: partitions }, () => ({})) }] }),
    fetchTopicOffsets: async () =>
      Array.from({ length: partitions }, (_, partition) => ({ partition, low: '0', high: String(end) })),
  }) as unknown as Admin

const fetch = async ({ topics }: { topics: readonly { partitions: readonly { fetchOffset: string }[] }[] }) => {
  const from = Number(topics[0]?.partitions[0]?.fetchOffset)
  return answerOf(from, RECORDS, { timestamp: -1, value: null })
}
/** The records from an offset up to another one, of which a fetch brings some. */
const answerOf = (from: number, end: number, { timestamp, value }: Same, brought = end) => {
  const offsets = Array.from({ length: brought }, (_, offset) => offset).slice(from)
  const entries = offsets.map(offset => ({
    kind: 'record' as const,
    offset,
    timestamp,
    key: null,
    value,
    headers: NO_HEADERS,
  }))
  const messages = offsets.length > 0 ? [{ fetched: fetchedOf(entries) }] : []
  return { responses: [{ partitions: [{ messages, lastStableOffset: String(end) }] }] }
}
type Same = { readonly timestamp: number; readonly value: Buffer | null }
const writtenTo = (end: number) => async (partitions: readonly number[]) =>
  new Map(partitions.map(partition => [partition, end]))
const cluster = {
  onLeader: async (_: number, ask: (leader: { fetch: typeof fetch }) => unknown) => ask({ fetch }),
  logEnds: writtenTo(RECORDS),
  disconnect: async () => undefined,
} as unknown as LogCluster

const newFolder = async (t: Scope): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Time passes with each look at the clock, so that a segment is due at once. */
const setUp = async (t: Scope) => {
  const directory = await newFolder(t)
  const done: string[] = []
  let hasFailed = false
  let milliseconds = 0
  const [full, slow] = [directoryTarget(join(directory, 'full')), directoryTarget(join(directory, 'slow'))]
  const targets: Record<string, ArchiveTarget> = {
    full: {
      ...full,
      create: async () => {
        hasFailed = true
        throw new Error('no space left')
      },
    },
    slow: {
      ...slow,
      create: async (path, bytes) => {
        for (let turns = 0; turns < 50 || !hasFailed; turns++) await turn()
        await slow.create(path, bytes)
        done.push(`stored ${path.split('/')[0]}`)
      },
      lock: async steps => {
        const lock = await slow.lock(steps)
        const release = async (): Promise<void> => {
          done.push('released')
          await lock.release()
        }
        return { ...lock, release }
      },
    },
  }
  const steps: ArchiveSteps = {
    out: () => undefined,
    say: () => undefined,
    draw: undefined,
    elapsed: () => {
      milliseconds += 2 * ARCHIVE_FLUSH_MS
      return milliseconds
    },
    now: Date.now,
    sleep: turn,
    signal: new AbortController().signal,
    kafka: { admin: () => adminOf(1) } as unknown as Kafka,
    topics: { events: 'events', 'api-keys': 'keys' },
    openCluster: async () => cluster,
    openTarget: async name => targets[name] ?? slow,
    processes: { self: async () => ({ host: 'h', place: null, pid: 1, started: '1' }), startOf: async () => '1' },
  }
  return { steps, done, slow }
}

test.for([false, true])(
  'a target that fails ends the run after the others have written what they read; follow: %s',
  async (follow, t) => {
    const { steps, done, slow } = await setUp(t)
    const options = { to: ['full', 'slow'], follow, maxRate: Number.POSITIVE_INFINITY, json: false }
    await expect(archive(options, steps)).rejects.toThrow('no space left')
    expect(done.at(-1)).toBe('released')
    expect(done).toContain('stored events')
    expect((await readManifests(slow)).events.partitions[0]?.end).toBe(RECORDS)
  },
)

test.for([
  [1, 'its beginning'],
  [2, '1970-01-01T00:00:10'],
] as const)(
  'when Kafka is gone, the partition that is furthest behind tells the end of an archive: %s',
  async ([read, said], t) => {
    const { steps } = await setUp(t)
    // Partition 0 has records of second 100, which are all read; partition 1 has records of second 10.
    // After one record alone a second fetch follows, which fails.
    const leader = (partition: number) => ({
      fetch: async (request: Parameters<typeof fetch>[0]) => {
        const from = Number(request.topics[0]?.partitions[0]?.fetchOffset)
        if (partition === 1 && from > 0) throw new kafkajs.KafkaJSConnectionError('gone')
        const same = { timestamp: (partition === 1 ? 10 : 100) * 1_000, value: null }
        return answerOf(from, RECORDS, same, partition === 1 ? read : RECORDS)
      },
    })
    const cluster = {
      onLeader: async (partition: number, ask: (one: ReturnType<typeof leader>) => unknown) => ask(leader(partition)),
      logEnds: writtenTo(RECORDS),
      disconnect: async () => undefined,
    } as unknown as LogCluster
    const kafka = { admin: () => adminOf(2) } as unknown as Kafka
    const options = { to: ['other'], follow: true, maxRate: Number.POSITIVE_INFINITY, json: false }
    await expect(archive(options, { ...steps, kafka, openCluster: async () => cluster })).rejects.toThrow(
      `the archive in other ends at ${said}`,
    )
  },
)

test.for([
  [false, 'its beginning'],
  [true, '1970-01-01T00:00:10'],
] as const)(
  'a run that follows tells the end of an archive also if Kafka tells an end and gives no record; some were read: %s',
  async ([isRead, said], t) => {
    const { steps } = await setUp(t)
    const same = { timestamp: 10_000, value: null }
    const leader = {
      fetch: async ({ topics }: Parameters<typeof fetch>[0]) => {
        const from = Number(topics[0]?.partitions[0]?.fetchOffset)
        return answerOf(from, RECORDS, same, isRead ? RECORDS - 1 : 0)
      },
    }
    const silent = { ...cluster, onLeader: async (_: number, ask: (one: typeof leader) => unknown) => ask(leader) }
    const options = { to: ['other'], follow: true, maxRate: Number.POSITIVE_INFINITY, json: false }
    const run = archive(options, { ...steps, openCluster: async () => silent as unknown as LogCluster })
    await expect(run).rejects.toThrow(
      `gives no record. Is it tiered storage, or a quota?; the archive in other ends at ${said}`,
    )
  },
)

/** A log of one partition, whose end is another one at each read; the last one stays. */
const logThatEndsAt = (ends: readonly number[], value = 'a') => {
  let reads = 0
  const fetchAtEnd = async ({ topics }: Parameters<typeof fetch>[0]) => {
    const end = ends[Math.min(reads++, ends.length - 1)] ?? 0
    const from = Number(topics[0]?.partitions[0]?.fetchOffset)
    return answerOf(from, end, { timestamp: -1, value: Buffer.from(value) })
  }
  return {
    onLeader: async (_: number, ask: (leader: { fetch: typeof fetchAtEnd }) => unknown) => ask({ fetch: fetchAtEnd }),
    logEnds: writtenTo(0),
    disconnect: async () => undefined,
  } as unknown as LogCluster
}
const archiveOnce = (steps: ArchiveSteps, cluster: LogCluster, end: number) => {
  const options = { to: ['other'], follow: false, maxRate: Number.POSITIVE_INFINITY, json: false }
  const kafka = { admin: () => adminOf(1, end) } as unknown as Kafka
  return archive(options, { ...steps, kafka, openCluster: async () => cluster })
}

test('a log that was made anew is refused, also if it has no more records than the archive', async t => {
  const { steps } = await setUp(t)
  expect(await archiveOnce(steps, logThatEndsAt([3]), 3)).toBe(exitCodes.done)
  expect(await archiveOnce(steps, logThatEndsAt([3]), 3)).toBe(exitCodes.done)
  await expect(archiveOnce(steps, logThatEndsAt([3], 'b'), 3)).rejects.toThrow('has another record at offset 2')
  await expect(archiveOnce(steps, logThatEndsAt([1], 'b'), 1)).rejects.toThrow(
    'ends before offset 3, which is archived',
  )
  await expect(archiveOnce(steps, logThatEndsAt([0]), 0)).rejects.toThrow('ends before offset 3, which is archived')
})

test('a new leader that says for a moment that the log ends before the archive ends no run', async t => {
  const { steps } = await setUp(t)
  expect(await archiveOnce(steps, logThatEndsAt([3]), 3)).toBe(exitCodes.done)
  expect(await archiveOnce(steps, logThatEndsAt([1, 2, 5]), 5)).toBe(exitCodes.done)
  expect((await readManifests(await steps.openTarget('other'))).events.partitions[0]?.end).toBe(5)
})

test('a run names transactions that stay open, and ends as failed: records behind them are not archived', async t => {
  const { steps } = await setUp(t)
  const said: string[] = []
  const open = { ...logThatEndsAt([3]), logEnds: writtenTo(5) }
  const run = (cluster: LogCluster, end: number) =>
    archiveOnce({ ...steps, say: line => void said.push(line) }, cluster, end)
  expect(await run(open, 3)).toBe(exitCodes.failed)
  expect(said.slice(-2)).toEqual(
    ['events', 'keys'].map(topic => expect.stringContaining(`open transactions in partition 0 of ${topic}: `)),
  )
  said.length = 0
  expect(await run({ ...logThatEndsAt([3, 5]), logEnds: writtenTo(5) }, 5)).toBe(exitCodes.done)
  expect(said.join()).not.toContain('transactions')
})

test('a run reads what an open transaction hid, if it ends within a few seconds', async t => {
  const { steps } = await setUp(t)
  let end = 3
  const admin = { ...adminOf(1), fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: String(end) }] }
  const fetchAtEnd = async ({ topics }: Parameters<typeof fetch>[0]) =>
    answerOf(Number(topics[0]?.partitions[0]?.fetchOffset), end, { timestamp: -1, value: null })
  const log = {
    onLeader: async (_: number, ask: (leader: { fetch: typeof fetchAtEnd }) => unknown) => ask({ fetch: fetchAtEnd }),
    logEnds: writtenTo(5),
    disconnect: async () => undefined,
  } as unknown as LogCluster
  const sleep = async (): Promise<void> => {
    end = 5
  }
  const kafka = { admin: () => admin } as unknown as Kafka
  const options = { to: ['other'], follow: false, maxRate: Number.POSITIVE_INFINITY, json: false }
  expect(await archive(options, { ...steps, kafka, sleep, openCluster: async () => log })).toBe(exitCodes.done)
  expect((await readManifests(await steps.openTarget('other'))).events.partitions[0]?.end).toBe(5)
})

test('a run that never learns whether transactions are open has copied what it can read, and ends as failed', async t => {
  const { steps } = await setUp(t)
  const said: string[] = []
  const log = { ...logThatEndsAt([3]), logEnds: () => Promise.reject(new Error('away')) }
  expect(await archiveOnce({ ...steps, say: line => void said.push(line) }, log, 3)).toBe(exitCodes.failed)
  expect(said.at(-1)).toContain('it is not known whether transactions are open in partition 0 of keys: ')
  expect((await readManifests(await steps.openTarget('other'))).events.partitions[0]?.end).toBe(3)
})

test('a run that follows names a transaction that is open at two looks', async t => {
  const { steps } = await setUp(t)
  const stopping = new AbortController()
  const said: string[] = []
  const say = (line: string): void => {
    said.push(line)
    if (line.startsWith('open transactions in partition 0 of keys')) stopping.abort()
  }
  const log = { ...logThatEndsAt([3]), logEnds: writtenTo(5) }
  const options = { to: ['other'], follow: true, maxRate: Number.POSITIVE_INFINITY, json: false }
  const { signal } = stopping
  expect(await archive(options, { ...steps, say, signal, openCluster: async () => log })).toBe(exitCodes.done)
  expect(said.filter(line => line.startsWith('open transactions'))).toHaveLength(2)
})

test('a run that follows and is stopped before it has everything ends as stopped; afterwards as done', async t => {
  const { steps } = await setUp(t)
  const said: string[] = []
  const run = (follow: boolean, signal: AbortSignal, sleep = steps.sleep) => {
    const options = { to: ['other'], follow, maxRate: Number.POSITIVE_INFINITY, json: false }
    return archive(options, { ...steps, signal, sleep, say: line => void said.push(line) })
  }
  expect(await run(true, AbortSignal.abort())).toBe(exitCodes.failed)
  expect(said.at(-1)).toBe('the same command continues')
  expect(await run(false, new AbortController().signal)).toBe(exitCodes.done)
  const stopping = new AbortController()
  const sleep = async () => stopping.abort()
  expect(await run(true, stopping.signal, sleep)).toBe(exitCodes.done)
})

test('a run that is stopped before it has compared and signed an archive that has everything is not done', async t => {
  const { steps, slow } = await setUp(t)
  const sign = join(await newFolder(t), 'key')
  await writeFile(sign, textOfSigningKey(createSigningKey('auditor.example/a')))
  const run = (signed: { readonly sign?: string }, signal = new AbortController().signal) => {
    const options = { to: ['other'], follow: false, maxRate: Number.POSITIVE_INFINITY, json: false }
    return archive({ ...options, ...signed }, { ...steps, signal })
  }
  const noteOf = () => slow.read(`events/${NOTE_FILE}`)
  expect(await run({})).toBe(exitCodes.done)
  expect(await run({}, AbortSignal.abort())).toBe(exitCodes.failed)
  expect(await run({ sign }, AbortSignal.abort())).toBe(exitCodes.failed)
  expect(await noteOf()).toBeUndefined()
  expect(await run({ sign })).toBe(exitCodes.done)
  expect(await noteOf()).toBeDefined()
})

test('a flood of batches that nobody can read, or of records that say so, gets a few lines', async t => {
  const { steps } = await setUp(t)
  const end = 50
  const entries = Array.from({ length: end }, (_, offset) => ({
    ...{ kind: 'record' as const, offset, timestamp: 1, key: null, value: null },
    headers: encodeHeaders([[UNDECODABLE_BATCH_HEADER, Buffer.from(`${offset} ${offset} 4 not_decompressed`)]]),
  }))
  const leader = {
    fetch: async ({ topics }: Parameters<typeof fetch>[0]) => {
      const messages = [{ fetched: fetchedOf(entries.slice(Number(topics[0]?.partitions[0]?.fetchOffset))) }]
      return { responses: [{ partitions: [{ messages, lastStableOffset: String(end) }] }] }
    },
  }
  const flooded = {
    onLeader: async (_: number, ask: (one: typeof leader) => unknown) => ask(leader),
    logEnds: writtenTo(0),
    disconnect: async () => undefined,
  } as unknown as LogCluster
  const said: string[] = []
  const options = { to: ['slow'], follow: false, maxRate: Number.POSITIVE_INFINITY, json: false }
  const kafka = { admin: () => adminOf(1, end) } as unknown as Kafka
  const openTarget = async () => directoryTarget(join(await newFolder(t), 'flooded'))
  const say = (line: string) => void said.push(line)
  await archive(options, { ...steps, kafka, openTarget, say, elapsed: () => 0, openCluster: async () => flooded })
  const named = said.filter(line => line.includes('batch of offsets'))
  expect(named).toHaveLength(UNDECODABLE_LOGGED)
  expect(named[0]).toMatch(/^partition 0 of \w+: batch of offsets 0 to 0, compression zstd: /)
  expect(said.filter(line => line.startsWith('further batches'))).toHaveLength(1)
})
