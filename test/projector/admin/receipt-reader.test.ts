/** Reading the receipts of records from Elasticsearch. */
import { expect, test } from 'vitest'
import { AnswerTooLong } from '../../../core/store/elasticsearch/client.ts'
import { INTACT_REMEMBERED_MS } from '../../../core/store/limits.ts'
import { createIsIntact } from '../../../projector/admin/is-intact.ts'
import { createReceiptReader, type RecordLocation } from '../../../projector/admin/receipts.ts'
import { storedNameOf } from '../../../schemas/stored/live-names.ts'
import { primariesAnswer, sending, updatesIn } from '../../support/answering.ts'
import { ParkedIndices, recordedIds } from '../parked-indices.ts'

const NOT_YET = { state: 'not_yet' } as const
const PUBLISHED = { state: 'published' } as const
const NOT_SERVED = { state: 'not_served' } as const

const at = (offset: number, partition = 0): RecordLocation => ({
  stream: 'events',
  topic: 'commission.events',
  partition,
  offset,
})

type Documents = Record<string, object>
type MultiGet = { _index: string; _id: string; _source?: string[] }[]
const live = (generation: string) => ({ kind: 'live', body: { generation: storedNameOf({ generation, layout: 3 }) } })
const position = (position: number, more: object = {}) => ({ kind: 'position', body: { position, ...more } })
const generation = (generation: string, topic = 'commission.events', more: object = {}) => ({
  kind: 'generation',
  body: { generation, topic, ...recordedIds(generation), ...more },
})
const otherThan = (live: string) => ({ state: 'other_topic', live })

/**
 * Elasticsearch with these documents, by index and id. A test may change them between two requests. `oldCopies` answer
 * multi-gets. Generations are of one topic, unless a test has their documents. `requests` are those for documents.
 */
const setUp = (documents: Documents, before = (_asked: string[]): void => undefined, oldCopies = documents) => {
  const requests: string[][] = []
  const indices = new ParkedIndices()
  const send = sending(async request => {
    const ofIndices = await indices.answer(request)
    if (ofIndices !== undefined) return ofIndices
    const { path, body, bulk } = request
    expect(['/_mget', '/_bulk']).toContain(path)
    const { docs } = body === undefined ? { docs: undefined } : (body as { docs: MultiGet })
    const asked = docs
      ? docs.map(({ _index, _id, _source = [] }) => [_index, _id, ..._source].join('/'))
      : updatesIn(bulk).map(({ _index, _id, _source }) => [_index, _id, ...(_source?.includes ?? [])].join('/'))
    before(asked)
    requests.push(asked)
    if (docs === undefined) return primariesAnswer(request, (index, id) => documents[`${index}/${id}`])
    const found = docs.map(({ _index, _id }) => {
      const [, name] = _id.split('generation:')
      const _source = oldCopies[`${_index}/${_id}`] ?? (name && generation(name))
      return { _id, found: _source !== undefined, _version: 1, _source }
    })
    return { status: 200, body: { docs: found } }
  })
  const clock = { now: 0 }
  const read = createReceiptReader(
    send,
    'c',
    createIsIntact(send, 'c', () => clock.now),
  )
  const look = (...places: RecordLocation[]) => read(places, new AbortController().signal)
  return { look, requests, indices, clock }
}

const key: RecordLocation = { stream: 'api-keys', topic: 'commission.api-keys', partition: 0, offset: 3 }

