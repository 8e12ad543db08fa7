/** Closes of an organization with one period and one payout, through readers that the test changes meanwhile. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { type CloseSteps, closePeriod } from '../../../tools/evidence/close.ts'
import { sending } from '../../support/answering.ts'
import { disk } from '../../support/watched-disk.ts'

vi.mock('node:fs/promises', async original =>
  (await import('../../support/watched-disk.ts')).watchDisk(await original()),
)

const ORG = 'org_a'
const identity = { generation: 'g1', topic: 'events', topic_id: 'id', cluster_id: 'c', partitions: 2, rules_version: 5 }
const keysIdentity = { ...identity, generation: 'api-keys', topic: 'keys', partitions: 1 }

const pageOf = (kind: ListKind, bodies: readonly { readonly id: string; readonly name: string }[]) => {
  const hits = bodies.map((body, seq) => {
    const text = JSON.stringify(body)
    const fields = `"org_id":"${ORG}","first_seq":${seq},"seq":${seq},"hash":"h","body_bytes":${text.length}`
    const id = `"_index":"p-g1-${kind}","_id":"${ORG}:${body.id}:${seq}"`
    return `{${id},"_score":null,"_source":{${fields},"body":${text}},"sort":[${seq}]}`
  })
  const shards = '"_shards":{"total":1,"successful":1,"skipped":0,"failed":0}'
  const answer = `{"timed_out":false,${shards},"hits":{"max_score":null,"hits":[${hits.join()}]}}`
  return sliceSearch(Buffer.from(answer), [{ name: `p-g1-${kind}`, kind }], ORG)
}

/** `after`: called when the records are read, before the end. */
const given = (
  after: (live: { events: object; keys: object; seq: number; id: string; source: object }) => void = () => undefined,
) => {
  const live = {
    events: identity,
    keys: keysIdentity,
    seq: 9,
    id: 'made first',
    source: { topic: 'events', partition: 1, rules_version: 5 },
  }
  const shards = { total: 1, successful: 1, skipped: 0, failed: 0 }
  const send = sending(async ({ path, body }) => {
    if (!path.includes('_mget')) {
      return { status: 200, body: { timed_out: false, _shards: shards, hits: { total: { value: 0 }, hits: [] } } }
    }
    const bodies: Record<string, object> = {
      live: { generation: 'g1' },
      'generation:g1': live.events,
      'generation:api-keys': live.keys,
      'position:api-keys:0': { position: 12 },
      'position:g1:0': { position: 30 },
      'position:g1:1': { position: 20 },
    }
    const { docs } = body as { docs: { _index: string; _id: string }[] }
    const found = docs.map(one => {
      return { ...one, found: true, _source: { kind: one._id.replace(/:.*/, ''), body: bodies[one._id] } }
    })
    return { status: 200, body: { docs: found } }
  })
  const position = () => ({ generation: { name: 'g1', id: live.id } })
  const steps = {
    send,
    prefix: 'p',
    out: () => undefined,
    say: () => undefined,
    signal: new AbortController().signal,
    readTotals: async () => ({
      position: position(),
      totals: { totals: [] },
      last: { id: 'rep_1.1', seq: live.seq, at: 1 },
    }),
    sourceOf: async () => live.source,
    readList: async (_: string, kind: ListKind | 'changes') => {
      if (kind === 'payroll_files') after(live)
      const hits = kind === 'periods' ? pageOf(kind, [{ id: 'period_1', name: 'January' }]) : []
      return { position: position(), hits, hasMore: false }
    },
  } as unknown as CloseSteps
  const folder = mkdtempSync(join(tmpdir(), 'close-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const out = join(folder, 'march')
  const more = { asOf: undefined, sign: undefined, audit: undefined, json: false }
  const close = (keysUntil?: number) => closePeriod({ org: ORG, period: 'period_1', keysUntil, out, ...more }, steps)
  return { folder, out, close }
}

test('a close of another projection than at its beginning is refused, and nothing is left', async () => {
  const changes: [expected: string, Parameters<typeof given>[0]][] = [
    ['topic of events was events, and is events-2', live => (live.events = { ...identity, topic: 'events-2' })],
    ['topic_id of events was id, and is new', live => (live.events = { ...identity, topic_id: 'new' })],
    ['partitions of events was 2, and is 4', live => (live.events = { ...identity, partitions: 4 })],
    ['rules_version of events was 5, and is 6', live => (live.events = { ...identity, rules_version: 6 })],
    ['topic of api-keys was keys, and is keys-2', live => (live.keys = { ...keysIdentity, topic: 'keys-2' })],
    ['another projection was made live', live => (live.seq = 3)],
    // Also if it differs only in texts of people that were redacted.
    ['another projection was made live', live => (live.id = 'made later')],
    ['another projection was made live', live => (live.source = { ...live.source, topic: 'events-2' })],
  ]
  for (const [expected, change] of changes) {
    const { folder, close } = given(change)
    await expect(close()).rejects.toThrow(expected)
    expect(readdirSync(folder)).toEqual([])
  }
  const spare = given(live => (live.events = { ...identity, generation: 'g2' }))
  expect(await spare.close()).toBe(0)
})

test('keys as of an offset that is not projected yet are refused, with the offset that is', async () => {
  const { folder, close } = given()
  await expect(close(13)).rejects.toThrow('--keys-until: keys is projected to 12: expected at most that, got 13')
  expect(readdirSync(folder)).toEqual([])
  expect(await close(12)).toBe(0)
})

test('each file is on disk before the manifest is written, and the folder before and after it gets its name', async () => {
  const { folder, out, close } = given()
  disk.done = []
  await close()
  const done = disk.done.map(one => one.replace(/march\.[0-9a-f-]{36}\.new/, 'new').replace(`${folder}/`, ''))
  const written = done.indexOf('rename new/manifest.json')
  const named = done.indexOf('rename march')
  for (const name of readdirSync(out).filter(one => one !== 'manifest.json')) {
    expect([name, done.slice(0, written)]).toEqual([name, expect.arrayContaining([`sync new/${name}`])])
  }
  expect(done.slice(0, written)).toContain('sync new')
  expect(done.slice(written, named)).toContain('sync new')
  expect(done.slice(named)).toContain(`sync ${folder}`)
  expect(basename(out)).toBe('march')
})
