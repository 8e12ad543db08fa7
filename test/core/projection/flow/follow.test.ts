/** A generation that follows another one, with a control index and a parked index that the test changes. */
import { describe, expect, test } from 'vitest'
import { parkAsFollowed } from '../../../../core/ledger/decide/decide-batch.ts'
import type { GenerationBody } from '../../../../core/log/kafka/source.ts'
import { createFollow } from '../../../../core/projection/flow/follow.ts'
import { FOLLOWED_LATE_MS } from '../../../../core/projection/limits.ts'
import { createSameIndices } from '../../../../core/store/generations/same-indices.ts'
import { INTACT_REMEMBERED_MS } from '../../../../core/store/limits.ts'
import { TOPIC } from '../../../projector/given.ts'
import { everythingRuns } from '../../../projector/held.ts'
import { batchOf, repsOf, startFlow } from '../../../projector/running-flow.ts'
import { payout, period, rep } from '../../../projector/story.ts'
import { getting, primariesAnswer, sending } from '../../../support/answering.ts'

const identity: GenerationBody = {
  generation: 'g2',
  topic: 'events',
  cluster_id: 'c',
  partitions: 2,
  rules_version: 2,
  follows: 'g1',
}

/** `positions` are those of g1, by partition. `parked` are its parked records. */
const control = ({ live = 'g1', positions = [0, 0], parked = {} as Record<string, string> } = {}) => {
  const state = { live, positions, parked, seqNo: 1, ids: { 'p-control': 'c', 'p-g1-parked': 'a' }, removing: false }
  const indices = { 'p-g1-parked': 'a' }
  const lost: { lost?: string } = {}
  /** The other fields of the live document. If g2 is live, its floor is still missing. */
  const beside = { floor: live === 'g2' ? null : [], previous: 'g1', alone: {} as Record<string, readonly number[]> }
  const asked: string[] = []
  const told: (string | undefined)[] = []
  /** Callbacks that run after the next reads, one for each. */
  const after: (() => void)[] = []
  const sourceOf = (index: string, id: string): object | undefined => {
    if (index.endsWith('-parked')) return state.parked[id] === undefined ? undefined : { code: state.parked[id] }
    if (id === 'live') return { kind: 'live', body: { generation: state.live, ...beside } }
    if (id === 'generation:g1') return { kind: 'generation', body: { ...identity, generation: 'g1', indices, ...lost } }
    const position = state.positions[Number(id.split(':')[2])]
    const { removing } = state
    return position === undefined ? undefined : { kind: 'position', body: { position, ...(removing && { removing }) } }
  }
  const getDocuments = getting(async docs => {
    asked.push(docs.map(({ _id }) => _id).join())
    const found = docs.map(({ _index, _id }) => {
      const _source = sourceOf(_index, _id)
      return { _id, found: _source !== undefined, _version: 1, _source }
    })
    after.shift()?.()
    return found
  })
  const request = sending(async asked => {
    const { method, path, body, query } = asked
    if (path === '/_bulk') return primariesAnswer(asked, sourceOf)
    if (path === '/p-*/_settings') {
      const listed = Object.entries(state.ids).map(([name, uuid]) => [name, { settings: { index: { uuid } } }])
      return { status: 200, body: Object.fromEntries(listed) }
    }
    // Elasticsearch without security.
    if (path.startsWith('/_')) return { status: 404, body: {} }
    if (method === 'GET') {
      const [, index = '', , id = ''] = path.split('/').map(decodeURIComponent)
      const _source = sourceOf(index, id)
      if (_source === undefined) return { status: 404, body: { found: false } }
      return { status: 200, body: { _source, _seq_no: state.seqNo, _primary_term: 1 } }
    }
    if (query?.if_seq_no !== state.seqNo) return { status: 409, body: {} }
    state.seqNo++
    Object.assign(beside, (body as { body: typeof beside }).body)
    return { status: 200, body: {} }
  })
  const clock = { now: 0 }
  let slept = 0
  const sleep = async (milliseconds: number): Promise<void> => {
    slept += milliseconds
    await everythingRuns()
  }
  const follow = createFollow({ identity, prefix: 'p' }, 0, {
    getDocuments,
    request,
    assertSame: createSameIndices(() => clock.now).assertSame,
    sleep,
    during: async (_, task) => task(reason => told.push(reason)),
  })
  if (follow === undefined) throw new Error('it follows nobody')
  return { state, lost, beside, asked, told, after, follow, clock, slept: () => slept }
}

