/** An archive, and a topic, as the source of a replay: what is verified, what is read, and which end a time has. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogEntry } from '../../../core/log/records/read-log.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { sourceInArchive, sourceInKafka } from '../../../tools/analysis/replay-source.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import type { Scope } from '../../support/scope.ts'

const PARTITIONS = 3
const BEGIN = Date.UTC(2026, 0)
const DAY = 86_400_000
const events = { stream: 'events', cluster_id: 'cluster', topic: 'topic' } as const
const keys = { ...events, stream: 'api-keys', topic: 'keys' } as const
const held = async (): Promise<void> => undefined

const orgIn = (partition: number): string => {
  for (let number = 0; ; number++) if (partitionOf(`org_${number}`, PARTITIONS) === partition) return `org_${number}`
}

const entry = (offset: number, timestamp: number, kind: LogEntry['kind'] = 'record'): LogEntry => {
  const key = Buffer.from(orgIn(0))
  return {
    kind,
    offset,
    timestamp: BEGIN + timestamp,
    key,
    value: Buffer.from(`${offset}`),
    headers: encodeHeaders([]),
  }
}

/** Adds entries to each partition, a segment for each two of them. */
const grow = async (directory: string, log: readonly (readonly LogEntry[])[], topicId?: string): Promise<void> => {
  const target = directoryTarget(directory)
  const topic = await openTopicArchive(target, events, PARTITIONS, held, topicId)
  for (const [partition, entries] of log.entries()) {
    for (let at = topic.positions()[partition] ?? 0; at < entries.length; at += 2) {
      topic.add(partition, entries.slice(topic.readFrom(partition), at + 2), 0)
      await topic.cut(1)
    }
  }
  await openTopicArchive(target, keys, 1, held)
}

const three = (times: readonly number[]): LogEntry[] => times.map((time, offset) => entry(offset, time))
const log = [three([10, 20, 30, 40]), three([10, 11, 12]), [entry(0, 10), entry(1, 50, 'control'), entry(2, 20)]]

const archived = async (t: Scope): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await grow(directory, log)
  return directory
}
const open = async (
  directory: string,
  org?: string,
  time?: number,
  keysDirectory: () => string | undefined = () => undefined,
) => {
  await using stack = new AsyncDisposableStack()
  const signal = new AbortController().signal
  const openTarget = async (address: string) => directoryTarget(address)
  const said: string[] = []
  const say = (line: string) => void said.push(line)
  const steps = { say, draw: undefined, elapsed: () => 0, now: () => BEGIN + DAY, signal, openTarget, keysDirectory }
  const source = await sourceInArchive(directory, steps)({ org, time: time && BEGIN + time }, stack)
  if (!('reader' in source.from)) throw new Error('not an archive')
  return { ...source, reader: source.from.reader, said }
}
const segmentOf = (directory: string, partition: number, from: number): string =>
  join(directory, 'events', String(partition), `${String(from).padStart(20, '0')}.zst`)
const damage = async (path: string): Promise<void> => {
  const bytes = await readFile(path)
  bytes.writeUInt8((bytes[20] ?? 0) ^ 1, 20)
  await writeFile(path, bytes)
}
test('the source is the topic that the archive was made from, up to the ends of the archive', async t => {
  const { identity, ends, reader } = await open(await archived(t))
  expect(identity).toEqual({ topic: 'topic', cluster_id: 'cluster', partitions: PARTITIONS })
  expect(ends.map(({ end }) => end)).toEqual([4, 3, 3])
  expect((await reader.read(0, 3)).entries).toMatchObject([{ offset: 3, timestamp: BEGIN + 40 }])
})

test('a time ends before the first later record, which is no hole, and must have one in each partition', async t => {
  const directory = await archived(t)
  const early = await open(directory, undefined, 11)
  expect([...early.firstLater]).toEqual([
    [0, 1],
    [1, 2],
    [2, 2],
  ])
  expect(early.assertOver).not.toThrow()
  const late = await open(directory, undefined, 12)
  expect(late.assertOver).toThrow('the archive has no record after that time in partition 1')
  expect((await open(directory, orgIn(0), 12)).assertOver).not.toThrow()
})

