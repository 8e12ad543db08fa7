/** `adopt` on documents in memory, while a projector starts and stops beside it. */
import type { Kafka } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { recordHash } from '../../../core/ledger/event/decode.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import type { Send } from '../../../core/store/elasticsearch/client.ts'
import { copyOf } from '../../../core/store/generations/past-positions.ts'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import {
  API_KEYS_GENERATION,
  balanceId,
  generationId,
  indexOf,
  kinds,
  LIVE_ID,
  pastPositionsId,
  positionId,
  writtenId,
} from '../../../schemas/stored/documents.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { adopt } from '../../../tools/generations/adopt.ts'
import { refuseBeforeGrown } from '../../../tools/generations/compare-positions.ts'
import { readAll } from '../../../tools/generations/generations.ts'
import { record } from '../../projector/records.ts'
import { definedIndices, proxied, withPipeline } from '../../support/answering.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'
import { fetchedOf } from '../../support/record-batches.ts'

const indicesOf = {
  g1: ['p-control', ...kinds.map(kind => indexOf('p', 'g1', kind))],
  [API_KEYS_GENERATION]: ['p-control', 'p-api-keys', 'p-api-keys-parked'],
}
const routed = layoutOf('p', { generation: 'g1', topic: 't', layout: 2 })
const uuidOf = (index: string): string => `uuid-of-${index}`

/** A projector was killed between writing payout 12 and publishing it; no index was replaced. */
const world = (meanwhile: (engine: MemoryElasticsearch) => void, serveFrom = 0, end = 100) => {
  const engine = new MemoryElasticsearch()
  engine.definitions = definedIndices('p', { generation: 'g1' })
  putPayout(engine, 5)
  putPayout(engine, 12)
  const control = (id: string, kind: string, body: object): void =>
    engine.put('p-control', id, 1, { kind, body } as Record<string, unknown>)
  control(LIVE_ID, 'live', { generation: 'g1', kept: ['g1'] })
  for (const [generation, indices] of Object.entries(indicesOf)) {
    const source = { topic: generation === 'g1' ? 't' : 'k', cluster_id: 'c', partitions: 1, rules_version: 1 }
    const recorded = Object.fromEntries(indices.map(name => [name, uuidOf(name)]))
    control(generationId(generation), 'generation', { ...source, generation, indices: recorded })
  }
  putPosition(engine, 'g1', 10, serveFrom)
  putPosition(engine, API_KEYS_GENERATION, 0)
  const all = [...new Set([...Object.values(indicesOf).flat(), ...routed.indices])]
  const settings = Object.fromEntries(
    all.map(name => [name, { settings: { index: { uuid: uuidOf(name), number_of_shards: '1' } } }]),
  )
  const shards = new Map<string, string>()
  const proxy = { isReloading: false }
  const send = ((request, signal) => {
    if (request.path.includes('_settings')) return Promise.resolve({ status: 200, body: settings })
    if (request.path.includes('_stats')) {
      if (proxy.isReloading) return Promise.resolve().then(() => proxied(request.isOptional ?? false))
      return Promise.resolve({ status: 200, body: { indices: statsOf(shards) } })
    }
    return engine.send(request, signal)
  }) as Send
  const admin = {
    ...{ connect: async () => undefined, disconnect: async () => undefined },
    describeGroups: async () => ({ groups: [{ members: [] }] }),
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, offset: `${end}`, high: `${end}`, low: '0' }],
  }
  let sleeps = 0
  const context = {
    ...{ send, prefix: 'p', out: () => undefined, say: () => undefined, now: () => 1e12, elapsed: () => engine.time },
    kafka: { admin: () => admin } as unknown as Kafka,
    topics: { events: 't', 'api-keys': 'k' },
    sleep: async (milliseconds: number) => {
      engine.time += milliseconds
      if (++sleeps === 2) meanwhile(engine)
    },
    openCluster: async () => cluster,
  }
  return { engine, shards, proxy, context, adopt: () => adopt({ json: false }, context, 'group') }
}

