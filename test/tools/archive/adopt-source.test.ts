/** Which generations `adopt --archive` takes over: those of the cluster, topic and partitions of the archive. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { generationId, indexOf, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import { type AdoptSourceSteps, adoptSource, divideNames } from '../../../tools/archive/adopt-source.ts'
import { newManifest, writeManifest } from '../../../tools/archive/manifest.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { sending } from '../../support/answering.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

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

test('while projectors write the stream that stays, a refused adopt has changed nothing of the other one', async t => {
  const directory = await mkdtemp(join(tmpdir(), 'commission-adopt-'))
  t.onTestFinished(() => rm(directory, { recursive: true }))
  const target = directoryTarget(directory)
  for (const manifest of Object.values(manifests)) await writeManifest(target, manifest)
  const engine = new MemoryElasticsearch()
  const store = (id: string, kind: string, body: object) => engine.put('p-control', id, 1, { kind, body })
  store(LIVE_ID, 'live', { generation: 'g1', kept: ['g1'] })
  // The keys are of another cluster, the events are of this one.
  store(generationId('api-keys'), 'generation', { generation: 'api-keys', ...keys })
  store(generationId('g1'), 'generation', { generation: 'g1', ...events, cluster_id: 'B' })
  for (const id of [positionId('api-keys', 0), positionId('g1', 0), positionId('g1', 1)]) {
    store(id, 'position', { position: 0, last: null, at: 0, time: 0, serve_from: 0 })
  }
  engine.put(indexOf('p', 'g1', 'payouts'), 'org_1:payout_1', 5, { org_id: 'org_1', seq: 5 })
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
      partitionsOf(topic).map(partition => ({ partition, low: '0', high: '0' })),
    describeGroups: async ([group]: string[]) => ({ groups: [{ members: group === 'group-g1' ? [{}] : [] }] }),
  }
  const steps = {
    ...{ send: engine.send, prefix: 'p', topics: { events: 't', 'api-keys': 'k' } },
    ...{ kafka: { admin: () => admin } as unknown as Kafka, signal: new AbortController().signal },
    openTarget: async () => target,
    openCluster: async () => ({ disconnect: async () => undefined }) as unknown,
    ...{ say: () => undefined, out: () => undefined, draw: () => undefined },
    ...{ now: () => engine.time, elapsed: () => engine.time },
    sleep: async (milliseconds: number) => {
      engine.time += milliseconds
    },
  } as unknown as AdoptSourceSteps
  const before = engine.all('p-control')
  await expect(adoptSource({ archive: directory, json: false }, steps, 'group')).rejects.toThrow(
    '1 projectors still keep g1 up: adopt again later',
  )
  expect(engine.all('p-control')).toEqual(before)
})
