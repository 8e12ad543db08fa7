/** Drops with control documents, groups and positions that the test changes. Only waiting moves the clock. */
import type { Kafka } from 'kafkajs'
import { expect, test } from 'vitest'
import { AnswerTooLong } from '../../../core/store/elasticsearch/client.ts'
import { indexOf, kinds } from '../../../schemas/stored/documents.ts'
import { drop, PROJECTOR_STOP_MS } from '../../../tools/generations/drop.ts'
import { listGenerations } from '../../../tools/generations/generations.ts'
import { DROP_WAIT_MS, QUIET_MS } from '../../../tools/limits.ts'
import { primariesAnswer, sending } from '../../support/answering.ts'

const identityOf = (generation: string) => {
  return { generation, topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
}
const positionOf = (position: number, time = 0) => ({ position, last: null, at: 0, time, serve_from: 0 })
const whole = (generation: string): [string, object][] => [
  [`generation:${generation}`, identityOf(generation)],
  [`position:${generation}:0`, positionOf(5)],
]
const indicesOf = (generation: string): string[] => kinds.map(kind => indexOf('p', generation, kind))

const given = (live: object, documents: [string, object][], indices: string[], cluster = 'c') => {
  const bodies = new Map<string, object>([['live', { generation: 'g1', ...live }], ...documents])
  const there = new Set(indices)
  const state = {
    members: 0,
    documentsInAnswer: 100,
    /** After these the drop is killed. */
    deletions: Number.POSITIVE_INFINITY,
    onWait: (_: number): void => undefined,
    onRead: (_: string): void => undefined,
  }
  let time = 0
  let clockError = 0
  let seqNo = 0
  const deleted: { path: string; time: number }[] = []
  const found = (id: string) => {
    const body = bodies.get(id)
    if (body === undefined) return { _id: id, found: false }
    return { _id: id, found: true, _source: { kind: id.split(':')[0], body }, _seq_no: seqNo, _primary_term: 1 }
  }
  const send = sending(async request => {
    const { method, path, body } = request
    const [, index = '', operation, id = ''] = path.split('/').map(decodeURIComponent)
    if (method === 'DELETE') {
      if (deleted.length === state.deletions) throw new Error('killed')
      deleted.push({ path, time })
      for (const name of index.split(',')) there.delete(name)
      bodies.delete(id)
      return { status: 200, body: {} }
    }
    if (index === '_resolve') return { status: 200, body: { indices: [...there].map(name => ({ name })) } }
    if (index === '_bulk') {
      return primariesAnswer(request, (_, id) => bodies.get(id) && { kind: id.split(':')[0], body: bodies.get(id) })
    }
    if (index === '_mget') {
      const { docs } = body as { docs: { _id: string }[] }
      if (docs.length > state.documentsInAnswer) throw new AnswerTooLong()
      return { status: 200, body: { docs: docs.map(({ _id }) => found(_id)) } }
    }
    const _shards = { failed: 0 }
    if (operation === '_refresh') return { status: 200, body: { _shards } }
    if (operation === '_search') {
      const ids = [...bodies.keys()].filter(of => of !== 'live')
      return { status: 200, body: { _shards, hits: { hits: ids.map(_id => ({ _id })) } } }
    }
    if (method === 'GET') state.onRead(id)
    if (method === 'GET') return { status: bodies.has(id) ? 200 : 404, body: found(id) }
    seqNo++
    bodies.set(id, (body as { body: object }).body)
    return { status: 200, body: {} }
  })
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeCluster: async () => ({ clusterId: cluster }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    describeGroups: async () => ({ groups: [{ members: Array.from({ length: state.members }) }] }),
    deleteGroups: async () => [],
  }
  const out: string[] = []
  const context = {
    send,
    prefix: 'p',
    out: (text: string | Buffer) => void out.push(String(text)),
    say: () => undefined,
    kafka: { admin: () => admin } as unknown as Kafka,
    topics: { events: 't', 'api-keys': 'k' },
    sleep: async (milliseconds: number) => {
      time += milliseconds
      state.onWait(time)
    },
    now: () => time + clockError,
    elapsed: () => time,
  }
  return {
    setClock: (ahead: number) => {
      clockError = ahead
    },
    bodies,
    there,
    state,
    deleted,
    list: async () => {
      out.length = 0
      await listGenerations({ json: true }, context)
      return Object.fromEntries(out.map(line => JSON.parse(line)).map(({ generation, roles }) => [generation, roles]))
    },
    drop: (generation: string) => drop({ generation, json: false }, context, 'group'),
    time: () => time,
  }
}

const both = () =>
  given({ kept: ['g1', 'g2'] }, [...whole('g1'), ...whole('g2')], [...indicesOf('g1'), ...indicesOf('g2')])

test('after the topic has grown, the generation of the topic before is neither previous nor kept up in the list', async () => {
  const live = {
    generation: 'g2',
    kept: ['g1', 'g2'],
    previous: 'g1',
    grown: { topic: 't', cluster_id: 'c', ends: [5] },
  }
  const { list, bodies } = given(live, [...whole('g1'), ...whole('g2')], [...indicesOf('g1'), ...indicesOf('g2')])
  bodies.set('generation:g2', { ...identityOf('g2'), topic: 't-9' })
  expect(await list()).toEqual({ g1: ['of the topic before'], g2: ['live'] })
})

test('after the topic has grown twice, a generation of the first one is not called kept up either', async () => {
  const before = [{ topic: 't', cluster_id: 'c', ends: [5] }]
  const grown = { topic: 't-9', cluster_id: 'c', ends: [5], before }
  const live = { generation: 'g2', kept: ['g1', 'g2'], grown }
  const { list, bodies } = given(live, [...whole('g1'), ...whole('g2')], [...indicesOf('g1'), ...indicesOf('g2')])
  bodies.set('generation:g2', { ...identityOf('g2'), topic: 't-12' })
  expect(await list()).toEqual({ g1: ['of the topic before'], g2: ['live'] })
})

test('a drop deletes all indices in one request, the past positions, and the document of the generation last', async () => {
  const { bodies, drop, deleted, list } = both()
  for (const id of ['past:g1:2879', 'past:g2:0', 'past:g2:2879']) bodies.set(id, {})
  await drop('g2')
  expect([...bodies.keys()].filter(id => id.startsWith('past'))).toEqual(['past:g1:2879'])
  expect(deleted.map(({ path }) => path)).toEqual([
    `/${indicesOf('g2').sort().join()}`,
    '/p-control/_doc/past%3Ag2%3A0',
    '/p-control/_doc/past%3Ag2%3A2879',
    '/p-control/_doc/times%3Ag2',
    '/p-control/_doc/written%3Ag2%3A0',
    '/p-control/_doc/position%3Ag2%3A0',
    '/p-control/_doc/generation%3Ag2',
  ])
  expect(await list()).toEqual({ g1: ['live'] })
})

test.each([
  ['a whole generation', whole('g2')],
  ['positions without the document of the generation', whole('g2').slice(1)],
])(
  '%s: a drop that was killed between any two deletions is repeated until no document names it',
  async (_, documents) => {
    const more = ['past:g2:0', 'times:g2', 'written:g2:0'].map((id): [string, object] => [id, {}])
    for (let deletions = 0; ; deletions++) {
      const all = [...whole('g1'), ...documents, ...more]
      const { bodies, state, drop } = given({ kept: ['g1', 'g2'] }, all, [...indicesOf('g1'), ...indicesOf('g2')])
      state.deletions = deletions
      const isKilled = await drop('g2').then(
        () => false,
        () => true,
      )
      state.deletions = Number.POSITIVE_INFINITY
      if (isKilled) await drop('g2').catch(error => expect(error.message).toContain('there is no generation g2'))
      expect([...bodies.keys()].sort(), `killed after ${deletions}`).toEqual(['generation:g1', 'live', 'position:g1:0'])
      if (!isKilled) break
    }
  },
)

test('a drop gives projectors time to stop writing, also those of another group', async () => {
  const { drop, deleted } = both()
  await drop('g2')
  expect(Math.min(...deleted.map(({ time }) => time))).toBeGreaterThanOrEqual(PROJECTOR_STOP_MS)
})

test.each([3_600_000, -3_600_000])('a clock that is set by %i ms meanwhile changes no wait of a drop', async ahead => {
  const { drop, deleted, state, setClock, time } = both()
  state.onWait = () => setClock(ahead)
  await drop('g2')
  expect(Math.min(...deleted.map(({ time }) => time))).toBeGreaterThanOrEqual(PROJECTOR_STOP_MS)
  expect(time()).toBeLessThan(DROP_WAIT_MS)
})

test('a drop waits until the group is empty and no position has changed for a while', async () => {
  const { bodies, drop, deleted, state } = both()
  state.members = 1
  state.onWait = time => {
    if (time >= 20_000) state.members = 0
    if (time <= 30_000) bodies.set('position:g2:0', positionOf(5, time))
  }
  await drop('g2')
  expect(Math.min(...deleted.map(({ time }) => time))).toBeGreaterThanOrEqual(30_000 + QUIET_MS)
})

test('a drop also watches the documents that do not fit into the first answer', async () => {
  const { bodies, drop, deleted, state } = both()
  state.documentsInAnswer = 1
  // Where nothing is published, only the times change.
  state.onWait = time => void (time <= 30_000 && bodies.set('times:g2', { partitions: { 0: time } }))
  await drop('g2')
  expect(Math.min(...deleted.map(({ time }) => time))).toBeGreaterThanOrEqual(30_000 + QUIET_MS)
})

test.each([
  ['a group has members', 1, false, '1 projectors still keep g2 up'],
  ['a projector of another group writes', 0, true, 'somebody still writes to g2'],
])('nothing is deleted while %s', async (_, members, writes, why) => {
  const { bodies, drop, deleted, state, time } = both()
  state.members = members
  state.onWait = time => void (writes && bodies.set('position:g2:0', positionOf(5, time)))
  await expect(drop('g2')).rejects.toThrow(why)
  expect(deleted).toEqual([])
  expect(time()).toBeGreaterThan(DROP_WAIT_MS)
  // The generation is removed from `kept`, so it can be dropped again.
  expect(bodies.get('live')).toMatchObject({ kept: ['g1'] })
})

test('a swap during a drop keeps what it needs of the previous generation until its floor is written', async () => {
  const { bodies, drop, state } = both()
  bodies.set('live', { generation: 'g2', kept: ['g1', 'g2'], floor: [5] })
  let reads = 0
  state.onRead = id => {
    // The first read is for the source. The second one, just before the change, is for `follows`.
    if (id !== 'generation:g2' || ++reads !== 2) return
    bodies.set('live', { generation: 'g2', kept: ['g1', 'g2'], previous: 'g1', floor: null })
  }
  await drop('g1')
  expect(bodies.get('live')).toMatchObject({ generation: 'g2', kept: ['g2'], previous: null, floor: [5] })
})

test('a drop on another cluster is refused before it changes anything', async () => {
  const { bodies, drop } = given({ kept: ['g1', 'g2'] }, [...whole('g1'), ...whole('g2')], [], 'another')
  await expect(drop('g2')).rejects.toThrow('cluster_id: expected c, got another')
  expect(bodies.get('live')).toEqual({ generation: 'g1', kept: ['g1', 'g2'] })
})

test.each([
  ['a name left by an interrupted rebuild', { kept: ['g1'], building: 'g2' }, [], [], ['building', 'not whole']],
  ['indices without a name', { kept: ['g1'] }, [], indicesOf('g2').slice(0, 2), ['left over', 'not whole']],
  ['a document without indices', { kept: ['g1'] }, whole('g2'), [], ['left over', 'not whole']],
  ['positions alone', { kept: ['g1'] }, whole('g2').slice(1), [], ['left over', 'not whole']],
  ['a whole generation left by an interrupted drop', { kept: ['g1'] }, whole('g2'), indicesOf('g2'), ['left over']],
] satisfies [string, object, [string, object][], string[], string[]][])(
  '%s: it is listed and can be dropped',
  async (_, live, documents, indices, roles) => {
    const its = given(live, [...whole('g1'), ...documents], [...indicesOf('g1'), ...indices])
    expect(await its.list()).toEqual({ g1: ['live'], g2: roles })
    await its.drop('g2')
    expect(await its.list()).toEqual({ g1: ['live'] })
    expect([...its.there].sort()).toEqual(indicesOf('g1').sort())
    expect([...its.bodies.keys()].sort()).toEqual(['generation:g1', 'live', 'position:g1:0'])
    await expect(its.drop('g2')).rejects.toThrow('there is no generation g2')
  },
)