const statsOf = (shards: ReadonlyMap<string, string>): object =>
  Object.fromEntries(
    [...shards].map(([index, history_uuid]) => [
      index,
      { shards: { 0: [{ routing: { primary: true }, commit: { user_data: { history_uuid } } }] } },
    ]),
  )

const putPayout = (engine: MemoryElasticsearch, seq: number): void => {
  const body = { id: `payout_${seq}` }
  const fields = { org_id: 'org_1', seq, until_seq: UNTIL_FOREVER, body_bytes: JSON.stringify(body).length }
  engine.put('p-g1-payouts', `org_1:payout_${seq}`, seq, { ...fields, body })
}
const putPosition = (engine: MemoryElasticsearch, generation: string, position: number, serve_from = 0): void => {
  const body = { position, last: null, at: 1, time: 2, serve_from }
  engine.put('p-control', positionId(generation, 0), 1, { kind: 'position', body })
}
/** The topic has one record, at offset 12, after those of an aborted transaction. */
const stored = { ...record({ offset: 12 }), kind: 'record' as const }
const aborted = Array.from({ length: 12 }, (_, offset) => ({ ...stored, kind: 'aborted' as const, offset }))
const fetched = { lastStableOffset: '100', messages: [{ offset: '0', fetched: fetchedOf([...aborted, stored]) }] }
const cluster = {
  onLeader: async () => ({ responses: [{ partitions: [fetched] }] }),
  disconnect: async () => undefined,
} as unknown as LogCluster

const payoutsOf = (engine: MemoryElasticsearch): string[] => Object.keys(engine.all('p-g1-payouts'))

test('adopt removes documents after the position that nobody publishes', async () => {
  const { engine, adopt } = world(() => undefined)
  expect(await adopt()).toBe(0)
  expect(payoutsOf(engine)).toEqual(['org_1:payout_5'])
})

test('adopt removes nothing that a projector publishes while it waits, and says to run it again', async () => {
  const { engine, adopt } = world(beside => {
    putPayout(beside, 13)
    putPosition(beside, 'g1', 14)
  })
  await expect(adopt()).rejects.toThrow('positions of g1 were changed meanwhile: stop all projectors, and run the same')
  expect(payoutsOf(engine)).toEqual(['org_1:payout_12', 'org_1:payout_13', 'org_1:payout_5'])
})

test('adopt says after its wait what goes: documents of a log that is read again stay if it has the last written one', async () => {
  const written = { kind: 'written', body: { offset: stored.offset, sha256: recordHash(stored) } }
  const beside = (engine: MemoryElasticsearch) => engine.put('p-control', writtenId('g1', 0), 1, written)
  const { engine, adopt } = world(beside, 20)
  expect(await adopt()).toBe(0)
  expect(payoutsOf(engine)).toEqual(['org_1:payout_12', 'org_1:payout_5'])
})

test.each(['p-control', 'p-api-keys', 'p-g1-payouts'])(
  'adopt is refused before any change while an ingest pipeline is set on %s',
  async name => {
    const { engine, adopt } = world(() => undefined)
    engine.definitions = withPipeline(name, engine.definitions)
    const before = engine.all('p-control')
    await expect(adopt()).rejects.toMatchObject({ code: 'index_unsuitable', message: expect.stringContaining(name) })
    expect(engine.all('p-control')).toEqual(before)
    expect(payoutsOf(engine)).toEqual(['org_1:payout_12', 'org_1:payout_5'])
  },
)

/** Changes the document of the generation. */
const change = (engine: MemoryElasticsearch, fields: object): void => {
  const id = generationId('g1')
  const body = { generation: 'g1', ...(engine.all('p-control')[id]?.source.body as object), ...fields }
  engine.put('p-control', id, 2, { kind: 'generation', body })
  engine.definitions = definedIndices('p', body)
}

const idsOf = (generation: keyof typeof indicesOf) =>
  Object.fromEntries(indicesOf[generation].map(name => [name, uuidOf(name)]))

