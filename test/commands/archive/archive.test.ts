/** Archives in several targets: one that fails takes nothing from the others. Kafka is a double with one partition. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Admin, Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { type ArchiveSteps, archive } from '../../../commands/archive/archive.ts'
import { readManifests } from '../../../commands/archive/read-archive.ts'
import { type ArchiveTarget, directoryTarget } from '../../../commands/archive/target.ts'
import { ARCHIVE_FLUSH_MS } from '../../../commands/limits.ts'
import type { LogCluster } from '../../../commands/projector.ts'
import type { Scope } from '../../support/scope.ts'

const RECORDS = 3
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const admin = {
  connect: async () => undefined,
  disconnect: async () => undefined,
  describeCluster: async () => ({ clusterId: 'cluster' }),
  fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
  fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: String(RECORDS) }],
} as unknown as Admin

const fetch = async ({ topics }: { topics: readonly { partitions: readonly { fetchOffset: string }[] }[] }) => {
  const from = Number(topics[0]?.partitions[0]?.fetchOffset)
  const messages = Array.from({ length: RECORDS }, (_, offset) => ({ offset: String(offset), key: null, value: null }))
  return { responses: [{ partitions: [{ messages: messages.slice(from), lastStableOffset: String(RECORDS) }] }] }
}
const cluster = {
  onLeader: async (_: number, ask: (leader: { fetch: typeof fetch }) => unknown) => ask({ fetch }),
  disconnect: async () => undefined,
} as unknown as LogCluster

/** Time passes with each look at the clock, so that a segment is due at once. */
const setUp = async (t: Scope) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
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
    kafka: { admin: () => admin } as unknown as Kafka,
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