test('one look-up tells published, parked and pending records apart, with three requests for the documents of all of them', async () => {
  const { look, requests } = setUp({
    'c-control/live': live('g2'),
    'c-control/position:g2:0': position(10),
    'c-control/position:g2:1': position(5),
    'c-control/position:api-keys:0': position(4),
    'c-g2-parked/commission.events:0:8': { code: 'rep_unknown' },
    'c-g2-parked/commission.events:1:5': { code: 'id_reused' },
    'c-api-keys-parked/commission.api-keys:0:3': { code: 'key_unknown' },
    // Of a generation that is not live.
    'c-control/position:g1:1': position(100),
    'c-g1-parked/commission.events:0:9': { code: 'id_reused' },
  })
  expect(await look(at(9), at(8), at(10), at(4, 1), at(5, 1), at(8), key)).toEqual([
    PUBLISHED,
    { state: 'parked', code: 'rep_unknown' },
    NOT_YET,
    PUBLISHED,
    // A parked record is reported once readers may see everything before it.
    NOT_YET,
    { state: 'parked', code: 'rep_unknown' },
    { state: 'parked', code: 'key_unknown' },
  ])
  expect(requests).toEqual([
    ['c-control/live'],
    [
      'c-control/position:g2:0',
      'c-control/position:g2:1',
      'c-control/position:api-keys:0',
      'c-control/generation:g2',
      'c-control/generation:api-keys',
      'c-control/live',
    ],
    [
      'c-g2-parked/commission.events:0:9/code',
      'c-g2-parked/commission.events:0:8/code',
      'c-g2-parked/commission.events:1:4/code',
      'c-api-keys-parked/commission.api-keys:0:3/code',
    ],
  ])
})

test('a look-up never reports as published a record that is parked during the look-up', async () => {
  const documents: Documents = { 'c-control/live': live('g1'), 'c-control/position:g1:0': position(8) }
  // The projector parks the record between any two requests: the worst moment.
  for (const moment of ['c-control/live', 'c-control/position:g1:0', 'c-g1-parked/commission.events:0:8/code']) {
    const all = { ...documents }
    const { look } = setUp(all, asked => {
      if (!asked.includes(moment)) return
      all['c-g1-parked/commission.events:0:8'] = { code: 'rep_unknown' }
      all['c-control/position:g1:0'] = position(9)
    })
    expect([NOT_YET, { state: 'parked', code: 'rep_unknown' }]).toContainEqual((await look(at(8)))[0])
  }
})

test('a look-up never reports as published a parked record that an old copy of its shard lacks', async () => {
  const control = { 'c-control/live': live('g1'), 'c-control/position:g1:0': position(9) }
  const documents = { ...control, 'c-g1-parked/commission.events:0:8': { code: 'rep_unknown' } }
  expect(await setUp(documents, undefined, control).look(at(8))).toEqual([{ state: 'parked', code: 'rep_unknown' }])
})

test('a look-up follows a swap of generations', async () => {
  const documents: Documents = {
    'c-control/live': live('g1'),
    'c-control/position:g1:0': position(8),
    'c-control/position:g2:0': position(9),
    'c-g2-parked/commission.events:0:8': { code: 'rep_unknown' },
  }
  const { look } = setUp(documents)
  expect(await look(at(8))).toEqual([NOT_YET])
  documents['c-control/live'] = live('g2')
  expect(await look(at(8))).toEqual([{ state: 'parked', code: 'rep_unknown' }])
})

test('a look-up during a swap never reports as published what only the generation before has decided since', async () => {
  const documents: Documents = {
    'c-control/live': live('g1'),
    'c-control/position:g1:0': position(8),
    'c-control/position:g2:0': position(8),
  }
  const { look } = setUp(documents, asked => {
    if (!asked.includes('c-control/position:g1:0')) return
    // After the swap both have decided the record, each alone: g1 applied it, and readers see that g2 parked it.
    documents['c-control/live'] = live('g2')
    for (const generation of ['g1', 'g2']) documents[`c-control/position:${generation}:0`] = position(9)
    documents['c-g2-parked/commission.events:0:8'] = { code: 'rep_unknown' }
  })
  expect(await look(at(8))).toEqual([{ state: 'parked', code: 'rep_unknown' }])
})

const PARKED_ID = 'c-g1-parked/commission.events:0:8'
/** The live generation g1 parks the record 8 of partition 0, and has published more. */
const parkedLive = (): Documents => ({
  'c-control/live': live('g1'),
  'c-control/position:g1:0': position(10),
  'c-control/position:g1:1': position(10),
  'c-control/position:api-keys:0': position(4),
  [PARKED_ID]: { code: 'rep_unknown' },
})

