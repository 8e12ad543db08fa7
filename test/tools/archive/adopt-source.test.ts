/** Which generations `adopt --archive` takes over, and what it changes when it is refused or stopped. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import { expect, type TestContext, test } from 'vitest'
import { createSigningKey, textOfVerifierKey } from '../../../core/runtime/index.ts'
import { generationId, indexOf, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import { type AdoptSourceSteps, adoptSource, divideNames } from '../../../tools/archive/adopt-source.ts'
import { newManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { readArchivedLog } from '../../../tools/archive/read-archive.ts'
import { redactLogs } from '../../../tools/archive/redaction/redact-log.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { readSignedManifests } from '../../../tools/archive/verify.ts'
import { CommandError, Stopped } from '../../../tools/failures.ts'
import { definedIndices, sending, withPipeline } from '../../support/answering.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import { archiveRecord, clusterOfRecord } from './memory-cluster.ts'

const keys = { topic: 'k', cluster_id: 'A', partitions: 1 }
const events = { topic: 't', cluster_id: 'A', partitions: 2 }
const manifests = {
  events: newManifest({ stream: 'events', topic: 't', cluster_id: 'A' }, 2),
  'api-keys': newManifest({ stream: 'api-keys', topic: 'k', cluster_id: 'A' }, 1),
}
const now = { events: { ...events, cluster_id: 'B' }, 'api-keys': { ...keys, cluster_id: 'B' } }

/** The live generation g2 and a spare one g1. */
const given = (changed: Readonly<Record<string, object>>) => {
  const bodies: Record<string, object> = { 'api-keys': keys, g1: events, g2: events, ...changed }
  const said: string[] = []
  const send = sending(async ({ path }) => {
    const [, name = ''] = /generation%3A(.*)$/.exec(path) ?? []
    return { status: 200, body: { _source: { kind: 'generation', body: bodies[name] } } }
  })
  const steps = { send, prefix: 'p', say: (line: string) => void said.push(line) }
  return { said, divide: () => divideNames(['api-keys', 'g2', 'g1'], 'g2', manifests, now, false, steps) }
}

test('generations of the archive are taken over, those of the new cluster are not', async () => {
  const { said, divide } = given({ g1: now.events })
  expect(await divide()).toEqual({ names: ['api-keys', 'g2'], unchanged: ['g1'] })
  expect(said).toEqual([])
})

const others = [
  ['cluster', { ...events, cluster_id: 'C' }, 'cluster of g1 and of the archive: expected C, got A'],
  ['topic', { ...events, topic: 'u' }, 'g1 was made from topic u, not t'],
  ['number of partitions', { ...events, partitions: 3 }, 'partitions of t: expected 3, got 2'],
] as const

test.each(others)(
  'a spare generation of another %s is skipped and named: the others are taken over',
  async (_, g1, why) => {
    const { said, divide } = given({ g1 })
    expect(await divide()).toEqual({ names: ['api-keys', 'g2'], unchanged: [] })
    expect(said).toEqual([expect.stringContaining(`g1 is skipped: ${why}`)])
  },
)

test.each(others)('a live generation of another %s is refused', async (_, g2, why) => {
  await expect(given({ g2 }).divide()).rejects.toThrow(why.replace('g1', 'g2'))
})

test('API keys of another cluster are refused', async () => {
  const { divide } = given({ 'api-keys': { ...keys, cluster_id: 'C' } })
  await expect(divide()).rejects.toThrow('cluster of api-keys and of the archive: expected C, got A')
})

type Stored = { readonly cluster_id: string; readonly serve_from: number }
type Bytes = Buffer | undefined
type AllStored = { readonly 'api-keys': Stored; readonly g1: Stored; readonly g2?: Stored }

/**
 * An archive and topics of cluster B, and positions at their beginning. The topics are empty, or events have a record.
 * `on`: what happens at a line and a wait, and what a read of the archive brings.
 */