test('holes with later times, as a restore makes them, neither end a time nor prove that it is over', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const holes = (['aborted', 'control'] as const).map((kind, index) => entry(2 + index, 1_000, kind))
  await grow(directory, [[...three([10, 11]), ...holes, entry(4, 12)], three([50]), three([50])])
  const source = await open(directory, orgIn(0), 12)
  expect([...source.firstLater]).toEqual([])
  expect(source.assertOver).toThrow('the archive has no record after that time in partition 0')
  expect([...(await open(directory, undefined, 11)).firstLater]).toEqual([
    [0, 4],
    [1, 0],
    [2, 0],
  ])
})

test('a time that does not separate the records is refused; a time that says nothing, and that of another organization, is no end', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const stranger = { ...entry(1, 50), key: Buffer.from('org_stranger') }
  const microseconds = { ...entry(2, 0), timestamp: BEGIN * 1000 }
  const none = { ...entry(3, 0), timestamp: -1 }
  const log = [entry(0, 10), stranger, microseconds, none, entry(4, 20), entry(5, 60)]
  await grow(directory, [log, three([90]), three([90])])
  await expect(open(directory, undefined, 30)).rejects.toThrow(
    'in partition 0 the record at offset 1 is later, and that at 4, after it, is not',
  )
  expect((await open(directory, orgIn(0), 30)).firstLater.get(0)).toBe(5)
  expect((await open(directory, undefined, 15)).firstLater.get(0)).toBe(1)
  expect((await open(directory, undefined, 55)).firstLater.get(0)).toBe(5)
})

test('a damaged segment is refused before anything is read, but only in a partition that is replayed', async t => {
  const directory = await archived(t)
  await damage(segmentOf(directory, 0, 2))
  await expect(open(directory)).rejects.toThrow('its bytes were changed')
  await expect(open(directory, orgIn(0))).rejects.toThrow(segmentOf(directory, 0, 2))
  const { ends } = await open(directory, orgIn(1))
  expect(ends.map(({ end }) => end)).toEqual([0, 3, 0])
})

test('a chain that was broken or cut off is refused', async t => {
  const directory = await archived(t)
  const other = await archived(t)
  await rm(segmentOf(directory, 0, 2))
  await expect(open(directory)).rejects.toThrow('the segment that begins with offset 2 is lost')
  await grow(other, log)
  const foreign = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(foreign, { recursive: true, force: true }))
  await grow(foreign, [three([10, 21, 30, 40]), [], []])
  await writeFile(segmentOf(other, 0, 0), await readFile(segmentOf(foreign, 0, 0)))
  await expect(open(other)).rejects.toThrow('the SHA-256 of the segment before it')
})

test('a segment that is replaced after it was verified is refused, although it is whole', async t => {
  const directory = await archived(t)
  const { reader } = await open(directory)
  const foreign = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(foreign, { recursive: true, force: true }))
  await grow(foreign, [three([10, 21, 30, 40]), [], []])
  await writeFile(segmentOf(directory, 0, 0), await readFile(segmentOf(foreign, 0, 0)))
  await expect(reader.read(0, 0)).rejects.toThrow(
    `${segmentOf(directory, 0, 0)}: it was replaced after it was verified`,
  )
  expect((await reader.read(0, 2)).entries).toHaveLength(2)
})

test('an archive that grows meanwhile is read up to its end when it was opened', async t => {
  const directory = await archived(t)
  const manifest = await readFile(join(directory, 'events', 'manifest.json'))
  await grow(directory, [three([10, 20, 30, 40, 50, 60]), ...log.slice(1)])
  expect(await readdir(join(directory, 'events', '0'))).toHaveLength(3)
  await writeFile(join(directory, 'events', 'manifest.json'), manifest)
  const { ends, reader } = await open(directory)
  expect(ends[0]?.end).toBe(4)
  expect((await reader.read(0, 2)).entries).toHaveLength(2)
  expect(await reader.read(0, 4)).toEqual({ entries: [], end: 4 })
})

const redactedKey = (number: number): string => `redacted-${String(number).repeat(40)}`
/** A directory for receipts of redactions, and a function that writes one. */
const receipts = async (t: Scope) => {
  const keys = await mkdtemp(join(tmpdir(), 'commission-keys-'))
  t.onTestFinished(() => rm(keys, { recursive: true, force: true }))
  const receipt = (key_id: string, rep: string, cluster_id: string, more: object = {}) => {
    const named = { version: 1, organization: 'org_1', rep, key_id, cluster_id, topic: 'topic', ...more }
    return writeFile(
      join(keys, `${key_id}.erased.json`),
      JSON.stringify({ ...named, erased_at: '2026-11-24T10:00:00Z' }),
    )
  }
  return { keys, receipt }
}