test.each<[string, (indices: ParkedIndices, documents: Documents) => unknown]>([
  ['its index was restored, or made anew', ({ replaced }) => replaced.add('c-g1-parked')],
  ['its index is not there', ({ indices }) => indices.delete('c-g1-parked')],
  ['its shard was allocated empty', ({ lost }) => lost.add('c-g1-parked')],
  [
    'a projector has found that a shard lost documents',
    (_, documents) =>
      Object.assign(documents, {
        'c-control/generation:g1': generation('g1', 'commission.events', { lost: 'c-g1-parked/0' }),
      }),
  ],
])('a parked record that is gone is never reported as published: %s', async (_, replace) => {
  const documents = parkedLive()
  const { look, indices, clock } = setUp(documents)
  expect(await look(at(8))).toEqual([{ state: 'parked', code: 'rep_unknown' }])
  delete documents[PARKED_ID]
  replace(indices, documents)
  clock.now = INTACT_REMEMBERED_MS
  // Keys have indices of their own.
  expect(await look(at(8), at(8, 1), key)).toEqual([NOT_SERVED, NOT_SERVED, PUBLISHED])
})

test('an index that is replaced just before its documents are read has no receipt', async () => {
  const documents = parkedLive()
  const { look, indices } = setUp(documents, asked => {
    if (!asked.includes(`${PARKED_ID}/code`)) return
    delete documents[PARKED_ID]
    indices.replaced.add('c-g1-parked')
  })
  expect(await look(at(8))).toEqual([NOT_SERVED])
})

test.each([0, 11])(
  'while a command removes documents of a partition only the other ones have receipts (served from %i)',
  async serve_from => {
    const documents = parkedLive()
    delete documents[PARKED_ID]
    documents['c-control/position:g1:0'] = position(10, { removing: true, serve_from })
    const { look } = setUp(documents)
    expect(await look(at(8), at(12), at(8, 1), key)).toEqual([NOT_SERVED, NOT_SERVED, PUBLISHED, PUBLISHED])
    documents['c-control/position:g1:0'] = position(11)
    expect(await look(at(8), at(12))).toEqual([PUBLISHED, NOT_YET])
  },
)

test('until a partition is read again to its offset, records parked before its position are parked, all others not yet', async () => {
  const documents = parkedLive()
  // Of the reading before: the new one may decide otherwise.
  documents['c-g1-parked/commission.events:0:10'] = { code: 'id_reused' }
  documents['c-control/position:g1:0'] = position(10, { serve_from: 11 })
  const { look, indices, clock } = setUp(documents)
  const parked = { state: 'parked', code: 'rep_unknown' }
  const all = [at(7), at(8), at(10), at(12), at(8, 1), key]
  expect(await look(...all)).toEqual([NOT_YET, parked, NOT_YET, NOT_YET, PUBLISHED, PUBLISHED])
  documents['c-control/position:g1:0'] = position(11, { serve_from: 11 })
  expect((await look(...all)).slice(0, 4)).toEqual([PUBLISHED, parked, { state: 'parked', code: 'id_reused' }, NOT_YET])
  documents['c-control/position:g1:0'] = position(10, { serve_from: 11 })
  indices.replaced.add('c-g1-parked')
  clock.now = INTACT_REMEMBERED_MS
  expect(await look(at(7), at(8), at(12))).toEqual([NOT_SERVED, NOT_SERVED, NOT_YET])
})

test('while nothing is published yet a look-up asks for no ids of indices', async () => {
  const { look, indices } = setUp(parkedLive())
  expect(await look(at(10), at(11, 1), { ...key, offset: 4 })).toEqual([NOT_YET, NOT_YET, NOT_YET])
  expect(indices.asked).toEqual([])
})

test('without the id of a shard of parked records nobody says that a record is published; others do not count', async () => {
  const { look, indices } = setUp(parkedLive())
  indices.starting.add('c-g1-parked/0')
  await expect(look(at(8, 1))).rejects.toMatchObject({ name: 'Unanswered', status: 503 })
  indices.starting.clear()
  indices.starting.add('c-control/0')
  expect(await look(at(8, 1))).toEqual([PUBLISHED])
})