const adoptingFrom = async (
  t: TestContext,
  stored: AllStored,
  members: Readonly<Record<string, readonly object[]>>,
  record?: string,
  archived?: string,
) => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-adopt-'))
  t.onTestFinished(() => rm(directory, { recursive: true }))
  const target = directoryTarget(directory)
  for (const manifest of Object.values(manifests)) await writeManifest(target, manifest)
  if (record !== undefined) await archiveRecord(target, { stream: 'events', topic: 't', cluster_id: 'A' }, 2, archived)
  const engine = new MemoryElasticsearch()
  const store = (id: string, kind: string, body: object) => engine.put('p-control', id, 1, { kind, body })
  const { 'api-keys': _, ...kept } = stored
  engine.definitions = definedIndices('p', ...Object.keys(kept).map(generation => ({ generation })))
  store(LIVE_ID, 'live', { generation: 'g1', kept: Object.keys(kept) })
  for (const [generation, { cluster_id, serve_from }] of Object.entries(stored)) {
    const source = generation === 'api-keys' ? keys : events
    store(generationId(generation), 'generation', { generation, ...source, cluster_id })
    for (let partition = 0; partition < source.partitions; partition++) {
      const body = { position: 0, last: null, at: 0, time: 0, serve_from: partition === 0 ? serve_from : 0 }
      store(positionId(generation, partition), 'position', body)
    }
  }
  const configuration = { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' }
  const configEntries = Object.entries(configuration).map(([configName, configValue]) => ({ configName, configValue }))
  const partitionsOf = (topic: string) => (topic === 't' ? [0, 1] : [0])
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeCluster: async () => ({ clusterId: 'B' }),
    describeConfigs: async () => ({ resources: [{ configEntries }] }),
    fetchTopicMetadata: async ({ topics: [topic = ''] }: { topics: string[] }) => ({
      topics: [{ partitions: partitionsOf(topic).map(() => ({})) }],
    }),
    fetchTopicOffsets: async (topic: string) =>
      partitionsOf(topic).map(partition => {
        const hasRecord = record !== undefined && topic === 't' && partition === 0
        return { partition, low: '0', high: hasRecord ? '1' : '0' }
      }),
    describeGroups: async ([group = '']: string[]) => ({ groups: [{ members: members[group] ?? [] }] }),
  }
  const said: string[] = []
  const stopping = new AbortController()
  const nothing = (): void => undefined
  const on = { line: nothing as (line: string) => void, wait: nothing, read: async (_: string) => undefined as Bytes }
  const read = async (path: string) => (await on.read(path)) ?? target.read(path)
  const steps = {
    ...{ send: engine.send, prefix: 'p', topics: { events: 't', 'api-keys': 'k' } },
    ...{ kafka: { admin: () => admin } as unknown as Kafka, signal: stopping.signal },
    openTarget: async () => ({ ...target, read }),
    openCluster: async () => clusterOfRecord(record),
    say: (line: string) => {
      said.push(line)
      on.line(line)
    },
    ...{ out: nothing, draw: nothing, now: () => engine.time, elapsed: () => engine.time },
    sleep: async (milliseconds: number) => {
      engine.time += milliseconds
      on.wait()
      stopping.signal.throwIfAborted()
    },
  } as unknown as AdoptSourceSteps
  const adopt = (keys?: readonly string[], redacted?: string) =>
    adoptSource({ archive: directory, keys, redacted, json: false }, steps, 'group')
  return { engine, said, target, directory, adopt, on, stop: () => stopping.abort(new Stopped()) }
}

test('while projectors write the stream that stays, a refused adopt has changed nothing of the other one', async t => {
  // The keys are of another cluster, the events are of this one.
  const stored = { 'api-keys': { cluster_id: 'A', serve_from: 0 }, g1: { cluster_id: 'B', serve_from: 0 } }
  const { engine, adopt } = await adoptingFrom(t, stored, { 'group-g1': [{}] })
  engine.put(indexOf('p', 'g1', 'payouts'), 'org_1:payout_1', 5, { org_id: 'org_1', seq: 5 })
  const before = engine.all('p-control')
  await expect(adopt()).rejects.toThrow('1 projectors still keep g1 up: adopt again later')
  expect(engine.all('p-control')).toEqual(before)
})

test('adopt is refused before any change while an ingest pipeline is set on an index that it writes', async t => {
  const stored = { 'api-keys': { cluster_id: 'A', serve_from: 0 }, g1: { cluster_id: 'A', serve_from: 0 } }
  const { engine, adopt } = await adoptingFrom(t, stored, {})
  engine.definitions = withPipeline('p-g1-payouts', engine.definitions)
  const before = engine.all('p-control')
  await expect(adopt()).rejects.toMatchObject({ code: 'index_unsuitable' })
  expect(engine.all('p-control')).toEqual(before)
})

test('readers that saw more than the archive has wait for it also with the new source, and adopt says so', async t => {
  const stored = { 'api-keys': { cluster_id: 'A', serve_from: 3 }, g1: { cluster_id: 'A', serve_from: 5 } }
  const { engine, said, adopt } = await adoptingFrom(t, stored, {})
  await adopt()
  const positionOf = (generation: string) => engine.all('p-control')[positionId(generation, 0)]?.source.body
  expect(positionOf('g1')).toMatchObject({ source: 'B', serve_from: 5 })
  // Each start of a projector sets that of the keys to the end of their topic.
  expect(positionOf('api-keys')).toMatchObject({ source: 'B', serve_from: 0 })
  expect(said.at(-1)).toContain('partition 0 of t answers 503 until offset 5: its topic ends at 0')
})