const reps = (from: number, count: number) =>
  batchOf(
    from,
    Array.from({ length: count }, () => rep()),
  )

test('a generation that follows none reads nothing', () => {
  const { follows: _, ...others } = identity
  expect(createFollow({ identity: others, prefix: 'p' }, 0, {} as never)).toBeUndefined()
})

describe('a generation that follows another', () => {
  test('decides a record once the other one has published past it, and parks what that one parked', async () => {
    const { state, follow } = control({ positions: [2, 9], parked: { 'events:0:1': 'rep_unknown' } })
    expect(await follow(reps(0, 2))).toEqual({ decidableTo: 2, parked: new Map([[1, 'rep_unknown']]) })
    let isDecided = false
    const deciding = follow(reps(2, 2)).then(parked => {
      isDecided = true
      return parked
    })
    for (let round = 0; round < 5; round++) await everythingRuns()
    expect(isDecided).toBe(false)
    state.parked['events:0:3'] = 'id_reused'
    state.positions = [4, 9]
    expect(await deciding).toEqual({ decidableTo: 4, parked: new Map([[3, 'id_reused']]) })
  })

  test('decides up to a position of the other one in the middle of a batch, and no further', async () => {
    const parked = { 'events:0:1': 'rep_unknown', 'events:0:3': 'id_reused' }
    const { state, follow } = control({ positions: [3, 9], parked })
    expect(await follow(reps(0, 5))).toEqual({ decidableTo: 3, parked: new Map([[1, 'rep_unknown']]) })
    let isDecided = false
    const deciding = follow(reps(3, 2)).finally(() => {
      isDecided = true
    })
    for (let round = 0; round < 5; round++) await everythingRuns()
    expect(isDecided).toBe(false)
    state.positions = [4, 9]
    expect(await deciding).toEqual({ decidableTo: 4, parked: new Map([[3, 'id_reused']]) })
  })

  test('reads the parked records only after the position that guarantees that they are complete', async () => {
    const { state, after, follow } = control({ positions: [2, 2] })
    after.push(() => {
      state.parked['events:0:1'] = 'id_reused'
    })
    expect(await follow(reps(0, 2))).toMatchObject({ parked: new Map([[1, 'id_reused']]) })
  })

  test('reads a position that it knows is passed only after the parked records: it may have been set back', async () => {
    const { asked, follow } = control({ positions: [100, 100] })
    await follow(reps(0, 2))
    asked.length = 0
    await follow(reps(2, 1))
    expect(asked).toEqual(['events:0:2', 'position:g1:0', 'generation:g1'])
  })

  test('waits again if the other one is read again since, and parks what that one parks then', async () => {
    const { state, after, follow, slept } = control({ positions: [100, 100], parked: { 'events:0:3': 'rep_unknown' } })
    await follow(reps(0, 2))
    state.removing = true
    state.parked = {}
    // Reads of a round: parked records, position, generation; then of each look: position, live, generation.
    after.push(...Array.from({ length: 9 }, () => () => undefined), () => {
      state.removing = false
      state.positions = [5, 5]
      state.parked = { 'events:0:3': 'rep_unknown' }
    })
    expect(await follow(reps(2, 2))).toEqual({ decidableTo: 4, parked: new Map([[3, 'rep_unknown']]) })
    expect(slept()).toBeGreaterThan(0)
  })

  test('reports that it waits if that takes long, and then continues', async () => {
    const { state, told, follow, slept } = control({ positions: [0, 1] })
    const deciding = follow(reps(0, 2))
    while (slept() <= FOLLOWED_LATE_MS + 1_000) await everythingRuns()
    expect(told[0]).toContain('g1')
    state.positions = [2, 1]
    expect(await deciding).toEqual({ decidableTo: 2, parked: new Map() })
  })

  test('stops if an index of the other one is another one, or lost a shard: its parked records may be missing', async () => {
    const replaced = control({ positions: [9, 9] })
    replaced.state.ids['p-g1-parked'] = 'b'
    await expect(replaced.follow(reps(0, 1))).rejects.toThrow(expect.objectContaining({ code: 'index_replaced' }))
    const { state, lost, follow } = control({ positions: [1, 1] })
    expect(await follow(reps(0, 1))).toMatchObject({ decidableTo: 1 })
    Object.assign(lost, { lost: 'p-g1-parked/0' })
    state.positions = [2, 2]
    await expect(follow(reps(1, 1))).rejects.toThrow(expect.objectContaining({ code: 'index_replaced' }))
  })

  test('stops if an index of the other one becomes another one later, which nobody notes in a document', async () => {
    const { state, follow, clock } = control({ positions: [9, 9], parked: { 'events:0:1': 'rep_unknown' } })
    expect(await follow(reps(0, 1))).toMatchObject({ decidableTo: 1 })
    state.ids['p-g1-parked'] = 'b'
    state.parked = {}
    clock.now = INTACT_REMEMBERED_MS
    await expect(follow(reps(1, 1))).rejects.toThrow(expect.objectContaining({ code: 'index_replaced' }))
  })

  test('waits while parked records of the other one are removed', async () => {
    const { state, follow, slept } = control({ positions: [2, 2] })
    state.removing = true
    const deciding = follow(reps(0, 2))
    for (let round = 0; round < 1_000 && slept() <= FOLLOWED_LATE_MS; round++) await everythingRuns()
    state.removing = false
    state.parked['events:0:1'] = 'id_reused'
    expect(await deciding).toEqual({ decidableTo: 2, parked: new Map([[1, 'id_reused']]) })
  })

  test('stops if the followed generation is gone', async () => {
    const { follow } = control({ positions: [] })
    await expect(follow(reps(0, 1))).rejects.toThrow(expect.objectContaining({ code: 'index_missing' }))
  })
})