test('the ids of indices are asked for once a second, whatever they were', async () => {
  const { look, indices, clock } = setUp(parkedLive())
  const ids = ['GET /_security/user/_privileges', 'GET /_security/_authenticate', 'GET /c-*/_settings']
  const looking = async (receipt: object, asked: string[]) => {
    expect([await look(at(8, 1)), indices.asked.splice(0)]).toEqual([[receipt], asked])
  }
  await looking(PUBLISHED, [...ids, 'GET /c-*/_stats/get'])
  indices.replaced.add('c-g1-parked')
  await looking(PUBLISHED, [])
  clock.now = INTACT_REMEMBERED_MS
  await looking(NOT_SERVED, ids)
  indices.replaced.clear()
  await looking(NOT_SERVED, [])
  clock.now = 2 * INTACT_REMEMBERED_MS
  await looking(PUBLISHED, [...ids, 'GET /c-*/_stats/get'])
})

const ofOldTopic = at(5, 3)
const ofNewTopic: RecordLocation = { ...at(5, 7), topic: 'commission.events-9' }
/** g2 is of a topic with more partitions. Both generations have published what is asked for. */
const growing = (live: object): Documents => ({
  'c-control/live': live,
  'c-control/generation:g2': generation('g2', 'commission.events-9'),
  'c-control/position:g1:3': position(9_000),
  'c-control/position:g2:3': position(9_000),
  'c-control/position:g2:7': position(9_000),
  'c-control/position:api-keys:0': position(4),
})

test('only records of the topic of the live generation have a receipt, before a topic grows and after it', async () => {
  const documents = growing(live('g1'))
  const { look, requests } = setUp(documents)
  const refusedBefore = otherThan('commission.events')
  expect(await look(ofOldTopic, ofNewTopic, key)).toEqual([PUBLISHED, refusedBefore, PUBLISHED])
  expect(await look(ofNewTopic)).toEqual([refusedBefore])
  documents['c-control/live'] = live('g2')
  // Parked by the generation before: the live one has no such document.
  documents['c-g1-parked/commission.events:3:5'] = { code: 'rep_unknown' }
  const refusedAfter = otherThan('commission.events-9')
  expect(await look(ofOldTopic, ofNewTopic, key)).toEqual([refusedAfter, PUBLISHED, PUBLISHED])
  expect(requests).toHaveLength(3 + 2 + 3)
})

test('a topic that grows during a look-up leaves its records without a receipt', async () => {
  const documents = growing(live('g1'))
  const { look } = setUp(documents, asked => {
    if (asked.includes('c-control/position:g1:3')) documents['c-control/live'] = live('g2')
  })
  expect(await look(ofOldTopic)).toEqual([otherThan('commission.events-9')])
})

test.each(['c-control/live', 'c-control/position:g1:0'])('without %s a look-up fails', async missing => {
  const documents: Documents = { 'c-control/live': live('g1'), 'c-control/position:g1:0': position(8) }
  delete documents[missing]
  await expect(setUp(documents).look(at(7))).rejects.toThrow(expect.objectContaining({ code: 'index_missing' }))
})

test('records left out of an incomplete response wait for the next look-up', async () => {
  const sources: Documents = {
    live: live('g1'),
    'generation:g1': generation('g1'),
    'position:g1:0': position(8),
  }
  const indices = new ParkedIndices()
  const halved = sending(async request => {
    const ofIndices = await indices.answer(request)
    if (ofIndices !== undefined) return ofIndices
    if (request.bulk !== undefined) {
      if (updatesIn(request.bulk).length > 2) throw new AnswerTooLong()
      return primariesAnswer(request, () => undefined)
    }
    const { docs } = request.body as { docs: { _id: string }[] }
    const found = docs.map(({ _id }) => ({ _id, found: _id in sources, _version: 1, _source: sources[_id] }))
    return { status: 200, body: { docs: found } }
  })
  const { signal } = new AbortController()
  const isIntact = createIsIntact(halved, 'c', () => 0)
  expect(await createReceiptReader(halved, 'c', isIntact)([at(1), at(2), at(3), at(4)], signal)).toEqual([
    PUBLISHED,
    PUBLISHED,
    NOT_YET,
    NOT_YET,
  ])
})