test('adopt with --key changes nothing beside an archive that this key did not sign', async t => {
  const stored = { 'api-keys': { cluster_id: 'A', serve_from: 0 }, g1: { cluster_id: 'A', serve_from: 0 } }
  const { engine, adopt } = await adoptingFrom(t, stored, {})
  const before = engine.all('p-control')
  const key = textOfVerifierKey(createSigningKey('auditor.example/a').verifier)
  await expect(adopt([key])).rejects.toThrow('events/manifest.json is not signed')
  expect(engine.all('p-control')).toEqual(before)
})

const ofOldCluster = { cluster_id: 'A', serve_from: 0 }
const bothOld = { 'api-keys': ofOldCluster, g1: ofOldCluster }

test.for(['while the topics are compared', 'while documents of a spare generation are removed'] as const)(
  'after a signal adopt changes no source: it comes %s',
  async (moment, t) => {
    const { engine, said, adopt, on, stop } = await adoptingFrom(t, { ...bothOld, g2: ofOldCluster }, {})
    const withoutSpare = () => Object.entries(engine.all('p-control')).filter(([id]) => !id.includes('g2'))
    const before = withoutSpare()
    const stopComparing = () => said.at(-1) === 'comparing every record' && stop()
    if (moment === 'while the topics are compared') on.line = stopComparing
    else {
      engine.put(indexOf('p', 'g2', 'payouts'), 'org_1:payout_1', 5, { org_id: 'org_1', seq: 5 })
      on.wait = stopComparing
    }
    await expect(adopt()).rejects.toBeInstanceOf(Stopped)
    expect(said.at(-1)).toBe('comparing every record')
    expect(withoutSpare()).toEqual(before)
  },
)

test('a redaction is supposed only if the topics differ from the archive, not if the archive cannot be read', async t => {
  const differing = await adoptingFrom(t, bothOld, {}, 'b')
  await expect(differing.adopt()).rejects.toThrow(
    'partition 0 of t differs from the archive at offset 0: was the log redacted? Add --redacted FILE',
  )
  const { adopt, on } = await adoptingFrom(t, bothOld, {}, 'a')
  const unread = new CommandError('s3 does not answer')
  on.line = line => {
    if (line === 'comparing every record') on.read = () => Promise.reject(unread)
  }
  await expect(adopt()).rejects.toBe(unread)
})

test('adopt changes nothing beside a segment that was replaced after it was verified, although the topic has its record', async t => {
  const { adopt, on, engine } = await adoptingFrom(t, bothOld, {}, 'b')
  const before = engine.all('p-control')
  const directory = await mkdtemp(join(tmpdir(), 'commission-adopt-'))
  t.onTestFinished(() => rm(directory, { recursive: true }))
  const another = directoryTarget(directory)
  await archiveRecord(another, { stream: 'events', topic: 't', cluster_id: 'A' }, 2, 'b')
  on.line = line => {
    if (line === 'comparing every record') on.read = another.read
  }
  await expect(adopt()).rejects.toThrow('it was replaced after it was verified')
  expect(engine.all('p-control')).toEqual(before)
})

test('a redaction after grow names each topic before, which has the texts', async t => {
  const text = '{"org_id":"org_a","id":"rep_1","name":"Canary"'
  const { engine, said, target, directory, adopt } = await adoptingFrom(t, bothOld, {}, 'redacted', text)
  const before = [{ topic: 'commission.first', cluster_id: 'A', ends: [1] }]
  const grown = { topic: 'commission.old', cluster_id: 'A', ends: [1], before }
  engine.put('p-control', LIVE_ID, 2, { kind: 'live', body: { generation: 'g1', kept: ['g1'], grown } })
  const { manifests: inArchive } = await readSignedManifests(target, undefined, () => undefined)
  const { list } = await redactLogs(
    { manifests: inArchive, archived: stream => readArchivedLog(target, inArchive[stream]) },
    { org: 'org_a', rep: 'rep_1', also: [] },
    { onDone: async () => undefined, startAgain: () => undefined },
    new AbortController().signal,
  )
  const file = join(directory, 'changes.json')
  await writeFile(file, JSON.stringify(list))
  expect(await adopt(undefined, file)).toBe(0)
  for (const topic of ['commission.old', 'commission.first'])
    expect(said).toContainEqual(expect.stringContaining(`${topic}, a topic before grow, has the texts`))
})