/** Runs adopt again and again: each time the first run is killed at a later request. */
const untilNothingKills = async (
  create: () => ReturnType<typeof world>,
  check: (engine: MemoryElasticsearch, killed: string, isOver: boolean) => void,
): Promise<void> => {
  for (let endsAt = 1, hasEnded = false; !hasEnded; endsAt++) {
    const { engine, adopt } = create()
    let count = 0
    engine.onRequest = () => {
      if (++count >= endsAt) throw new Error('killed')
    }
    hasEnded = await adopt().then(
      () => true,
      () => false,
    )
    engine.onRequest = () => undefined
    check(engine, `killed at request ${endsAt}`, false)
    if (!hasEnded) await adopt()
    check(engine, `killed at request ${endsAt}`, true)
  }
}

test('after a topic lost its last records, readers wait for exactly the position that they saw, wherever a run ended', async () => {
  const create = () => {
    const created = world(() => undefined, 0, 8)
    change(created.engine, { indices: { 'p-control': 'before' } })
    return created
  }
  await untilNothingKills(create, (engine, killed, isOver) => {
    if (!isOver) return
    const position = engine.all('p-control')[positionId('g1', 0)]?.source.body
    expect(position, killed).toMatchObject({ position: 0, serve_from: 10 })
    expect(position).not.toHaveProperty('removing')
    expect(payoutsOf(engine)).toEqual([])
  })
})

test('an adopt that is refused has removed nothing, and leaves past positions to rewind', async () => {
  const id = pastPositionsId('g1', 1)
  const { engine, adopt } = world(beside => {
    putPayout(beside, 13)
    putPosition(beside, 'g1', 14)
  })
  change(engine, { indices: { 'p-control': 'before' } })
  const body = { time: 1, copy: copyOf({ indices: { 'p-control': 'before' } }), partitions: [{ position: 7 }] }
  engine.put('p-control', id, 1, { kind: 'past', body })
  await expect(adopt()).rejects.toThrow('positions of g1 were changed meanwhile')
  expect([payoutsOf(engine).length, id in engine.all('p-control')]).toEqual([3, true])
})

test('once documents before the position are gone, no rewind finds past positions after them, wherever adopt ended', async () => {
  const id = pastPositionsId('g1', 1)
  const create = () => {
    const created = world(() => undefined, 0, 8)
    change(created.engine, { indices: { 'p-control': 'before' } })
    const body = { time: 1, copy: copyOf({ indices: { 'p-control': 'before' } }), partitions: [{ position: 7 }] }
    created.engine.put('p-control', id, 1, { kind: 'past', body })
    return created
  }
  await untilNothingKills(create, (engine, killed, isOver) => {
    const isKept = id in engine.all('p-control')
    expect(isKept && (isOver || !payoutsOf(engine).includes('org_1:payout_5')), killed).toBe(false)
  })
})

test('adopt removes all that was counted or kept while a shard lacked documents, wherever a run ended', async () => {
  const [balances, past] = [routed.indexOf('balances'), pastPositionsId('g1', 1)]
  const create = () => {
    const created = world(() => undefined)
    const indices = Object.fromEntries(['p-control', ...routed.indices].map(name => [name, uuidOf(name)]))
    change(created.engine, { layout: 2, indices, lost: `${routed.indexOf('payouts')}/0` })
    created.engine.put(balances, balanceId('org_1', 1_000), 7, { org_id: 'org_1', seq: 7, sequence: 1_000, body: {} })
    const body = { time: 1, copy: copyOf({ indices }), partitions: [{ position: 8 }] }
    created.engine.put('p-control', past, 1, { kind: 'past', body })
    return created
  }
  await untilNothingKills(create, (engine, killed, isOver) => {
    const control = engine.all('p-control')
    const isTakenOver = !JSON.stringify(control[generationId('g1')]).includes('"lost"')
    expect(isTakenOver || !isOver, killed).toBe(true)
    if (isTakenOver) expect([Object.keys(engine.all(balances)), past in control], killed).toEqual([[], false])
  })
})

test('adopt removes all balances also if no index was replaced: a wrong one stopped the projector', async () => {
  const { engine, adopt } = world(() => undefined)
  const balances = routed.indexOf('balances')
  const indices = Object.fromEntries(['p-control', ...routed.indices].map(name => [name, uuidOf(name)]))
  change(engine, { layout: 2, indices })
  engine.put(balances, balanceId('org_1', 1_000), 7, { org_id: 'org_1', seq: 7, sequence: 1_000, body: {} })
  expect(await adopt()).toBe(0)
  expect(Object.keys(engine.all(balances))).toEqual([])
  expect(engine.all('p-control')[positionId('g1', 0)]?.source.body).toMatchObject({ position: 10 })
})

