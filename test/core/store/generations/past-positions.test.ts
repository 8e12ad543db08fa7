import { expect, test } from 'vitest'
import type { GenerationBody } from '../../../../core/log/kafka/source.ts'
import type { Answer, Request } from '../../../../core/store/elasticsearch/client.ts'
import { keepPositions, readPastPositions } from '../../../../core/store/generations/past-positions.ts'
import { KEEP_POSITIONS_MS } from '../../../../core/store/limits.ts'
import { PAST_POSITIONS, pastPositionsId } from '../../../../schemas/stored/documents.ts'
import { sending } from '../../../support/answering.ts'

const MINUTE = KEEP_POSITIONS_MS
const identityWith = (id: string): GenerationBody => ({
  generation: 'g1',
  topic: 't',
  cluster_id: 'c',
  partitions: 2,
  rules_version: 1,
  indices: { 'p-control': 'uuid-control', 'p-g1-reps': id },
})
const identity = identityWith('uuid-1')
const positionAt = (position: number) => ({ position, last: { offset: position - 1, sha256: 'a' }, at: position })

/** Elasticsearch with the control documents of one generation. */
const given = () => {
  const documents = new Map<string, { kind: string; body: object }>()
  const asked: string[] = []
  const state = { time: (1_000 * MINUTE) as number | undefined, ahead: 0, ours: 0, uuid: 'uuid-1', failed: 0 }
  const publish = (...positions: number[]): void => {
    for (const [partition, position] of positions.entries()) {
      const body = { ...positionAt(position), time: 7, serve_from: 0 }
      documents.set(`position:g1:${partition}`, { kind: 'position', body })
    }
  }
  const answer = async ({ method, path, body }: Request): Promise<Answer> => {
    const [, first = '', operation, id = ''] = path.split('/').map(decodeURIComponent)
    asked.push(['_mget', '_nodes', '_security'].includes(first) ? first : (operation ?? ''))
    if (first === '_mget') {
      const docs = (body as { docs: { _id: string }[] }).docs.map(({ _id }) => {
        const _source = documents.get(_id)
        return _source === undefined ? { _id, found: false } : { _id, found: true, _version: 1, _source }
      })
      return { status: 200, body: { docs } }
    }
    if (first === '_nodes') {
      const timeOf = (ahead: number) => (state.time === undefined ? {} : { timestamp: state.time + ahead })
      const nodes = path.includes('_all') ? { n: timeOf(0), other: timeOf(state.ahead) } : { n: timeOf(0) }
      return { status: 200, body: { _nodes: { failed: state.failed }, nodes } }
    }
    // Without security.
    if (first === '_security') return { status: 400, body: {} }
    if (operation === '_settings') {
      const of = (uuid: string) => ({ settings: { index: { uuid } } })
      return { status: 200, body: { 'p-control': of('uuid-control'), 'p-g1-reps': of(state.uuid) } }
    }
    expect(method).toBe('PUT')
    documents.set(id, body as { kind: string; body: object })
    return { status: 201, body: {} }
  }
  const steps = { send: sending(answer), prefix: 'p', now: () => state.ours }
  const past = () => [...documents.keys()].filter(id => id.startsWith('past:'))
  return { documents, asked, state, publish, steps, past }
}

test('the clock is read after the positions and the ids of the indices, so that past positions are older than their time', async () => {
  const { asked, publish, steps } = given()
  publish(5, 6)
  await keepPositions(identity, undefined, steps)
  expect(asked).toEqual(['_mget', '_security', '_security', '_settings', '_nodes', '_doc'])
})

test('past positions have what a projector needs to go on: offset, last record and time of the records', async () => {
  const { publish, steps } = given()
  publish(5, 6)
  expect(await keepPositions(identity, undefined, steps)).toEqual([positionAt(5), positionAt(6)])
  expect(await readPastPositions(identity, 1_000 * MINUTE, steps)).toMatchObject({
    time: 1_000 * MINUTE,
    partitions: [positionAt(5), positionAt(6)],
  })
})

test.for([
  ['the node that answers', { time: -100_000, ahead: 100_000, ours: 0 }],
  ['all nodes of Elasticsearch', { time: -100_000, ahead: 0, ours: 0 }],
  ['this machine', { time: 0, ahead: 0, ours: -100_000 }],
] as const)('a clock that is behind makes past positions no older than they are: that of %s', async ([, behind]) => {
  const { state, publish, steps } = given()
  const present = 1_000 * MINUTE
  Object.assign(state, { time: present + behind.time, ahead: behind.ahead, ours: present + behind.ours })
  publish(5, 6)
  await keepPositions(identity, undefined, steps)
  // A snapshot that began a minute ago lacks their documents.
  expect(await readPastPositions(identity, present - 1, steps)).toBeUndefined()
  expect(await readPastPositions(identity, present, steps)).toMatchObject({ time: present })
})