describe('made live, it', () => {
  test('takes over the records parked by the other one until then, and writes down where its own decisions begin', async () => {
    const parked = { 'events:0:1': 'rep_unknown', 'events:0:2': 'rep_unknown' }
    const { beside, follow } = control({ live: 'g2', positions: [2, 7], parked })
    expect(await follow(reps(0, 4))).toEqual({ decidableTo: 4, parked: new Map([[1, 'rep_unknown']]) })
    expect(beside).toMatchObject({ floor: [2, 7], alone: { g2: [2, 7] } })
  })

  test('uses the positions that were written down first', async () => {
    const parked = { 'events:0:1': 'rep_unknown', 'events:0:2': 'rep_unknown' }
    const { beside, follow } = control({ live: 'g2', positions: [9, 9], parked })
    beside.alone = { g2: [2, 2] }
    expect(await follow(reps(0, 4))).toEqual({ decidableTo: 4, parked: new Map([[1, 'rep_unknown']]) })
    expect(beside.alone).toEqual({ g2: [2, 2] })
  })

  test('reads nothing more, even if it is not live any more and the other one is gone', async () => {
    const { beside, asked, follow } = control({ live: 'g1', positions: [] })
    beside.alone = { g2: [2, 2] }
    expect(await follow(reps(2, 2))).toEqual({ decidableTo: 4, parked: new Map() })
    asked.length = 0
    expect(await follow(reps(4, 2))).toEqual({ decidableTo: 6, parked: new Map() })
    expect(asked).toEqual([])
  })

  test('read again from a copy, waits until the other one has read again what it parked before the swap', async () => {
    const { state, beside, after, follow, slept } = control({ live: 'g2', positions: [0, 0] })
    Object.assign(beside, { floor: [4, 4], alone: { g2: [4, 4] } })
    after.push(...Array.from({ length: 6 }, () => () => undefined), () => {
      state.positions = [3, 0]
      state.parked = { 'events:0:1': 'rep_unknown' }
    })
    expect(await follow(repsOf(0, 6))).toEqual({ decidableTo: 3, parked: new Map([[1, 'rep_unknown']]) })
    expect(slept()).toBeGreaterThan(0)
    state.positions = [4, 0]
    state.parked['events:0:3'] = 'rep_unknown'
    expect(await follow(repsOf(3, 3))).toEqual({ decidableTo: 6, parked: new Map([[3, 'rep_unknown']]) })
    state.positions = []
    expect(await follow(repsOf(6, 2))).toEqual({ decidableTo: 8, parked: new Map() })
  })

  test('does not take a position that the other one reached after the swap for one of a live generation', async () => {
    const { state, beside, after, follow } = control({
      live: 'g1',
      positions: [1, 1],
      parked: { 'events:0:1': 'id_reused' },
    })
    // Between two reads: a swap, its positions written down, and the other one continues on its own.
    after.push(() => {
      state.live = 'g2'
      beside.alone = { g2: [1, 1] }
      state.positions = [2, 2]
    })
    expect(await follow(reps(0, 2))).toEqual({ decidableTo: 2, parked: new Map() })
  })
})