test('adopt records the ids of shards that have started meanwhile', async () => {
  const { engine, shards, adopt } = world(() => shards.set('p-g1-payouts', 'started'))
  for (const index of indicesOf.g1) if (index !== 'p-g1-payouts') shards.set(index, 'there')
  change(engine, { indices: { 'p-control': 'before' } })
  expect(await adopt()).toBe(0)
  const recorded = Object.fromEntries([...shards].map(([index, id]) => [`${index}/0`, id]))
  expect(engine.all('p-control')[generationId('g1')]?.source.body).toMatchObject({ shards: recorded })
})

test('adopt is refused if a shard loses its documents meanwhile', async () => {
  const { engine, shards, adopt } = world(() => shards.set('p-g1-payouts', 'emptied'))
  for (const index of indicesOf.g1) shards.set(index, 'there')
  change(engine, { lost: 'p-g1-reps/0' })
  await expect(adopt()).rejects.toThrow('the shard p-g1-payouts/0 was lost meanwhile: run the same again')
  expect(await adopt()).toBe(0)
})

test('adopt keeps the recorded shards, and ends, if a proxy reloads at its last look at them', async () => {
  const { engine, shards, proxy, adopt } = world(() => {
    proxy.isReloading = true
  })
  for (const index of indicesOf.g1) shards.set(index, 'there')
  const recorded = Object.fromEntries(indicesOf.g1.map(index => [`${index}/0`, 'there']))
  change(engine, { shards: recorded, lost: 'p-g1-reps/0' })
  await expect(adopt()).rejects.toThrow('x-elastic-product')
  expect(engine.all('p-control')[generationId('g1')]?.source.body).toMatchObject({ shards: recorded })
})

test('adopt forgets which generations were found equal to the one that is read again, and no other, wherever a run ended', async () => {
  const create = () => {
    const created = world(() => undefined)
    change(created.engine, { indices: { 'p-control': 'before' } })
    const equal = { found: 'equal', positions: [10], rules_versions: [1, 1], copies: ['', ''], run: 1 }
    const compared = { 'g1 g2': equal, 'g2 g3': equal }
    created.engine.put('p-control', LIVE_ID, 2, { kind: 'live', body: { generation: 'g1', kept: ['g1'], compared } })
    return created
  }
  await untilNothingKills(create, (engine, killed, isOver) => {
    const { compared = {} } = (engine.all('p-control')[LIVE_ID]?.source.body ?? {}) as { compared?: object }
    const isTakenOver = !JSON.stringify(engine.all('p-control')[generationId('g1')]).includes('"before"')
    if (isTakenOver || isOver) expect(Object.keys(compared), killed).toEqual(['g2 g3'])
  })
})

test('adopt refuses a snapshot from before the swap of a grown topic, which alone has the events since, until g2 is dropped', async () => {
  const { engine, adopt } = world(() => undefined)
  const live = (body: object) =>
    engine.put('p-control', LIVE_ID, 2, { kind: 'live', body: { generation: 'g1', ...body } })
  const source = { topic: 't-9', topic_id: 'nine', cluster_id: 'c' }
  const body = { generation: 'g2', ...source, partitions: 2, rules_version: 1 }
  engine.put('p-control', generationId('g2'), 1, { kind: 'generation', body })
  live({ kept: ['g1', 'g2'] })
  // Only a shard was lost: the control index knows of each swap, and g2 is skipped.
  change(engine, { indices: { ...idsOf('g1'), 'p-g1-payouts': 'before' } })
  expect(await adopt()).toBe(0)
  for (const of of [{ kept: ['g1', 'g2'] }, { kept: ['g1'], building: 'g2' }]) {
    live(of)
    change(engine, { indices: { ...idsOf('g1'), 'p-control': 'before' } })
    const before = JSON.stringify(engine.all('p-control'))
    await expect(adopt()).rejects.toThrow('the events since then are only in t-9: never delete it')
    expect(JSON.stringify(engine.all('p-control'))).toBe(before)
  }
  // As after that swap: g2 has the topic before, or it was dropped.
  for (const of of [{ kept: ['g1', 'g2'], grown: { ...source, ends: [0, 0] } }, { kept: ['g1'] }]) {
    live(of)
    change(engine, { indices: { ...idsOf('g1'), 'p-control': 'before' } })
    expect(await adopt()).toBe(0)
  }
})

