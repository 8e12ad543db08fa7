/** Rewinds over stored control documents: which positions are written, and when nothing is. */
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { NO_HEADERS } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import { copyOf } from '../../../core/store/generations/past-positions.ts'
import { indexOf, kinds } from '../../../schemas/stored/documents.ts'
import { adopt } from '../../../tools/generations/adopt.ts'
import { rewind } from '../../../tools/generations/rewind.ts'
import { upgradeKeys } from '../../../tools/generations/upgrade-keys.ts'
import { REWIND_MARGIN_MS } from '../../../tools/limits.ts'
import { definedIndices, indexAnswer, isRead, primariesAnswer, sending, withPipeline } from '../../support/answering.ts'
import { fetchedOf } from '../../support/record-batches.ts'

const START = Date.parse('2026-02-03T04:05:00Z')
const NOW = START + 3_600_000
const source = { topic: 't', cluster_id: 'c', partitions: 2, rules_version: 1 }
const namesOf = (generation: string): string[] =>
  generation === 'api-keys' ? ['p-api-keys', 'p-api-keys-parked'] : kinds.map(kind => indexOf('p', generation, kind))
const allDefined = definedIndices('p', ...['g1', 'g2', 'g3'].map(generation => ({ generation })))
const recorded = (generation: string) =>
  Object.fromEntries(['p-control', ...namesOf(generation)].map(name => [name, `old-${name}`]))
const positionOf = (position: number) => ({ position, last: null, at: 1, time: 2, serve_from: 0 })
const pastOf = (generation: string, time: number, ...positions: number[]) => ({
  ...{ time, clocks: 'all' },
  copy: copyOf({ indices: recorded(generation) }),
  partitions: positions.map(position => ({ position, last: { offset: position - 1, sha256: 'a' }, at: 9 })),
})

/** A topic that has only records of aborted transactions: no position has a last record. */
const abortedLog = (ends: readonly number[]): LogCluster => {
  type Asked = { topics: readonly { partitions: readonly { fetchOffset: string }[] }[] }
  const fetchOf = (end: number) => async (asked: Asked) => {
    const from = Number(asked.topics[0]?.partitions[0]?.fetchOffset)
    const aborted = { kind: 'aborted' as const, timestamp: 1, key: null, value: null, headers: NO_HEADERS }
    const entries = Array.from({ length: end - from }, (_, index) => ({ ...aborted, offset: from + index }))
    return {
      responses: [{ partitions: [{ lastStableOffset: `${end}`, messages: [{ fetched: fetchedOf(entries) }] }] }],
    }
  }
  return {
    onLeader: (partition: number, ask: (leader: object) => unknown) => ask({ fetch: fetchOf(ends[partition] ?? 0) }),
    disconnect: async () => undefined,
  } as unknown as LogCluster
}