test('after a clock that was ahead is right again, past positions are found by the right dates, and the others are older', async () => {
  const { state, publish, steps } = given()
  const dated = async (position: number, time: number, ours: number) => {
    publish(position, position)
    Object.assign(state, { time, ours })
    await keepPositions(identity, undefined, steps)
  }
  const present = 1_000 * MINUTE
  await dated(1, present, present)
  await dated(2, present + MINUTE + 100_000, present + MINUTE)
  await dated(3, present + 2 * MINUTE, present + 2 * MINUTE)
  const until = async (time: number) => (await readPastPositions(identity, time, steps))?.partitions[0]?.position
  // The second copy and the third one have the same minute: the one that is dated right stays.
  expect(await until(present + 2 * MINUTE - 1)).toBe(1)
  expect(await until(present + 2 * MINUTE)).toBe(3)
  expect(await until(present + 3 * MINUTE)).toBe(3)
})

test('positions that version 1.1.0 dated by the clock of one node are not gone back to, but older ones that this version kept are', async () => {
  const { documents, publish, steps } = given()
  publish(5, 6)
  await keepPositions(identity, undefined, steps)
  const [kept] = [...documents].flatMap(([id, { body }]) => (id.startsWith('past:') ? [body] : []))
  const { clocks: _, ...ofOneNode } = kept as { clocks: string }
  const later = { ...ofOneNode, time: 1_001 * MINUTE, partitions: [positionAt(8), positionAt(9)] }
  documents.set(pastPositionsId('g1', 1_001), { kind: 'past', body: later })
  const found = await readPastPositions(identity, 1_002 * MINUTE, steps)
  expect(found).toMatchObject({ time: 1_000 * MINUTE, partitions: [positionAt(5), positionAt(6)] })
})

test('positions that stand still are not kept again', async () => {
  const { asked, publish, steps } = given()
  publish(5, 6)
  const kept = await keepPositions(identity, undefined, steps)
  asked.length = 0
  expect(await keepPositions(identity, kept, steps)).toBe(kept)
  expect(asked).toEqual(['_mget'])
})

test('nothing is kept while an index is another one than recorded, without a clock, or without a position', async () => {
  const { state, publish, steps, past } = given()
  expect(await keepPositions(identity, undefined, steps)).toBeUndefined()
  publish(5, 6)
  state.uuid = 'uuid-restored'
  await expect(keepPositions(identity, undefined, steps)).rejects.toMatchObject({ code: 'index_replaced' })
  state.uuid = 'uuid-1'
  state.time = undefined
  expect(await keepPositions(identity, undefined, steps)).toBeUndefined()
  const { indices: _, ...unknown } = identity
  expect(await keepPositions(unknown, undefined, steps)).toBeUndefined()
  expect(past()).toEqual([])
})

test('nothing is kept while a node of Elasticsearch does not tell its clock: the others may be behind it', async () => {
  const { state, publish, steps, past } = given()
  publish(5, 6)
  state.failed = 1
  expect(await keepPositions(identity, undefined, steps)).toBeUndefined()
  expect(past()).toEqual([])
})

test('a copy a minute is kept for two days, then its document is used again', async () => {
  const { state, publish, steps, past } = given()
  const [first, last] = [PAST_POSITIONS, 2 * PAST_POSITIONS]
  for (const minute of [first, first + 1, last - 1]) {
    publish(minute, minute)
    state.time = minute * MINUTE + 17
    await keepPositions(identity, undefined, steps)
  }
  expect(past()).toEqual([0, 1, PAST_POSITIONS - 1].map(place => pastPositionsId('g1', place)))
  publish(last, last)
  state.time = last * MINUTE
  await keepPositions(identity, undefined, steps)
  expect(past()).toHaveLength(3)
  expect(await readPastPositions(identity, first * MINUTE + 17, steps)).toBeUndefined()
  expect(await readPastPositions(identity, last * MINUTE, steps)).toMatchObject({ time: last * MINUTE })
})

test('the newest past positions up to a time are found, and only those of the same indices', async () => {
  const { state, publish, steps } = given()
  for (const minute of [1, 2, 3]) {
    publish(minute, 10 * minute)
    state.time = minute * MINUTE
    await keepPositions(identity, undefined, steps)
  }
  const until = async (time: number, of = identity) => (await readPastPositions(of, time, steps))?.time
  expect(await until(3 * MINUTE)).toBe(3 * MINUTE)
  expect(await until(3 * MINUTE - 1)).toBe(2 * MINUTE)
  expect(await until(MINUTE - 1)).toBeUndefined()
  expect(await until(3 * MINUTE, identityWith('uuid-restored'))).toBeUndefined()
})