test('an archive of a log of which somebody was redacted is replayed with a warning, unless it is of another organization', async t => {
  const { keys, receipt } = await receipts(t)
  await receipt(redactedKey(1), 'rep_1', 'cluster')
  await receipt(redactedKey(2), 'rep_2', 'another')
  const directory = await archived(t)
  const warned = async (org?: string) =>
    (await open(directory, org, undefined, () => keys)).said.filter(line => line.startsWith('warning'))
  const warning = 'warning: rep_1 of org_1 was redacted at 2026-11-24T10:00:00Z: an archive from before has its texts'
  expect(await warned()).toEqual([expect.stringContaining(warning)])
  expect(await warned('org_1')).toHaveLength(1)
  expect(await warned('org_2')).toEqual([])
})

test('an archive of the topic that a redaction made has no warning about it, and one of another topic may have the texts', async t => {
  const { keys, receipt } = await receipts(t)
  await receipt(redactedKey(1), 'rep_1', 'cluster', { topic_id: 'redacted' })
  await receipt(redactedKey(2), 'rep_2', 'cluster', { topic_id: 'redacted again' })
  const directory = await mkdtemp(join(tmpdir(), 'commission-archive-'))
  t.onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await grow(directory, log, 'redacted')
  const { said } = await open(directory, undefined, undefined, () => keys)
  expect(said.filter(line => line.startsWith('warning'))).toEqual([
    expect.stringMatching(/^warning: rep_2 .* this may be one\. The sandbox gets them then: drop it/),
  ])
})

test('an archive from before topic ids that goes on with the topic that a redaction made keeps the warning', async t => {
  const { keys: directory, receipt } = await receipts(t)
  await receipt(redactedKey(1), 'rep_1', 'cluster', { topic_id: 'redacted' })
  const old = await archived(t)
  const topic = await openTopicArchive(directoryTarget(old), events, PARTITIONS, held, 'redacted')
  await topic.noteTopics('redacted', { topic: keys.topic })
  expect(topic.manifest().topic_id).toBe('redacted')
  const { said } = await open(old, undefined, undefined, () => directory)
  expect(said.filter(line => line.startsWith('warning'))).toEqual([
    expect.stringContaining('rep_1 of org_1 was redacted'),
  ])
})

test('a directory or a receipt that cannot be read is a warning: a replay needs no keys', async t => {
  const { keys } = await receipts(t)
  const directory = await archived(t)
  const first = 'warning: it is not known which people of this log were redacted: '
  const missing = await open(directory, undefined, undefined, () => join(keys, 'missing'))
  expect(missing.said[0]).toBe(`${first}SEAL_KEYS_DIR: ${join(keys, 'missing')} cannot be read`)
  await writeFile(join(keys, `${redactedKey(1)}.erased.json`), '{')
  const damaged = await open(directory, undefined, undefined, () => keys)
  expect(damaged.said[0]).toContain(`${first}${join(keys, redactedKey(1))}.erased.json: expected the receipt`)
  expect(damaged.ends.map(({ end }) => end)).toEqual([4, 3, 3])
})

test('a time of a topic with an open transaction is over when its records can be read, and not before', async () => {
  const run = async (endsAfter: number) => {
    await using stack = new AsyncDisposableStack()
    let sleeps = 0
    const nothing = async () => undefined
    const stable = () => (sleeps < endsAfter ? '5' : '6')
    const admin = {
      ...{ connect: nothing, disconnect: nothing },
      describeCluster: async () => ({ clusterId: 'c' }),
      fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
      fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: stable() }],
      fetchTopicOffsetsByTimestamp: async () => [{ partition: 0, offset: stable() }],
    }
    const steps = {
      ...{ kafka: { admin: () => admin }, topics: { events: 'events', 'api-keys': 'keys' }, now: () => BEGIN + DAY },
      ...{ groupId: 'group', say: () => undefined, sleep: async () => void sleeps++ },
      openCluster: async () => ({ logEnds: async () => new Map([[0, 6]]), disconnect: nothing }),
    } as unknown as Parameters<typeof sourceInKafka>[0]
    return sourceInKafka(steps)({ org: undefined, time: BEGIN }, stack)
  }
  const ended = await run(1)
  expect(ended.ends).toEqual([{ partition: 0, low: 0, end: 6 }])
  expect(ended.assertOver).not.toThrow()
  expect((await run(Number.POSITIVE_INFINITY)).assertOver).toThrow('a transaction is open in partition 0')
})