test('a record that the followed generation parked is parked with its code, without asking the rules', async () => {
  const { steps, documents, take, published } = startFlow()
  steps.follow = async () => ({ decidableTo: 3, parked: new Map([[2, 'payout_mismatch']]) })
  await take(batchOf(0, [rep(), period(), payout('payout_1')]))
  expect(published().position).toBe(3)
  const keys = documents.all().map(([key]) => key)
  expect(keys.filter(key => /payouts|chains|parked/.test(key))).toEqual([`parked/${TOPIC}:0:2`])
})

test('a record parked by the followed generation keeps all that is known about it', () => {
  const assessed = { record: { offset: 7 }, envelope: { id: 'e' }, verdict: 'type_unknown', reads: {} } as never
  expect(parkAsFollowed(assessed, undefined)).toBe(assessed)
  expect(parkAsFollowed(assessed, new Map([[8, 'id_reused']]))).toBe(assessed)
  expect(parkAsFollowed(assessed, new Map([[7, 'id_reused']]))).toMatchObject({
    verdict: 'id_reused',
    envelope: { id: 'e' },
  })
})

describe('the flow of a generation that follows one at a position in the middle of a batch', () => {
  test('publishes exactly up to there, also between two records, and the rest later', async () => {
    const { steps, flow, story, take, published } = startFlow()
    const { promise: goesOn, resolve } = Promise.withResolvers<void>()
    const asked: number[][] = []
    steps.follow = async ({ from, end }) => {
      asked.push([from, end])
      if (from === 3) await goesOn
      return { decidableTo: Math.min(end, from === 0 ? 1 : from === 1 ? 3 : end), parked: new Map() }
    }
    // Offsets 1 and 2 are control records: they end transactions.
    const [first, second] = [batchOf(0, [rep()]), batchOf(3, [period()], 5)]
    await take({ from: 0, end: 5, records: [...first.records, ...second.records] })
    for (let round = 0; round < 5; round++) await everythingRuns()
    expect(asked).toEqual([
      [0, 5],
      [1, 5],
      [3, 5],
    ])
    expect(published()).toMatchObject({ position: 3, last: { offset: 0 } })
    await take(batchOf(5, [rep({ id: 'rep_2' })]))
    resolve()
    await flow.waitUntilIdle()
    expect(published()).toMatchObject({ position: 6, last: { offset: 5 } })
    expect(story.filter(step => step.startsWith('publish'))).toEqual([
      'publish 1',
      'publish 3',
      'publish 5',
      'publish 6',
    ])
  })

  test('puts records that did not fit in one load before the undecided ones', async () => {
    // Not from the first record on: there the cache knows that these reps do not exist.
    const { steps, answers, flow, story, take } = startFlow({ position: 10 })
    steps.follow = async ({ from, end }) => ({ decidableTo: Math.min(end, from < 13 ? 13 : end), parked: new Map() })
    answers.most = 2
    await take(repsOf(10, 5))
    await flow.waitUntilIdle()
    expect(story.filter(step => step.startsWith('write'))).toEqual(['write 10-11', 'write 12-12', 'write 13-14'])
  })
})
