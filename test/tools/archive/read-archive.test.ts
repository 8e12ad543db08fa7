/** Archives in a directory: what a kill leaves is valid, and each kind of damage is named. */
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LogEntry } from '../../../core/log/records/read-log.ts'
import type { Stream } from '../../../schemas/events.ts'
import { readManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import {
  lastUpTo,
  readAhead,
  readArchivedLog,
  readManifests,
  sayUnnamed,
  verifyArchive,
} from '../../../tools/archive/read-archive.ts'
import { ArchiveDamaged, encodeSegment } from '../../../tools/archive/segment.ts'
import { type ArchiveTarget, directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import { seedOfRun } from '../../support/random.ts'
import type { Scope } from '../../support/scope.ts'
import { anyEntry, contentOf, entriesFrom } from './any-entries.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const events = { stream: 'events', cluster_id: 'cluster', topic: 'topic' } as const
const keys = { ...events, stream: 'api-keys', topic: 'keys' } as const
const SEGMENT = 4
const log = (count: number, from = 0): LogEntry[] =>
  entriesFrom(from, fc.sample(anyEntry, { seed: seed + from, numRuns: count }))

const held = async (): Promise<void> => undefined

/** Adds entries to partition 0, a segment for each SEGMENT of them. */
const addAll = async (target: ArchiveTarget, entries: readonly LogEntry[]): Promise<void> => {
  const topic = await openTopicArchive(target, events, 1, held)
  for (let at = topic.positions()[0] ?? 0; at < entries.length; at += SEGMENT) {
    topic.add(0, entries.slice(topic.readFrom(0), at + SEGMENT), 0)
    await topic.cut(1)
  }
}

const setUp = async (t: Scope, count = 12) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const target = directoryTarget(directory)
  const entries = log(count)
  await addAll(target, entries)
  await openTopicArchive(target, keys, 1, held)
  return { directory, target, entries, segments: join(directory, 'events', '0') }
}
const verified = (target: ArchiveTarget, said: string[] = []) =>
  verifyArchive(
    target,
    { report: () => undefined, onUnnamed: segment => void said.push(sayUnnamed(target.name, segment)) },
    new AbortController().signal,
  )
const verify = async (target: ArchiveTarget, said: string[] = []) => (await verified(target, said)).manifests
const nameOf = (from: number): string => `${String(from).padStart(20, '0')}.zst`

test('an archive gives back every entry, from any offset on', async t => {
  const { target, entries } = await setUp(t)
  const manifests = await verify(target)
  const reader = readArchivedLog(target, manifests.events)
  for (let from = 0; from < entries.length; from++) {
    const got = await reader.read(0, from)
    expect(got.entries.length).toBeGreaterThan(0)
    expect(got.entries.map(contentOf)).toEqual(entries.slice(from, from + got.entries.length).map(contentOf))
  }
  expect(await reader.read(0, entries.length)).toEqual({ entries: [], end: entries.length })
  expect(manifests.events.partitions[0]).toMatchObject({
    end: entries.length,
    records: entries.filter(({ kind }) => kind === 'record').length,
    segments: 3,
  })
})

test('a segment is found among 200,000 by some looks at their names', () => {
  let looks = 0
  const names = Array.from({ length: 200_000 }, (_, index) => index * 3)
  const watched = new Proxy(names, {
    get: (all, name) => {
      if (name !== 'length') looks++
      return Reflect.get(all, name)
    },
  })
  const found = [-1, 0, 1, 2, 3, 299_999, 300_000, 599_997, 599_999].map(bound => lastUpTo(watched, bound))
  expect(found).toEqual([undefined, 0, 0, 0, 3, 299_997, 300_000, 599_997, 599_997])
  expect(looks).toBeLessThan(found.length * 20)
  expect(lastUpTo([], 1)).toBeUndefined()
})

test('small segments are read ahead, eight at once, in order, up to the first error; large ones alone', async () => {
  const reads = new Map<number, PromiseWithResolvers<string>>()
  const read = (item: number): Promise<string> => {
    const one = Promise.withResolvers<string>()
    reads.set(item, one)
    return one.promise
  }
  const got: string[] = []
  const walk = async (): Promise<void> => {
    const items = Array.from({ length: 30 }, (_, index) => index)
    for await (const value of readAhead(items, read, value => value !== 'large')) got.push(value)
  }
  const walked = expect(walk()).rejects.toThrow('refused')
  const after = async (answers: readonly (readonly [number, string | Error])[]): Promise<[number, string[]]> => {
    for (const [item, answer] of answers) {
      if (answer instanceof Error) reads.get(item)?.reject(answer)
      else reads.get(item)?.resolve(answer)
    }
    await new Promise(setImmediate)
    return [reads.size, got.splice(0)]
  }
  expect(await after([])).toEqual([1, []])
  expect(await after([[0, 'large']])).toEqual([2, ['large']])
  expect(await after([[1, 'one']])).toEqual([10, ['one']])
  const outOfOrder = [5, 4, 3].map(item => [item, `${item}`] as const)
  expect(await after(outOfOrder)).toEqual([10, []])
  expect(await after([[2, '2']])).toEqual([14, ['2', '3', '4', '5']])
  expect(await after([[6, 'large']])).toEqual([14, ['large']])
  const rest = [7, 8, 9, 10, 11, 12].map(item => [item, 'large'] as const)
  expect(await after(rest)).toEqual([14, rest.map(() => 'large')])
  expect(await after([[13, '13']])).toEqual([22, ['13']])
  expect(await after([[15, new Error('refused')]])).toEqual([22, []])
  await after([[14, '14']])
  await walked
  expect([reads.size, got]).toEqual([23, []])
})

test('the digest of a partition does not depend on how the log was split into segments', async t => {
  const { target, entries } = await setUp(t)
  const other = await setUp(t, 0)
  const topic = await openTopicArchive(other.target, events, 1, held)
  topic.add(0, entries, 0)
  await topic.cut(1)
  const digestOf = async (one: ArchiveTarget) => (await verify(one)).events.partitions[0]?.digest
  expect(await digestOf(other.target)).toBe(await digestOf(target))
})

test.for([
  [1, 0],
  [512, 1],
] as const)(
  'the more partitions a topic has, the smaller are its segments: all that grow fit into memory: %s',
  async ([partitions, segments], t) => {
    const { target } = await setUp(t, 0)
    await rm(target.name, { recursive: true })
    await mkdir(target.name)
    const topic = await openTopicArchive(target, events, partitions, held)
    topic.add(
      0,
      log(1).map(entry => ({ ...entry, timestamp: 0, value: Buffer.alloc(1024 * 1024) })),
      0,
    )
    await topic.cut(Number.NEGATIVE_INFINITY)
    expect(topic.manifest().partitions[0]?.segments).toBe(segments)
  },
)

test('a kill at any write leaves an archive that is whole, and the next run continues without a gap', async t => {
  const entries = log(12)
  for (let killedAt = 0; killedAt < 10; killedAt++) {
    const { target } = await setUp(t, 0)
    let writes = 0
    const step = async (work: () => Promise<void>): Promise<void> => {
      if (writes++ >= killedAt) throw new Error('killed')
      await work()
    }
    const killed: ArchiveTarget = {
      ...target,
      create: (path, bytes) => step(() => target.create(path, bytes)),
      replace: (path, bytes) => step(() => target.replace(path, bytes)),
    }
    await addAll(killed, entries).catch(() => undefined)
    await verify(target)
    await addAll(target, entries)
    expect((await verify(target)).events.partitions[0]?.end).toBe(12)
    expect((await readArchivedLog(target, (await readManifests(target)).events).read(0, 8)).entries).toHaveLength(4)
  }
})

test('a segment that was stored and not named yet does not count, and verify says so; the next run takes it in', async t => {
  const { target, segments } = await setUp(t)
  const longer = await setUp(t, 16)
  await copyFile(join(longer.segments, nameOf(12)), join(segments, nameOf(12)))
  const said: string[] = []
  expect((await verify(target, said)).events.partitions[0]?.end).toBe(12)
  expect(said).toEqual([
    expect.stringMatching(
      /events\/0: the segment that begins with offset 12 is stored, .*: its 4 offsets do not count/,
    ),
  ])
  await openTopicArchive(target, events, 1, held)
  expect((await verify(target, said)).events).toEqual((await verify(longer.target)).events)
  expect(said).toHaveLength(1)
})

test('verify says nothing about a segment that a run names meanwhile', async t => {
  const { target } = await setUp(t)
  const growing: ArchiveTarget = {
    ...target,
    list: async folder => {
      await addAll(target, log(16))
      return target.list(folder)
    },
  }
  const said: string[] = []
  expect((await verify(growing, said)).events.partitions[0]?.end).toBe(12)
  expect(said).toEqual([])
})

test('a stored segment without entries is refused before the manifest names it', async t => {
  const { target } = await setUp(t)
  const before = await readManifests(target)
  const { end = 0, last_sha256: previous = '' } = before.events.partitions[0] ?? {}
  const { bytes } = await encodeSegment({ ...events, partition: 0, from: end, end, previous }, [])
  await target.create(`events/0/${nameOf(end)}`, bytes)
  await expect(openTopicArchive(target, events, 1, held)).rejects.toThrow('it has no entries')
  expect(await readManifests(target)).toEqual(before)
})

test('a segment that is lost after an archive was verified is named; a reader does not wait for it for ever', async t => {
  const { target, segments } = await setUp(t)
  const { events: manifest } = await verify(target)
  await rm(join(segments, nameOf(4)))
  const reader = readArchivedLog(target, manifest)
  expect((await reader.read(0, 0)).entries).toHaveLength(4)
  await expect(reader.read(0, 4)).rejects.toThrow('events/0: the segment that begins with offset 4 is lost')
})

test('verify passes over segments that a run adds meanwhile', async t => {
  const { target } = await setUp(t)
  const growing: ArchiveTarget = {
    ...target,
    list: async folder => {
      await addAll(target, log(24))
      return target.list(folder)
    },
  }
  expect((await verify(growing)).events.partitions[0]?.end).toBe(12)
})

test('a stored segment is never written again', async t => {
  const { target } = await setUp(t)
  const path = `events/0/${nameOf(4)}`
  const bytes = await target.read(path)
  if (bytes === undefined) throw new Error('no segment')
  await target.create(path, bytes)
  await expect(target.create(path, Buffer.from('other'))).rejects.toThrow('another run has written it')
  expect(await target.read(path)).toEqual(bytes)
})

test('a log that has another record at the last archived offset, or ends before it, is refused', async t => {
  const { target, entries } = await setUp(t)
  const topic = await openTopicArchive(target, events, 1, held)
  const last = entries.at(-1) as LogEntry
  // The seed decides the time of the last record: it can be 1.
  const other = { ...last, timestamp: last.timestamp === 1 ? 2 : 1 }
  expect(() => topic.add(0, [other], 0)).toThrow('partition 0 of topic has another record at offset 11')
  expect(() => topic.add(0, [], 0)).toThrow('partition 0 of topic ends before offset 12')
})

test('the archive of another cluster, topic or number of partitions is refused by name', async t => {
  const { target } = await setUp(t)
  const refusal = (changed: object, partitions = 1) =>
    openTopicArchive(target, { ...events, ...changed }, partitions, held)
  await expect(refusal({ cluster_id: 'x' })).rejects.toThrow('cluster_id: expected cluster, got x')
  await expect(refusal({ topic: 'x' })).rejects.toThrow('topic: expected topic, got x')
  await expect(refusal({}, 2)).rejects.toThrow('partitions: expected 1, got 2')
})

/** Changes the manifest of a stream, as that of another installation has it. */
const changeManifest = async (target: ArchiveTarget, stream: Stream, changed: object): Promise<void> => {
  const before = await readManifest(target, stream)
  if (before === undefined) throw new Error('no manifest')
  await writeManifest(target, { ...before, ...changed })
}

test('an archive of an earlier version, whose streams do not name each other, is read as before', async t => {
  const { target } = await setUp(t)
  expect((await readManifests(target)).events).not.toHaveProperty('beside')
  await verify(target)
  await changeManifest(target, 'events', { topic_id: 'id', beside: { topic: 'keys', topic_id: 'unknown there' } })
  await verify(target)
})

type Damage = (at: { directory: string; segments: string; target: ArchiveTarget }) => Promise<void>
test.for<[name: string, damage: Damage, said: RegExp]>([
  [
    'a lost first segment',
    ({ segments }) => rm(join(segments, nameOf(0))),
    /events\/0: the segment that begins with offset 0 is lost/,
  ],
  [
    'a lost segment',
    ({ segments }) => rm(join(segments, nameOf(4))),
    /events\/0: the segment that begins with offset 4 is lost/,
  ],
  [
    'a lost last segment',
    ({ segments }) => rm(join(segments, nameOf(8))),
    /begins with offset 8 is lost: the log ends at 8, its manifest at 12/,
  ],
  [
    'a flipped byte',
    async ({ segments }) => {
      const file = join(segments, nameOf(4))
      const bytes = await readFile(file)
      bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20)
      await writeFile(file, bytes)
    },
    /events\/0\/0{19}4\.zst: its bytes were changed/,
  ],
  [
    'a segment of another run of the same log',
    async ({ segments, directory }) => {
      const other = directoryTarget(join(directory, 'other'))
      await openTopicArchive(directoryTarget(directory), keys, 1, held)
      await mkdir(join(directory, 'other'))
      await addAll(
        other,
        log(12).map(entry => ({ ...entry, timestamp: 5 })),
      )
      await rename(join(directory, 'other', 'events', '0', nameOf(4)), join(segments, nameOf(4)))
    },
    /the SHA-256 of the segment before it: expected/,
  ],
  [
    'a log that is longer than its manifest',
    async ({ directory, segments }) => {
      const other = directoryTarget(join(directory, 'other'))
      await mkdir(join(directory, 'other'))
      await addAll(other, log(20))
      for (const name of [nameOf(12), nameOf(16)])
        await rename(join(directory, 'other', 'events', '0', name), join(segments, name))
    },
    /events\/0: the log is longer than its manifest, which ends at 12/,
  ],
  [
    'a lost manifest',
    ({ directory }) => rm(join(directory, 'events', 'manifest.json')),
    /events\/manifest\.json: this file is lost/,
  ],
  [
    'the lost manifest of the keys',
    ({ directory }) => rm(join(directory, 'api-keys', 'manifest.json')),
    /api-keys\/manifest\.json: this file is lost/,
  ],
  [
    'a changed manifest',
    async ({ directory }) => {
      const file = join(directory, 'events', 'manifest.json')
      await writeFile(file, (await readFile(file, 'utf8')).replace('"end": 12', '"end": 11'))
    },
    /events\/manifest\.json: its content was changed/,
  ],
  [
    'the keys of another cluster',
    ({ target }) => changeManifest(target, 'api-keys', { cluster_id: 'staging' }),
    /not of one installation: cluster: events has cluster, api-keys has staging/,
  ],
  [
    'the keys of another installation in the same cluster',
    ({ target }) => changeManifest(target, 'api-keys', { beside: { topic: 'events-of-staging' } }),
    /not of one installation: topic beside it: api-keys has events-of-staging, events has topic/,
  ],
  [
    'events whose topic was made anew since the keys were archived',
    async ({ target }) => {
      await changeManifest(target, 'events', { topic_id: 'new' })
      await changeManifest(target, 'api-keys', { beside: { topic: 'topic', topic_id: 'old' } })
    },
    /not of one installation: id of the topic beside it: api-keys has old, events has new/,
  ],
  [
    'a manifest that is cut off',
    ({ directory }) => writeFile(join(directory, 'events', 'manifest.json'), '{"form'),
    /it is not whole/,
  ],
])('verify names %s', async ([, damage, said], t) => {
  const { directory, target, segments } = await setUp(t)
  await verify(target)
  await damage({ directory, segments, target })
  await expect(verify(target)).rejects.toThrow(said)
  expect((await readdir(directory)).length).toBeGreaterThan(0)
})

test('an archive whose first run was killed between the two manifests is not damaged, and the next run makes it whole', async t => {
  const { target } = await setUp(t, 0)
  await rm(join(target.name, 'api-keys'), { recursive: true })
  const failed = await verify(target).catch((error: unknown) => error)
  expect(failed).not.toBeInstanceOf(ArchiveDamaged)
  expect(String(failed)).toContain('was only begun: run archive again')
  await openTopicArchive(target, keys, 1, held)
  await verify(target)
})