describe('a snapshot that has generations of other topics beside the live one', () => {
  const refuse = async (
    body: object,
    topics: Readonly<Record<string, string>>,
    ids: Readonly<Record<string, string | undefined>> = {},
  ) => {
    const { engine, context } = world(() => undefined)
    engine.put('p-control', LIVE_ID, 2, { kind: 'live', body })
    for (const [generation, topic] of Object.entries(topics)) {
      // The control index was restored.
      const source = { topic, topic_id: `id of ${topic}`, cluster_id: 'c', indices: { 'p-control': 'before' } }
      const body = { generation, ...source, ...(generation in ids && { topic_id: ids[generation] }) }
      engine.put('p-control', generationId(generation), 2, { kind: 'generation', body })
    }
    await refuseBeforeGrown(await readAll(context), context)
  }
  const g3 = { generation: 'g3', kept: ['g1', 'g2', 'g3'] }

  test('is accepted if a generation of each was live before: a topic that grew twice', async () => {
    const grown = { topic: 'b', cluster_id: 'c', ends: [0] }
    const twice = { ...g3, alone: { g2: [0], g3: [0] }, grown }
    await expect(refuse(twice, { g1: 'a', g2: 'b', g3: 'c' })).resolves.toBeUndefined()
    await expect(
      refuse({ ...twice, kept: ['g1', 'g2', 'g3', 'g4'] }, { g1: 'a', g2: 'b', g3: 'c', g4: 'a' }),
    ).resolves.toBeUndefined()
    await expect(refuse({ ...twice, building: 'g4' }, { g1: 'a', g2: 'b', g3: 'c', g4: 'd' })).rejects.toThrow(
      'g3 of c live, and g4 of d beside it',
    )
  })

  test('is refused if one is not known to be of the topic before, but of another one of its name', async () => {
    const grown = { topic: 'a', topic_id: 'id of a', cluster_id: 'c', ends: [0] }
    const body = { generation: 'g2', kept: ['g2', 'g3'], alone: { g2: [0] }, grown }
    const topics = { g2: 'b', g3: 'a' }
    await expect(refuse(body, topics)).resolves.toBeUndefined()
    for (const g3 of ['made anew', undefined])
      await expect(refuse(body, topics, { g3 })).rejects.toThrow('g3 of a beside it')
    const twice = { ...body, grown: { topic: 'c', cluster_id: 'c', ends: [0], before: [grown] } }
    await expect(refuse(twice, topics)).resolves.toBeUndefined()
    const unknown = { ...body, grown: { topic: 'a', cluster_id: 'c', ends: [0] } }
    await expect(refuse(unknown, topics, { g3: undefined })).rejects.toThrow('g3 of a beside it')
  })

  test('is accepted without topic ids if the others are of the live topic, or were live', async () => {
    const body = { generation: 'g2', kept: ['g1', 'g2', 'g3'], alone: { g2: [0] } }
    const ids = { g1: undefined, g2: undefined, g3: undefined }
    await expect(refuse(body, { g1: 'a', g2: 'b', g3: 'b' }, ids)).resolves.toBeUndefined()
  })

  test('is refused if one was made for grow before the live one', async () => {
    const alone = { g3: [0] }
    await expect(refuse({ ...g3, alone }, { g1: 'a', g2: 'b', g3: 'a' })).rejects.toThrow('g2 of b beside it')
  })

  test('is refused if one was only begun: its topic is not known', async () => {
    const building = { generation: 'g1', building: 'g2' }
    const what = 'g1 of a live, and g2 of an unknown topic beside it'
    await expect(refuse(building, { g1: 'a' })).rejects.toThrow(what)
  })
})