/** Two generations and the API keys, all restored: no index has its recorded id. */
const given = (
  past: Readonly<Record<string, object>>,
  ends = [50, 50],
  hits: readonly { readonly _index: string }[] = [],
  definitions = allDefined,
  begun: Readonly<Record<string, string>> = {},
) => {
  const bodies = new Map<string, object>([
    ['live', { generation: 'g1', kept: ['g1', 'g2'] }],
    [
      'generation:api-keys',
      { ...source, topic: 'k', partitions: 1, generation: 'api-keys', indices: recorded('api-keys') },
    ],
    ['position:api-keys:0', positionOf(3)],
  ])
  for (const generation of ['g1', 'g2']) {
    bodies.set(`generation:${generation}`, { ...source, generation, indices: recorded(generation) })
    for (const partition of [0, 1]) bodies.set(`position:${generation}:${partition}`, positionOf(40))
  }
  for (const [id, body] of Object.entries(past)) bodies.set(id, body)
  const written: string[] = []
  const found = (_id: string) => {
    const body = bodies.get(_id)
    if (body === undefined) return { _id, found: false }
    const [kind] = _id.split(':')
    return { _id, found: true, _version: 1, _source: { kind, body }, _seq_no: 1, _primary_term: 1 }
  }
  const send = sending(async request => {
    const { method, path, body, bulk } = request
    const [, first = '', operation, id = ''] = path.split('/').map(decodeURIComponent)
    if (first === '_mget') {
      return { status: 200, body: { docs: (body as { docs: { _id: string }[] }).docs.map(({ _id }) => found(_id)) } }
    }
    // No projector has noted what it has written.
    if (isRead(bulk)) return primariesAnswer(request, () => undefined)
    if (first === '_bulk') {
      const ids = [...String(bulk).matchAll(/"delete":\{[^}]*"_id":"(past:[^"]+)"/g)].map(([, one = '']) => one)
      for (const one of ids) bodies.delete(one)
      return { status: 200, body: { items: ids.map(_id => ({ delete: { _index: 'p-control', _id, status: 200 } })) } }
    }
    // Unless given otherwise, no document is at or after a position.
    if (operation === '_refresh') return { status: 200, body: { _shards: { failed: 0 } } }
    if (operation === '_pit') return { status: 200, body: { id: first } }
    if (operation === '_recovery') {
      // A copy came from its primary.
      const copy = { id: 0, type: 'EMPTY_STORE', primary: false }
      const shardsOf = (name: string) => [copy, { id: 0, type: begun[name] ?? 'SNAPSHOT', primary: true }]
      return { status: 200, body: Object.fromEntries(first.split(',').map(name => [name, { shards: shardsOf(name) }])) }
    }
    if (first === '_search') {
      const { id: pit } = (body as { pit: { id: string } }).pit
      const inIt = hits.filter(({ _index }) => pit.split(',').includes(_index))
      return { status: 200, body: { pit_id: pit, timed_out: false, _shards: { failed: 0 }, hits: { hits: inIt } } }
    }
    if (first === '_pit') return { status: 200, body: {} }
    if (operation === '_settings') {
      const names = ['p-control', ...['api-keys', 'g1', 'g2', 'g3'].flatMap(namesOf)]
      const settings = { settings: { index: { uuid: 'restored' } } }
      return { status: 200, body: Object.fromEntries(names.map(name => [name, settings])) }
    }
    if (method === 'GET' && operation === undefined) return indexAnswer(first, definitions)
    if (method === 'GET') return { status: bodies.has(id) ? 200 : 404, body: found(id) }
    written.push(id)
    bodies.set(id, (body as { body: object }).body)
    return { status: 200, body: {} }
  })
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeGroups: async () => ({ groups: [{ members: [] }] }),
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async ({ topics: [topic] }: { topics: string[] }) => ({
      topics: [{ partitions: topic === 'k' ? [{}] : [{}, {}] }],
    }),
    fetchTopicOffsets: async (topic: string) =>
      (topic === 'k' ? [7] : ends).map((end, partition) => ({ partition, offset: `${end}`, high: `${end}`, low: '0' })),
  }
  const [out, said]: [string[], string[]] = [[], []]
  const context = {
    send,
    prefix: 'p',
    out: (text: string | Buffer) => void out.push(String(text)),
    say: (line: string) => void said.push(line),
    kafka: { admin: () => admin } as unknown as Kafka,
    topics: { events: 't', 'api-keys': 'k' },
    sleep: async () => undefined,
    now: () => NOW,
    elapsed: () => 0,
    openCluster: async (topic: string) => abortedLog(topic === 'k' ? [7] : ends),
  }
  return {
    bodies,
    written,
    out,
    said,
    rewind: (snapshotStart = START) => rewind({ snapshotStart, json: true }, context, 'group'),
    adopt: () => adopt({ json: true }, context, 'group'),
    upgradeKeys: (from: number) => upgradeKeys({ from, json: true }, context, 'group'),
  }
}

const old = START - REWIND_MARGIN_MS

test('positions go back to the newest kept ones from a minute before the snapshot, and readers wait for the end of the topic', async () => {
  const { bodies, out, rewind } = given({
    'past:g1:1': pastOf('g1', old - 60_000, 10, 11),
    'past:g1:2': pastOf('g1', old, 20, 21),
    'past:g1:3': pastOf('g1', old + 1, 30, 31),
    'past:g2:1': pastOf('g2', old, 5, 6),
  })
  expect(await rewind()).toBe(0)
  expect(bodies.get('position:g1:1')).toEqual({
    position: 21,
    last: { offset: 20, sha256: 'a' },
    at: 9,
    time: 0,
    serve_from: 50,
    taken_back: 1,
  })
  expect(bodies.get('generation:g1')).toMatchObject({ indices: { 'p-g1-reps': 'restored' } })
  expect(JSON.parse(out.join(''))).toEqual({
    rewound: [
      { generation: 'api-keys', positions: null },
      { generation: 'g1', positions: [20, 21] },
      { generation: 'g2', positions: [5, 6] },
    ],
  })
})

