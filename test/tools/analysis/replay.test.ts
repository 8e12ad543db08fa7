/** The first lines of a replay, before it makes a sandbox. */
import { expect, test } from 'vitest'
import { StopError } from '../../../core/runtime/index.ts'
import { generationId, LIVE_ID } from '../../../schemas/stored/documents.ts'
import { type ReplaySteps, replay } from '../../../tools/analysis/replay.ts'
import type { ReplaySource } from '../../../tools/analysis/replay-source.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const source = { topic: 't', cluster_id: 'c', partitions: 1 }

/** The lines of a replay that ends with its first request for a sandbox. */
const saidBeforeSandbox = async (live: object, onRequest: () => void = () => undefined): Promise<readonly string[]> => {
  const engine = new MemoryElasticsearch()
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: { generation: 'g2' } })
  const body = { ...source, generation: 'g2', rules_version: 4, ...live }
  engine.put('p-control', generationId('g2'), 1, { kind: 'generation', body })
  engine.onRequest = ({ path }) => {
    if (!path.startsWith('/p-control/')) throw new Error('the sandbox is next')
    onRequest()
  }
  const said: string[] = []
  const steps = {
    ...{ send: engine.send, prefix: 'p', out: () => undefined, say: (line: string) => void said.push(line) },
    ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined, signal: new AbortController().signal },
  } as unknown as ReplaySteps
  const log = { identity: source, ends: [], firstLater: new Map(), groupId: 'g' } as unknown as ReplaySource
  const options = { name: 's1', until: undefined, org: undefined, rules: undefined, fromArchive: undefined }
  const replayed = replay({ ...options, maxRate: 1, json: false }, steps, async () => log)
  await expect(replayed).rejects.toThrow('the sandbox is next')
  return said
}

test('a replay says if it decides records that the live generation keeps parked', async () => {
  expect(await saidBeforeSandbox({ follows: 'g1' })).toEqual([
    'g2 keeps parked what g1 parked, and a replay decides these records by its own rules: they, and records that refer to them, can differ in diff',
  ])
  expect(await saidBeforeSandbox({})).toEqual([])
  expect(await saidBeforeSandbox({ follows: 'g1', topic: 'another' })).toEqual([])
})

test('a replay without a right to read the live generation goes on', async () => {
  const refuse = (): void => {
    throw new StopError('access_refused', 'Elasticsearch answers 403')
  }
  expect(await saidBeforeSandbox({ follows: 'g1' }, refuse)).toEqual([])
})
