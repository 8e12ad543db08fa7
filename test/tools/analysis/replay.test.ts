/** A replay before it makes a sandbox, and after it was suspended. */
import { expect, test } from 'vitest'
import { StopError } from '../../../core/runtime/index.ts'
import { generationId, LIVE_ID } from '../../../schemas/stored/documents.ts'
import { SANDBOX_NAMES_ID } from '../../../schemas/stored/sandboxes.ts'
import { type ReplaySteps, replay, sendAfterGaps, takeName } from '../../../tools/analysis/replay.ts'
import type { ReplaySource } from '../../../tools/analysis/replay-source.ts'
import { CommandError } from '../../../tools/failures.ts'
import { QUIET_MS } from '../../../tools/limits.ts'
import { sending } from '../../support/answering.ts'
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

test('a replay without a name never takes a name that a replay took before, nor one that somebody gave', async () => {
  const engine = new MemoryElasticsearch()
  let beside = (): void => undefined
  const request = sending(async asked => {
    if (asked.method === 'PUT') beside()
    const { status, body } = await engine.send(asked)
    return { status, body: status === 404 ? { found: false } : (body as object) }
  })
  let there: readonly string[] = []
  const take = (given?: string) => takeName(given, { request, prefix: 'p-sandbox', names: async () => there })
  expect(await take()).toBe('s1')
  // It was dropped: nothing else of it is left.
  expect(await take()).toBe('s2')
  expect([await take('s3'), await take('other')]).toEqual(['s3', 'other'])
  // It was dropped, too.
  expect(await take()).toBe('s4')
  beside = () => {
    beside = () => undefined
    engine.put('p-sandbox-control', SANDBOX_NAMES_ID, 9, { kind: 'sandbox-names', body: { highest: 5 } })
  }
  expect(await take()).toBe('s6')
  // A continued one leaves the highest number as it is.
  expect([await take('s2'), await take()]).toEqual(['s2', 's7'])
  // Of an earlier version, which noted no given name: a number below it may be of one that was dropped.
  there = ['s12', 'other', 's9', 's99999999999999999999']
  expect(await take()).toBe('s13')
})

test('a replay that was suspended checks its sandbox before its next request, and before each one until the check succeeds', async () => {
  let time = 0
  let isAnew = false
  const sent: string[] = []
  const send = sending(async ({ path }) => {
    sent.push(path)
    return { status: 200, body: {} }
  })
  const check = async (): Promise<void> => {
    sent.push('check')
    if (isAnew) throw new CommandError('made anew')
  }
  const checked = sendAfterGaps(check, { send, elapsed: () => time })
  await checked({ method: 'POST', path: '/first' })
  time += QUIET_MS - 1
  await checked({ method: 'POST', path: '/second' })
  time += QUIET_MS
  await checked({ method: 'POST', path: '/third' })
  time += QUIET_MS
  isAnew = true
  for (const path of ['/fourth', '/fifth']) await expect(checked({ method: 'POST', path })).rejects.toThrow('made anew')
  expect(sent).toEqual(['/first', '/second', 'check', '/third', 'check', 'check'])
})