test('API keys are read again from the first record: a revoked key is never accepted', async () => {
  const { bodies, rewind } = given({ 'past:g1:2': pastOf('g1', old, 20, 21) })
  await rewind()
  expect(bodies.get('position:api-keys:0')).toMatchObject({ position: 0, last: null, serve_from: 7 })
})

test('readers that saw a later position than the topic has now wait for that position, and each run says so', async () => {
  const past = pastOf('g1', old, 20, 21)
  const noRecords = { ...past, partitions: past.partitions.map(position => ({ ...position, last: null })) }
  const { bodies, said, rewind, adopt } = given({ 'past:g1:2': noRecords }, [30, 50])
  const waits = () => said.splice(0).filter(line => line.includes('503'))
  await rewind()
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 20, serve_from: 40 })
  expect(said.join()).toContain('is not what g1 has read to offset 40: all documents from offset 20 on are removed')
  const wait = expect.stringContaining('partition 0 of t answers 503 until offset 40: its topic ends at 30')
  expect(waits()).toEqual([wait])
  // It takes over the spare generation; then nothing is replaced.
  await adopt()
  expect(waits()).toEqual([wait])
  await adopt()
  expect(said.join()).toContain('no index was replaced')
  expect(waits()).toEqual([wait])
})

test('readers wait for the position that they saw also after adopt was interrupted and is repeated', async () => {
  const setBack = { ...positionOf(0), serve_from: 40 }
  const { bodies, adopt } = given({ 'position:g1:0': setBack, 'position:api-keys:0': setBack }, [30, 50])
  await adopt()
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 0, serve_from: 40 })
  // Each start of a projector sets that of the keys to the end of their topic.
  expect(bodies.get('position:api-keys:0')).toMatchObject({ position: 0, serve_from: 7 })
})

test('without past positions that are old enough nothing is changed, and adopt is named', async () => {
  const { written, rewind, adopt, bodies } = given({ 'past:g1:3': pastOf('g1', old + 1, 30, 31) })
  await expect(rewind()).rejects.toThrow(
    'no positions of g1 are kept from a minute before 2026-02-03T04:05:00.000Z or earlier; to read it again from the first record: npx commission projection adopt',
  )
  expect(written).toEqual([])
  await adopt()
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 0, last: null, at: 0 })
})

test('past positions of other indices than the recorded ones are not taken', async () => {
  const { written, rewind } = given({ 'past:g1:2': { ...pastOf('g1', old, 20, 21), copy: 'another' } })
  await expect(rewind()).rejects.toThrow('no positions of g1 are kept')
  expect(written).toEqual([])
})

test('a spare generation without past positions is skipped: adopt takes it over afterwards', async () => {
  const { said, out, rewind, adopt, bodies } = given({ 'past:g1:2': pastOf('g1', old, 20, 21) })
  await rewind()
  expect(said.join()).toContain('g2 is skipped: no positions of g2 are kept')
  out.length = 0
  await adopt()
  expect(JSON.parse(out.join(''))).toEqual({ adopted: ['g2'] })
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 20 })
})

test('a spare generation of another cluster is skipped and named: adopt takes over the live one, and can be repeated', async () => {
  const { said, out, adopt, bodies } = given({
    'generation:g2': { ...source, cluster_id: 'before', generation: 'g2', indices: recorded('g2') },
  })
  await adopt()
  expect(JSON.parse(out.join(''))).toEqual({ adopted: ['api-keys', 'g1'] })
  expect(said.join()).toMatch(/g2 is skipped: .*cluster_id: expected before, got c/)
  expect(bodies.get('position:g2:0')).toEqual(positionOf(40))
  out.length = 0
  await adopt()
  expect(JSON.parse(out.join(''))).toEqual({ adopted: [] })
})

