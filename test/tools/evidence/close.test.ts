/** Closes of an organization with one period and one payout, through readers that the test changes meanwhile. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createSigningKey, textOfSigningKey } from '../../../core/runtime/signing/note.ts'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import type { ListKind } from '../../../schemas/stored/documents.ts'
import { type CloseOptions, type CloseSteps, closePeriod } from '../../../tools/evidence/close.ts'
import type { ManifestSource } from '../../../tools/export/manifest.ts'
import { sending } from '../../support/answering.ts'
import { emptyCopy } from '../../support/growing-copies.ts'
import { answerIds, recordedIds } from '../../support/shard-answers.ts'
import { disk } from '../../support/watched-disk.ts'

vi.mock('node:fs/promises', async original =>
  (await import('../../support/watched-disk.ts')).watchDisk(await original()),
)

const ORG = 'org_a'
const identity = { generation: 'g1', topic: 'events', topic_id: 'id', cluster_id: 'c', partitions: 2, rules_version: 5 }
const indicesOfKeys = ['p-control', 'p-api-keys']
const keysIdentity = {
  ...{ ...identity, generation: 'api-keys', topic: 'keys', partitions: 1, rules_version: 1 },
  ...recordedIds(indicesOfKeys),
}

/** Where records of the organization are parked: its own partition is 1, and its last change there has offset 9. */
type Place = readonly [partition: number, offset: number]
const parkedHits = (parked: readonly Place[], body: unknown) => {
  const { query } = body as { query: { bool: { filter: readonly { term?: object }[] } } }
  const terms = query.bool.filter.flatMap(({ term = {} }) => Object.entries(term))
  return parked
    .map(([partition, offset]): Record<string, unknown> => {
      return { code: 'partition_mismatch', org_id: ORG, topic: 'events', partition, offset, at: 1 }
    })
    .filter(fields => terms.every(([name, value]) => fields[name] === value))
    .map(fields => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, [value]])))
    .map(fields => ({ fields, sort: [fields.offset] }))
}

/** A key by the offsets of its events. The position of the topic of API keys is 12. */
type KeyAt = { readonly id: string; readonly createdAt: number; readonly revokedAt: number | null }
const keyHits = (keys: readonly KeyAt[]) =>
  keys.map(({ id, createdAt, revokedAt }) => {
    const body = { created_seq: createdAt }
    return { _source: { key_id: id, org_id: ORG, permissions: ['read'], revoked: revokedAt !== null, body } }
  })

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

/** A shard of the events that cannot be compared, and shards of API keys whose ids Elasticsearch does not tell. */
type Hiding = { readonly source?: Partial<ManifestSource>; readonly hidden?: readonly string[] }

