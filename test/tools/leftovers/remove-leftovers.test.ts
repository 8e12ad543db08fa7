/**
 * Documents that no log stands behind are removed, whatever interrupts it: afterwards each document is as before them,
 * with the version that it had.
 */
import { expect, test } from 'vitest'
import { TOTALS_TIME_MAX } from '../../../core/reading/limits.ts'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import { READ_TIME_MAX } from '../../../core/store/limits.ts'
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import {
  balanceId,
  balancesIndexOf,
  indexOf,
  type Kind,
  kinds,
  positionId,
  writtenId,
} from '../../../schemas/stored/documents.ts'
import { layoutOf } from '../../../schemas/stored/layout.ts'
import { type Removal, removeBalances, removeLeftovers } from '../../../tools/leftovers/remove-leftovers.ts'
import { sending } from '../../support/answering.ts'
import { type Document, MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const PARTITIONS = 2
/** Two organizations, each in a partition of its own. */
const orgOf = (partition: number): string => {
  for (let number = 0; ; number++) if (partitionOf(`org_${number}`, PARTITIONS) === partition) return `org_${number}`
}
const [org, other] = [orgOf(0), orgOf(1)]
const sized = (fields: object, body: object) => ({
  ...fields,
  body_bytes: Buffer.byteLength(JSON.stringify(body)),
  body,
})
const POSITION = 10

type Given = readonly (readonly [kind: Kind | 'balances', id: string, version: number, source: Document['source']])[]

const payout = (id: string, seq: number, until?: number): Given[number] => [
  'payouts',
  `${org}:${id}`,
  until ?? seq,
  sized(
    { org_id: org, seq, until_seq: until ?? UNTIL_FOREVER, superseded_by_id: until ? 'payout_9' : null },
    { id, text: 'ü' },
  ),
]
const chain = (...payouts: readonly number[]): Given[number] => [
  'chains',
  `${org}:rep_1:period_1`,
  payouts.at(-1) ?? 0,
  sized({ org_id: org }, { payouts: payouts.map(seq => ({ seq, id: `payout_${seq}` })), payroll: [] }),
]

/** Documents of offsets before the position in partition 0, and later ones in partition 1, whose position is later. */
const before: Given = [
  payout('payout_5', 5),
  chain(5),
  ['statements', `${org}:payout_5`, 5, sized({ org_id: org, seq: 5 }, {})],
  ['payouts', `${other}:payout_1`, 70, sized({ org_id: other, seq: 70, until_seq: UNTIL_FOREVER }, {})],
  ['parked', 't:1:60', 60, sized({ topic: 't', partition: 1, offset: 60, org_id: org }, {})],
]
/** The documents that a projector has written of the offsets 12 and 13. */
const leftovers: Given = [
  payout('payout_5', 5, 12),
  chain(5, 12),
  payout('payout_12', 12),
  ['statements', `${org}:payout_12`, 12, sized({ org_id: org, seq: 12 }, {})],
  ['parked', 't:0:13', 13, sized({ topic: 't', partition: 0, offset: 13, org_id: other }, {})],
]

const given = (documents: Given = leftovers, layout?: 2) => {
  const engine = new MemoryElasticsearch()
  const { addressOf, storedWith } = layoutOf('p', { generation: 'g1', topic: 't', ...(layout && { layout }) })
  for (const [kind, id, version, source] of [...before, ...documents]) {
    const { _index, _id, routing } = addressOf(kind, id)
    engine.put(_index, _id, version, JSON.parse(`{${storedWith(kind)}${JSON.stringify(source).slice(1)}`), routing)
  }
  for (const [partition, position] of [POSITION, 100].entries()) {
    const body = { position, last: null, at: 1, time: 2, serve_from: 0 }
    engine.put('p-control', positionId('g1', partition), 1, { kind: 'position', body })
  }
  const said: string[] = []
  const steps = {
    send: engine.send,
    prefix: 'p',
    say: (line: string) => void said.push(line),
    elapsed: () => engine.time,
    sleep: async (milliseconds: number) => {
      engine.time += milliseconds
    },
  }
  const remove = (changed: Partial<Removal> = {}) =>
    removeLeftovers(
      {
        generation: 'g1',
        topic: 't',
        ...(layout && { layout }),
        partitions: PARTITIONS,
        from: async positions => positions.map(({ position }) => position),
        ...changed,
      },
      steps,
    )
  return { engine, said, remove, steps }
}

const documentsOf = (engine: MemoryElasticsearch) =>
  Object.fromEntries(kinds.map(kind => [kind, engine.all(indexOf('p', 'g1', kind))]))
/** Positions, and what is kept of removed documents. */
const controlOf = (engine: MemoryElasticsearch) => Object.values(engine.all('p-control')).map(({ source }) => source)
const asBefore = documentsOf(given([]).engine)

test('documents of later offsets are deleted, and older ones have their earlier form and version again', async () => {
  const { engine, said, remove } = given()
  expect(documentsOf(engine)).not.toEqual(asBefore)
  expect(await remove()).toBe(true)
  expect(documentsOf(engine)).toEqual(asBefore)
  expect(controlOf(engine)).toEqual(controlOf(given([]).engine))
  expect(said.join('\n')).toContain(`g1: 3 documents that the log does not have are removed, 2 have their earlier form`)
  expect(said).toContain(`  removed: payouts ${org}:payout_12`)
})

const balance = (sequence: number, seq: number): Given[number] => [
  'balances',
  balanceId(org, sequence),
  seq,
  sized({ org_id: org, seq, sequence }, { rows: [] }),
]

test('balances of later offsets are deleted, and those before them stay', async () => {
  const { engine, remove } = given([...leftovers, balance(1_000, POSITION - 1), balance(2_000, POSITION)], 2)
  expect(await remove()).toBe(true)
  expect(Object.keys(engine.all(balancesIndexOf('p', 'g1')))).toEqual([balanceId(org, 1_000)])
})

test('balances alone are deleted from where records are read again, and no other document', async () => {
  const { engine, steps } = given([...leftovers, balance(1_000, 3), balance(2_000, 4)], 2)
  const { indices } = layoutOf('p', { generation: 'g1', topic: 't', layout: 2 })
  const others = indices.filter(name => name !== balancesIndexOf('p', 'g1'))
  const before = others.map(name => engine.all(name))
  await removeBalances({ generation: 'g1', topic: 't', layout: 2 }, [4, 0], steps)
  expect(Object.keys(engine.all(balancesIndexOf('p', 'g1')))).toEqual([balanceId(org, 1_000)])
  expect(others.map(name => engine.all(name))).toEqual(before)
})

test('where nothing is left over nobody waits, and nothing is written', async () => {
  const { engine, remove } = given([])
  const content = controlOf(engine)
  expect(await remove({ waitUntilNobodyWrites: () => Promise.reject(new Error('waited')) })).toBe(false)
  expect(documentsOf(engine)).toEqual(asBefore)
  expect(controlOf(engine)).toEqual(content)
  expect(engine.time).toBe(0)
})

test('what was written last is forgotten, whether something was left over or not', async () => {
  for (const documents of [leftovers, []]) {
    const { engine, remove } = given(documents)
    engine.put('p-control', writtenId('g1', 0), 1, { kind: 'written', body: { offset: 13, sha256: 'a' } })
    await remove()
    expect(controlOf(engine)).toEqual(controlOf(given([]).engine))
  }
})

test('what was written last is kept if its documents stay, and the log goes on', async () => {
  for (const [offset, isKept] of [
    [POSITION - 1, true],
    [POSITION, false],
  ] as const) {
    const { engine, remove } = given()
    const written = { kind: 'written', body: { offset, sha256: 'a' } }
    engine.put('p-control', writtenId('g1', 0), 1, written)
    await remove({ keepsWritten: true })
    expect(controlOf(engine)).toEqual([...controlOf(given([]).engine), ...(isKept ? [written] : [])])
  }
})

test('what was written last is forgotten only when nobody writes: nothing of a projector that starts meanwhile is lost', async () => {
  const { engine, remove } = given([])
  const written = { kind: 'written', body: { offset: POSITION, sha256: 'a' } }
  engine.onRequest = ({ path }) => {
    // Its documents come after the search has begun, and are not published yet.
    if (path !== '/_search') return
    engine.onRequest = () => undefined
    engine.put('p-control', writtenId('g1', 0), 1, written)
  }
  const waitUntilNobodyWrites = () => Promise.reject(new Error('waited'))
  expect(await remove({ keepsWritten: true, waitUntilNobodyWrites })).toBe(false)
  expect(controlOf(engine)).toContainEqual(written)
  await expect(remove({ keepsWritten: true, waitUntilNobodyWrites })).rejects.toThrow('waited')
})

test('a batch that somebody writes while documents are removed ends the removal with the next step', async () => {
  const { engine, remove } = given()
  const last = (offset: number, version: number): void =>
    engine.put('p-control', writtenId('g1', 0), version, { kind: 'written', body: { offset, sha256: 'a' } })
  last(13, 1)
  engine.onRequest = ({ path }) => {
    if (path !== '/_search') return
    engine.onRequest = () => undefined
    const [, id, version, source] = payout('payout_14', 14)
    engine.put(indexOf('p', 'g1', 'payouts'), id, version, source)
    last(14, 2)
  }
  await expect(remove()).rejects.toThrow('somebody writes documents meanwhile: stop all projectors')
  const isMarked = controlOf(engine).some(({ body }) => (body as { removing?: true }).removing)
  expect(isMarked, 'readers and projectors are kept out').toBe(true)
  await remove()
  expect(documentsOf(engine)).toEqual(asBefore)
  expect(controlOf(engine)).toEqual(controlOf(given([]).engine))
})

test('any part of a batch can have been written: a chain without its payout is taken back, too', async () => {
  for (const [place] of leftovers.entries()) {
    const { engine, remove } = given(leftovers.slice(place, place + 1))
    await remove()
    expect(documentsOf(engine), `leftover ${place}`).toEqual(asBefore)
  }
})

test('from before the first deletion until the end, readers and projectors are kept out of the partition', async () => {
  const { engine, remove } = given()
  const marks: { readonly partitions: number; readonly time: number }[] = []
  engine.onRequest = ({ path, bulk }) => {
    if (path !== '/_bulk' || !/"(?:delete|index)":\{"_index":"p-g1/.test(String(bulk))) return
    const marked = controlOf(engine).filter(({ body }) => (body as { removing?: true }).removing)
    marks.push({ partitions: marked.length, time: engine.time })
  }
  await remove()
  // All that readers have begun before is over.
  expect(marks[0]?.time).toBeGreaterThan(TOTALS_TIME_MAX + READ_TIME_MAX)
  expect(new Set(marks.map(({ partitions }) => partitions))).toEqual(new Set([1]))
})

test('a removal that ended at any request can be repeated, and loses no document', async () => {
  const requests = { count: 0 }
  const whole = given()
  whole.engine.onRequest = () => void requests.count++
  await whole.remove()
  for (let endsAt = 1; endsAt <= requests.count; endsAt++) {
    const { engine, remove } = given()
    let count = 0
    engine.onRequest = () => {
      if (++count >= endsAt) throw new Error('killed')
    }
    await expect(remove()).rejects.toThrow('killed')
    engine.onRequest = () => undefined
    engine.time += 5_000
    await remove()
    expect(documentsOf(engine), `killed at request ${endsAt}`).toEqual(asBefore)
    expect(controlOf(engine), `killed at request ${endsAt}`).toEqual(controlOf(given([]).engine))
  }
})

test('a snapshot of any moments of a removal, index by index, has each document or its earlier form', async () => {
  const moments: MemoryElasticsearch[] = []
  const { engine, remove } = given()
  const indices = ['p-control', ...kinds.map(kind => indexOf('p', 'g1', kind))]
  engine.onRequest = ({ method, path }) => {
    if (path !== '/_bulk' && method !== 'PUT') return
    const copy = new MemoryElasticsearch()
    for (const index of indices) engine.copyIndexTo(index, copy)
    moments.push(copy)
  }
  await remove()
  expect(moments.length).toBeGreaterThan(5)
  for (const [first, ofControl] of moments.entries()) {
    for (const [second, ofDocuments] of moments.entries()) {
      const restored = given([])
      restored.engine.clear()
      for (const index of indices) {
        const moment = index === 'p-control' ? ofControl : ofDocuments
        moment.copyIndexTo(index, restored.engine)
      }
      await restored.remove()
      const from = `control index at request ${first}, documents at ${second}`
      expect(documentsOf(restored.engine), from).toEqual(asBefore)
      expect(controlOf(restored.engine), from).toEqual(controlOf(given([]).engine))
    }
  }
})

test('in a routed generation every document and its earlier form is found by its routing, wherever a run ended', async () => {
  const routedBefore = documentsOf(given([], 2).engine)
  expect(Object.keys(routedBefore.reps ?? {})).toEqual([])
  for (let endsAt = 1, hasEnded = false; !hasEnded; endsAt++) {
    const { engine, remove } = given(leftovers, 2)
    let count = 0
    engine.onRequest = () => {
      if (++count >= endsAt) throw new Error('killed')
    }
    hasEnded = await remove().then(
      () => true,
      () => false,
    )
    engine.onRequest = () => undefined
    engine.time += 5_000
    if (!hasEnded) await remove()
    expect(documentsOf(engine), `killed at request ${endsAt}`).toEqual(routedBefore)
  }
})

test('a request whose answer is lost is sent again', async () => {
  const { engine, remove } = given()
  let count = 0
  engine.onRequest = ({ path }) => {
    if (path === '/_bulk' && ++count % 2 === 0) throw new Unanswered('elasticsearch', 503)
  }
  await remove()
  expect(documentsOf(engine)).toEqual(asBefore)
})

test('an earlier form that a proxy did not pass on is no reason to delete its document', async () => {
  const { engine, remove, steps } = given()
  const { send } = steps
  steps.send = sending(async request => {
    if (!/"index":\{"_index":"p-g1/.test(String(request.bulk))) return send(request)
    steps.send = send
    return { status: 404, body: '<html>' }
  })
  await expect(remove()).rejects.toThrow('cannot be written: Elasticsearch answers 404')
  await remove()
  expect(documentsOf(engine)).toEqual(asBefore)
})

test('a document that somebody writes meanwhile ends the removal with the next step', async () => {
  const { engine, remove } = given()
  engine.onRequest = ({ path, bulk }) => {
    if (path !== '/_bulk' || !String(bulk).includes('"delete":{"_index":"p-g1')) return
    engine.onRequest = () => undefined
    const [, id, , source] = payout('payout_12', 12)
    engine.put(indexOf('p', 'g1', 'payouts'), id, 14, source)
  }
  await expect(remove()).rejects.toThrow('somebody writes documents meanwhile: stop all projectors')
  await remove()
  expect(documentsOf(engine)).toEqual(asBefore)
})

test('a position whose earlier documents went, too, is not served until it is set back', async () => {
  const { engine, remove } = given()
  await remove({
    from: async positions => positions.map(({ position }, partition) => (partition === 0 ? 5 : position)),
  })
  expect(Object.keys(documentsOf(engine).payouts ?? {})).toEqual([`${other}:payout_1`])
  const bodies = [0, 1].map(partition => engine.all('p-control')[positionId('g1', partition)]?.source.body)
  expect(bodies).toMatchObject([
    { position: POSITION, serve_from: 0, removing: true },
    { position: 100, serve_from: 0 },
  ])
  expect(bodies[1]).not.toHaveProperty('removing')
})