test('a spare generation with an ingest pipeline on an index is skipped and named', async () => {
  const { said, out, adopt, bodies } = given({}, undefined, undefined, withPipeline('p-g2-payouts', allDefined))
  await adopt()
  expect(JSON.parse(out.join(''))).toEqual({ adopted: ['api-keys', 'g1'] })
  expect(said.join()).toMatch(/g2 is skipped: .*p-g2-payouts: index.final_pipeline: expected none, got trim/)
  expect(bodies.get('position:g2:0')).toEqual(positionOf(40))
})

test('a spare generation with past positions after the end of the topic is skipped and named', async () => {
  const past = {
    ...{ 'past:g1:2': pastOf('g1', old, 20, 21), 'past:g2:2': pastOf('g2', old, 20, 51) },
    'position:g2:1': positionOf(51),
  }
  const { said, out, rewind } = given(past)
  await rewind()
  expect(JSON.parse(out.join('')).rewound).toMatchObject([{ generation: 'api-keys' }, { generation: 'g1' }])
  expect(said.join()).toContain('g2 is skipped: partition 1 of t ends at 50, before 51 of g2')
})

const pastIn = (bodies: ReadonlyMap<string, object>): string[] =>
  [...bodies.keys()].filter(id => id.startsWith('past:'))

test('after adopt no rewind finds positions from before it, and after rewind none that are later than its own', async () => {
  const past = {
    'past:g1:1': pastOf('g1', old - 60_000, 10, 11),
    'past:g1:2': pastOf('g1', old, 20, 21),
    'past:g1:3': pastOf('g1', old + 1, 30, 31),
  }
  const rewound = given(past)
  await rewound.rewind()
  expect(pastIn(rewound.bodies)).toEqual(['past:g1:1', 'past:g1:2'])
  const adopted = given(past)
  await adopted.adopt()
  expect(pastIn(adopted.bodies)).toEqual([])
})

test('if the topic of keys has lost records, the command says that their revocations are to be published again', async () => {
  const { said, adopt } = given({ 'position:api-keys:0': positionOf(9) })
  await adopt()
  const what = 'partition 0 of k is not what api-keys has read to offset 9: all documents from offset 0 on are removed'
  expect(said).toContain(
    `${what}. Keys that only lost records had revoked are valid again: publish their revocations again`,
  )
})

test('a shard that was restored empty, because the snapshot lacks it, is named before anything changes, and adopt is right', async () => {
  const past = { 'past:g1:2': pastOf('g1', old, 20, 21), 'past:g2:2': pastOf('g2', old, 20, 21) }
  const begunIn = (...begun: string[]) =>
    given(past, undefined, [], allDefined, Object.fromEntries(begun.map(name => [name, 'EMPTY_STORE'])))
  const { written, rewind, adopt, bodies } = begunIn('p-g1-chains')
  await expect(rewind()).rejects.toThrow(
    'the shard p-g1-chains/0 began empty: the snapshot lacks it (its state is PARTIAL), or the index was made anew; to read all again: npx commission projection adopt',
  )
  expect(written).toEqual([])
  await adopt()
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 0 })
  const spare = begunIn('p-g2-reps')
  expect(await spare.rewind()).toBe(0)
  expect(spare.said.join()).toContain('g2 is skipped: the shard p-g2-reps/0 began empty')
  // They are read again from the first record.
  expect(await begunIn('p-api-keys').rewind()).toBe(0)
})

test('past positions above a stored one are refused: documents before them may be gone', async () => {
  const { written, rewind } = given({ 'past:g1:2': pastOf('g1', old, 20, 21), 'position:g1:1': positionOf(20) })
  await expect(rewind()).rejects.toThrow(
    'partition 1 of g1 is read again from offset 20 on already: documents before 21 may be gone; to read all again: npx commission projection adopt',
  )
  expect(written).toEqual([])
  const same = given({ 'past:g1:2': pastOf('g1', old, 20, 21), 'position:g1:1': positionOf(21) })
  expect(await same.rewind()).toBe(0)
})