/** `after`: called when the records are read, before the end. */
const given = (
  after: (live: {
    events: object
    keys: object
    seq: number
    id: string
    source: ManifestSource
    positions: Record<string, object>
    hidden: readonly string[]
  }) => void = () => undefined,
  parked: readonly Place[] = [],
  keys: readonly KeyAt[] = [],
  more: Pick<CloseOptions, 'sign'> & Hiding = { sign: undefined },
) => {
  const positions: Record<string, object> = {
    'position:api-keys:0': { position: 12 },
    'position:g1:0': { position: 30 },
    'position:g1:1': { position: 20 },
    'position:g1:2': { position: 0 },
    'position:g1:3': { position: 0 },
    'position:g2:0': { position: 30 },
    'position:g2:1': { position: 20 },
  }
  const live = {
    positions,
    events: identity,
    keys: keysIdentity,
    seq: 9,
    id: 'made first',
    source: { topic: 'events', partition: 1, rules_version: 5, ...more.source },
    hidden: more.hidden ?? [],
  }
  const shards = { total: 1, successful: 1, skipped: 0, failed: 0 }
  const said: string[] = []
  const send = sending(async ({ path, body }) => {
    const ids = answerIds(path, indicesOfKeys, live.hidden)
    if (ids !== undefined) return ids
    if (!path.includes('_mget')) {
      const hits = path.includes('parked/_search')
        ? parkedHits(parked, body)
        : path.includes('api-keys/_search')
          ? keyHits(keys)
          : []
      const more = { hits: { total: { value: hits.length }, hits }, aggregations: { ahead: { doc_count: 0 } } }
      return { status: 200, body: { timed_out: false, _shards: shards, ...more } }
    }
    const bodies: Record<string, object> = {
      live: { generation: 'g1' },
      'generation:g1': live.events,
      'generation:api-keys': live.keys,
      ...live.positions,
      ...Object.fromEntries(keys.map(({ id, revokedAt }) => [`${ORG}:${id}`, { name: id, revoked_seq: revokedAt }])),
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
    say: (line: string) => void said.push(line),
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
  const others = { asOf: undefined, sign: more.sign, audit: undefined, json: false }
  const close = (keysUntil?: number, parkedUntil?: CloseOptions['parkedUntil']) =>
    closePeriod({ org: ORG, period: 'period_1', keysUntil, parkedUntil, out, ...others }, steps)
  const read = (name: string) => readFileSync(join(out, name), 'utf8')
  return { folder, out, said, read, close }
}

/** Closes with these parked records. */
const closedWith = async (parked: readonly Place[], parkedUntil?: CloseOptions['parkedUntil']) => {
  const { said, read, close } = given(undefined, parked)
  await close(undefined, parkedUntil)
  const positions = [...read('parked.ndjson').matchAll(/"position":"events:([^"]*)"/g)].map(([, position]) => position)
  const files = ['parked.ndjson', 'report.html', 'manifest.json'].map(read)
  return { positions, until: JSON.parse(read('manifest.json')).parked_positions, said: said.join('\n'), files }
}

/** A swap, and a rollback after the next page. */
const swapForOnePage = (live: { id: string }): void => {
  let reads = 0
  Object.defineProperty(live, 'id', { get: () => (reads++ === 0 ? 'made later' : 'made first') })
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
    // Also if it is not live any more at the end.
    ['another projection was made live', live => swapForOnePage(live)],
    ['another projection was made live', live => (live.source = { ...live.source, topic: 'events-2' })],
  ]
  for (const [expected, change] of changes) {
    const { folder, close } = given(change)
    await expect(close()).rejects.toThrow(expected)
    expect(readdirSync(folder)).toEqual([])
  }
  // Also if the same projection was read again from an earlier position: a revoked key was in force meanwhile.
  const setBack: [expected: string, name: string, position: object][] = [
    [
      'api-keys is at 3 in partition 0 of keys, and reads again up to 12',
      'api-keys:0',
      { position: 3, serve_from: 12 },
    ],
    ['api-keys was read again meanwhile', 'api-keys:0', { position: 12, serve_from: 12, taken_back: 1 }],
    ['g1 is at 2 in partition 0 of events, and reads again up to 30', 'g1:0', { position: 2, serve_from: 30 }],
    ['events was read again meanwhile', 'g1:1', { position: 20, taken_back: 1 }],
  ]
  for (const [expected, name, position] of setBack) {
    const { folder, close } = given(live => (live.positions[`position:${name}`] = position))
    await expect(close()).rejects.toThrow(expected)
    expect(readdirSync(folder)).toEqual([])
  }
  const spare = given(live => (live.events = { ...identity, generation: 'g2' }))
  expect(await spare.close()).toBe(0)
})

test('while a recorded shard cannot be compared, a close warns, and is not signed', async () => {
  const sign = join(emptyCopy(), 'key')
  writeFileSync(sign, textOfSigningKey(createSigningKey('example.org')))
  const unknown = { unknownShard: 'p-g1-payouts/0' }
  const hidden = ['p-api-keys/0']
  const cases: [shard: string, Hiding, after?: Parameters<typeof given>[0]][] = [
    [unknown.unknownShard, { source: unknown }],
    [unknown.unknownShard, {}, live => (live.source = { ...live.source, ...unknown })],
    // The keys of the organization are read from it.
    ['p-api-keys/0', { hidden }, live => (live.hidden = [])],
    ['p-api-keys/0', {}, live => (live.hidden = hidden)],
  ]
  for (const [shard, hiding, after] of cases) {
    const refusal = `the shard ${shard} cannot be compared with the recorded one, and documents may be missing`
    const signed = given(after, [], [], { sign, ...hiding })
    await expect(signed.close()).rejects.toThrow(new RegExp(`^${refusal}.* Nothing was signed$`))
    expect(readdirSync(signed.folder)).toEqual([])
    const unsigned = given(after, [], [], { sign: undefined, ...hiding })
    expect(await unsigned.close()).toBe(0)
    expect(unsigned.said.join('\n')).toContain(refusal)
  }
})

test('keys as of an offset that is not projected yet are refused, with the offset that is', async () => {
  const { folder, close } = given()
  await expect(close(13)).rejects.toThrow('--keys-until: keys is projected to 12: expected at most that, got 13')
  expect(readdirSync(folder)).toEqual([])
  expect(await close(12)).toBe(0)
})

test('a close has the keys up to the published position, and the version of the rules that decides about them', async () => {
  const published: KeyAt[] = [
    { id: 'key_1', createdAt: 3, revokedAt: 5 },
    { id: 'key_2', createdAt: 7, revokedAt: null },
  ]
  const closedOf = async (keys: readonly KeyAt[]) => {
    const { read, close } = given(undefined, [], keys)
    await close()
    return ['keys.ndjson', 'report.html', 'manifest.json'].map(read)
  }
  const files = await closedOf(published)
  expect(JSON.parse(files[2] ?? '')).toMatchObject({
    keys_position: { topic: 'keys', offset: 8 },
    // Until `upgrade-keys`, version 1 decides under every program.
    key_rules_version: 1,
  })
  // Before a record that is not published yet, an event may be missing, as the revocation of another key.
  const further: KeyAt[] = [
    { id: 'key_1', createdAt: 3, revokedAt: 5 },
    { id: 'key_2', createdAt: 7, revokedAt: 12 },
    { id: 'key_3', createdAt: 13, revokedAt: null },
  ]
  expect(await closedOf(further)).toEqual(files)
})

test('parked records of the organization are in its close, up to the published position of each partition', async () => {
  const { positions, until, said, files } = await closedWith([
    [1, 8],
    [0, 29],
    [1, 10],
    [0, 4],
    [0, 30],
  ])
  // That of offset 10 was parked after the last change, and may be of the period.
  expect(positions).toEqual(['0:4', '0:29', '1:8', '1:10'])
  expect(until).toEqual([
    { topic: 'events', partition: 0, offset: 30 },
    { topic: 'events', partition: 1, offset: 11 },
  ])
  expect(said).toContain('records parked after what is published, and in no file: 1')
  expect(files[1]).toContain('and those before <code>events:0:30 events:1:11</code>')

  const alone = await closedWith([[1, 8]])
  expect([alone.positions, alone.until]).toEqual([['1:8'], []])
  expect(alone.files[1]).toContain('and no further ones')
})

test('a close with the positions of parked records of an earlier one gives its bytes again', async () => {
  const [first, before] = [
    await closedWith([
      [0, 4],
      [1, 10],
    ]),
    await closedWith([]),
  ]
  const since: Place[] = [
    [0, 4],
    [1, 10],
    [0, 7],
    [1, 12],
  ]
  const again = await closedWith(since, first.until)
  expect(again.files).toEqual(first.files)
  expect(again.said).toContain('records parked after --parked-until, and in no file: 2')
  // The earlier one had none.
  expect((await closedWith(since, [])).files).toEqual(before.files)
  expect((await closedWith(since)).until).toEqual([
    { topic: 'events', partition: 0, offset: 8 },
    { topic: 'events', partition: 1, offset: 13 },
  ])
})

test('positions of parked records that nobody has projected, before the change, in no partition, or of another topic are refused', async () => {
  const refused: [expected: string, partition: number, offset: number, topic?: string][] = [
    ['events is projected to 30 in partition 0: expected at most that, got 31', 0, 31],
    ['partition 1 has the change before 10: got 3', 1, 3],
    ['expected a partition of events up to 1: got 2', 2, 0],
    // Its records have other offsets there since the move to more partitions.
    ['expected positions of events, got one of events-of-before: after commission grow', 0, 3, 'events-of-before'],
  ]
  for (const [expected, partition, offset, topic = 'events'] of refused) {
    const { folder, close } = given()
    await expect(close(undefined, [{ topic, partition, offset }])).rejects.toThrow(`--parked-until: ${expected}`)
    expect(readdirSync(folder)).toEqual([])
  }
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
