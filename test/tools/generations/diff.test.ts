/** Two generations that grow are compared as of one moment. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { generationId, indexOf, positionId } from '../../../schemas/stored/documents.ts'
import { CommandError } from '../../../tools/failures.ts'
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
  const compare = (b = 'g2', html?: string) => {
    const context = {
      ...{ send: engine.send, prefix: 'p', out: () => undefined, say: (line: string) => void said.push(line) },
      ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined },
    }
    return diff({ a: 'g1', b, org: undefined, format: 'ndjson', html }, context)
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

/** Called once, when the first records are read. */
const onFirstRecords = (engine: MemoryElasticsearch, run: () => void): void => {
  engine.onRequest = ({ path }) => {
    if (!path.endsWith('/_pit')) return
    engine.onRequest = () => undefined
    run()
  }
}

test('nothing is said of a sandbox or generation that another one replaced while it was compared', async () => {
  const source = { topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
  const sandbox = { org: null, until: null, bounds: [10], rules: null }
  const place = { position: 10, last: null, at: 1, time: 2, serve_from: 0 }
  const compared = async (b: string, meanwhile: (engine: MemoryElasticsearch) => void) => {
    const { engine, said, compare } = world()
    const identity = { ...source, generation: 's1', sandbox }
    engine.put('p-sandbox-control', generationId('s1'), 1, { kind: 'generation', body: identity })
    engine.put('p-sandbox-control', positionId('s1', 0), 1, { kind: 'position', body: place })
    onFirstRecords(engine, () => meanwhile(engine))
    const folder = mkdtempSync(join(tmpdir(), 'diff-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const why = await compare(b, join(folder, 'page.html')).catch((error: unknown) => error)
    expect(readdirSync(folder)).toEqual([])
    expect(said.filter(line => line.includes('differ'))).toEqual([])
    return why
  }
  const anew = { ...source, generation: 's1', sandbox, indices: { 'p-sandbox-s1-payouts': 'another' } }
  const replaced = await compared('sandbox:s1', engine =>
    engine.put('p-sandbox-control', generationId('s1'), 2, { kind: 'generation', body: anew }),
  )
  expect(replaced).toEqual(new CommandError('sandbox:s1 was made anew meanwhile: run the same again'))
  const readAgain = await compared('g2', engine =>
    engine.put('p-control', positionId('g2', 0), 11, { kind: 'position', body: { ...place, taken_back: 1 } }),
  )
  expect(readAgain).toEqual(
    new CommandError('g2 was made anew, or read again after adopt or rewind, meanwhile: run the same again'),
  )
})
