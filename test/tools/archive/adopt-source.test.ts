/** Which generations `adopt --archive` takes over: those of the cluster, topic and partitions of the archive. */
import { expect, test } from 'vitest'
import { divideNames } from '../../../tools/archive/adopt-source.ts'
import { newManifest } from '../../../tools/archive/manifest.ts'
import { sending } from '../../support/answering.ts'

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
