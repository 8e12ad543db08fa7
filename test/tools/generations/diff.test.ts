/** Two generations that grow are compared as of one moment. */
import { expect, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { generationId, indexOf, positionId } from '../../../schemas/stored/documents.ts'
import { diff } from '../../../tools/generations/diff.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const generations = ['g1', 'g2'] as const

/** Both have payout 5. */
const world = () => {
  const engine = new MemoryElasticsearch()
  for (const generation of generations) {
    const source = { topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
    engine.put('p-control', generationId(generation), 1, { kind: 'generation', body: { ...source, generation } })
  }
  const publish = (position: number, seq: number): void => {
    for (const generation of generations) {
      const body = {
        id: `payout_${seq}`,
        rep_id: 'rep_1',
        period_id: 'period_1',
        currency: 'EUR',
        net_amount: '1.5',
        line_items: [],
      }
      const fields = { org_id: 'org_1', seq, until_seq: UNTIL_FOREVER, superseded_by_id: null, body_bytes: 1 }
      engine.put(indexOf('p', generation, 'payouts'), `org_1:payout_${seq}`, seq, { ...fields, body })
      const place = { position, last: null, at: 1, time: 2, serve_from: 0 }
      engine.put('p-control', positionId(generation, 0), position, { kind: 'position', body: place })
    }
  }
  publish(10, 5)
  const said: string[] = []
  const compare = (b = 'g2') => {
    const context = {
      ...{ send: engine.send, prefix: 'p', out: () => undefined, say: (line: string) => void said.push(line) },
      ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined },
    }
    return diff({ a: 'g1', b, org: undefined, format: 'ndjson', html: undefined }, context)
  }
  return { engine, publish, said, compare }
}

test('records that are published while two generations are compared are no difference', async () => {
  const { engine, publish, said, compare } = world()
  engine.onRequest = ({ path, body }) => {
    if (path !== '/_mget' || !JSON.stringify(body).includes('position:g2')) return
    engine.onRequest = () => undefined
    publish(13, 12)
  }
  expect(await compare()).toBe(0)
  expect(said).toContain('g1 as of 10 records')
  expect(said).toContain('g2 as of 10 records')
})

test('a sandbox differs from a generation that follows another one also without other rules: a comparison says so', async () => {
  const { engine, said, compare } = world()
  const source = { topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
  const put = (prefix: string, body: { readonly generation: string; readonly [field: string]: unknown }): void =>
    engine.put(`${prefix}-control`, generationId(body.generation), 2, { kind: 'generation', body })
  const sandbox = { org: null, until: null, bounds: [10], rules: null }
  put('p-sandbox', { ...source, generation: 's1', sandbox })
  const place = { position: 10, last: null, at: 1, time: 2, serve_from: 0 }
  engine.put('p-sandbox-control', positionId('s1', 0), 1, { kind: 'position', body: place })
  const why =
    'g1 keeps parked what g0 parked, and a replay decides these records by its own rules: they, and records that refer to them, can differ in diff'
  await compare('sandbox:s1')
  expect(said).not.toContain(why)
  put('p', { ...source, generation: 'g1', follows: 'g0' })
  await compare()
  expect(said).not.toContain(why)
  await compare('sandbox:s1')
  expect(said.filter(line => line === why)).toHaveLength(1)
})

test('a generation that has nothing of a partition yet is not compared: nothing of it would differ', async () => {
  const { engine, compare } = world()
  const body = { position: 0, last: null, at: 0, time: 0, serve_from: 0 }
  engine.put('p-control', positionId('g2', 0), 1, { kind: 'position', body })
  await expect(compare()).rejects.toThrow('g2 has nothing of partition 0 yet: compare them later')
})