test('a generation is taken over before the live one that follows it, whose projectors read what it parked', async () => {
  const { bodies, written, adopt } = given({
    live: { generation: 'g2', kept: ['g1', 'g2', 'g3'] },
    'generation:g2': { ...source, generation: 'g2', indices: recorded('g2'), follows: 'g1' },
    'generation:g3': { ...source, generation: 'g3', indices: recorded('g3'), follows: 'g2' },
    ...{ 'position:g3:0': positionOf(40), 'position:g3:1': positionOf(40) },
  })
  await adopt()
  expect(written.filter(id => id.startsWith('generation:'))).toEqual(
    ['api-keys', 'g1', 'g2', 'g3'].map(name => `generation:${name}`),
  )
  expect(bodies.get('position:g1:0')).toMatchObject({ position: 0 })
})

test('a copy from before upgrade-keys is named with the command, also when it comes too late', async () => {
  const keys = { ...source, topic: 'k', partitions: 1, generation: 'api-keys', indices: recorded('api-keys') }
  const before = given({})
  await before.adopt()
  expect(before.said.join()).toContain('before you start projectors, run npx commission projection upgrade-keys --from')
  const after = given({ 'generation:api-keys': { ...keys, rules_version: 2, first_rules_until: 5 } })
  await after.adopt()
  expect(after.said.join()).not.toContain('upgrade-keys')
  const late = given({})
  await expect(late.upgradeKeys(2)).rejects.toThrow(
    'expected an offset from 3 (the position) to 7 (the end), got 2. If projectors have started since a restore: restore again',
  )
})

/** The live generation has other rules than the one that it followed, which was dropped. */
const followed = (alone: readonly number[]) => ({
  live: { generation: 'g1', kept: ['g1', 'g2'], alone: { g1: alone } },
  'generation:g1': { ...source, generation: 'g1', indices: recorded('g1'), follows: 'g0' },
})

test('rewind goes back to positions at which a generation decided alone, after the one that it followed was dropped', async () => {
  const { bodies, said, rewind } = given({ ...followed([20, 20]), 'past:g1:2': pastOf('g1', old, 20, 21) })
  expect(await rewind()).toBe(0)
  expect(bodies.get('position:g1:1')).toMatchObject({ position: 21 })
  expect(said.join()).toContain('g0, which g1 followed, is gone: no record that it decided is read again')
})

test('what a dropped generation parked is never decided anew: rewind and adopt refuse, and name the partition', async () => {
  const past = { 'past:g1:2': pastOf('g1', old, 20, 21) }
  const early = given({ ...followed([20, 22]), ...past })
  await expect(early.rewind()).rejects.toThrow(
    'g1 took over what g0 parked, and g0 is gone: partition 1 would be read again from offset 21, and g0 decided up to 22',
  )
  const all = given({ ...followed([20, 20]), ...past })
  await expect(all.adopt()).rejects.toThrow('partition 0 would be read again from offset 0, and g0 decided up to 20')
  const { live, ...unknown } = followed([])
  const never = given({ ...unknown, ...past })
  await expect(never.rewind()).rejects.toThrow('g0 decided up to its end')
  expect([early.written, all.written, never.written]).toEqual([[], [], []])
})

test('a topic that ends before the past positions, and a snapshot of the future, are refused before anything changes', async () => {
  const past = { 'past:g1:2': pastOf('g1', old, 20, 21) }
  const short = given(past, [50, 20])
  await expect(short.rewind()).rejects.toThrow('partition 1 of t ends at 20, before 21 of g1')
  const early = given(past)
  await expect(early.rewind(NOW + 1)).rejects.toThrow('expected a time that is over')
  expect([...short.written, ...early.written]).toEqual([])
})

test('without a record that the log has, all documents are left over while a partition is read again', async () => {
  for (const [version, isLeft] of [
    [19, false],
    [20, true],
  ] as const) {
    const reading = { ...positionOf(20), serve_from: 45 }
    const past = { 'position:g1:0': reading, 'position:g1:1': reading }
    const hit = { _index: 'p-g1-payouts', _id: 'org_1:payout_1', _version: version, fields: { org_id: ['org_1'] } }
    const { said, adopt } = given(past, undefined, [hit])
    // The stand-in takes no deletion.
    await adopt().catch(() => undefined)
    expect(said.join().includes('g1 has documents at or after its positions')).toBe(isLeft)
  }
})
