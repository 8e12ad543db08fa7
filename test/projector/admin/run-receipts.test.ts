/** Receipts of runs: how they wait, and what one of them reads. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../../core/runtime/keep-trying.ts'
import type { Request } from '../../../core/store/elasticsearch/client.ts'
import { createIsIntact } from '../../../projector/admin/is-intact.ts'
import type { NoReceipt } from '../../../projector/admin/read-control.ts'
import type { ReceiptOutcome, RecordLocation } from '../../../projector/admin/receipts.ts'
import {
  createRunReader,
  createRunReceipts,
  type Run,
  type RunOutcome,
  type RunReceipt,
} from '../../../projector/admin/run-receipts.ts'
import {
  RECEIPTS_POLL_TIMEOUT_MS,
  RUN_ORGANIZATIONS_MAX,
  RUN_PARKED_LISTED_MAX,
  RUN_READS_MAX,
  RUNS_AT_ONCE_MAX,
} from '../../../projector/limits.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { sending } from '../../support/answering.ts'
import { Clock } from '../clock.ts'
import { everythingRuns, Held } from '../held.ts'
import { ParkedIndices, recordedIds } from '../parked-indices.ts'

const events: Run = { stream: 'events', topic: 't', partition: 1, partitions: 3, from: 10, to: 19 }

// --- waiting

const RECEIPT: RunReceipt = {
  published: 10,
  applied: 10,
  without_effect: 0,
  parked: 0,
  not_yet: 0,
  parked_records: [],
  has_more: false,
}
const PUBLISHED: ReceiptOutcome = { state: 'published' }
const OTHER_TOPIC: NoReceipt = { state: 'other_topic', live: 't-9' }
const never = new AbortController().signal

const setUp = () => {
  const clock = new Clock()
  const waits = new Held<RecordLocation, ReceiptOutcome>()
  const reads = new Held<Run, RunReceipt | NoReceipt>()
  const signals: AbortSignal[] = []
  const stop = new AbortController()
  const askRun = createRunReceipts(
    { ask: location => waits.call(location), stopping: stop.signal },
    (run, signal) => {
      signals.push(signal)
      return reads.call(run)
    },
    clock.sleep,
  )
  const ask = (run: Run = events, gone: AbortSignal = never) => {
    const asked: { answer: RunOutcome | undefined; error: unknown } = { answer: undefined, error: undefined }
    askRun(run, 10_000, gone).then(
      answer => (asked.answer = answer),
      error => (asked.error = error),
    )
    return asked
  }
  return { clock, waits, reads, signals, stop, ask }
}

test('a run waits as a receipt of its last record, and is read once after that', async () => {
  const { waits, reads, ask } = setUp()
  const asked = ask()
  expect(waits.at(0).argument).toEqual({ stream: 'events', topic: 't', partition: 1, offset: 19 })
  expect([reads.count, asked.answer]).toEqual([0, undefined])
  await waits.at(0).letGo({ state: 'not_yet' })
  await reads.at(0).letGo(RECEIPT)
  expect([reads.count, asked.answer]).toEqual([1, { state: 'read', receipt: RECEIPT }])
})

test.each([
  { state: 'unavailable' },
  { state: 'too_many' },
  { state: 'stopping' },
  { state: 'not_served' },
  OTHER_TOPIC,
] as const)('a wait that ends as $state reads no run', async outcome => {
  const { waits, reads, ask } = setUp()
  const asked = ask()
  await waits.at(0).letGo(outcome)
  expect([reads.count, asked.answer]).toEqual([0, outcome])
})

test('a run has no receipt if the live generation is of another topic after the wait', async () => {
  const { waits, reads, ask } = setUp()
  const asked = ask()
  await waits.at(0).letGo(PUBLISHED)
  await reads.at(0).letGo(OTHER_TOPIC)
  expect(asked.answer).toEqual(OTHER_TOPIC)
})

test('a few runs are read at once, and the others in turn', async () => {
  const { waits, reads, ask } = setUp()
  const all = Array.from({ length: RUN_READS_MAX + 1 }, () => ask())
  while (waits.calls.length > 0) await waits.at(0).letGo(PUBLISHED)
  expect(reads.count).toBe(RUN_READS_MAX)
  await reads.at(0).letGo(RECEIPT)
  expect([reads.count, all.filter(({ answer }) => answer !== undefined).length]).toEqual([RUN_READS_MAX + 1, 1])
})

test('the number of requests for runs is limited; each answer makes room', async () => {
  const { waits, ask } = setUp()
  for (let count = 0; count < RUNS_AT_ONCE_MAX; count++) ask()
  const tooMany = ask()
  await everythingRuns()
  expect([tooMany.answer, waits.count]).toEqual([{ state: 'too_many_runs' }, RUNS_AT_ONCE_MAX])
  await waits.at(0).letGo({ state: 'unavailable' })
  ask()
  expect(waits.count).toBe(RUNS_AT_ONCE_MAX + 1)
})

test('a read without an answer is aborted, also one whose turn does not come, and its client learns that', async () => {
  const { clock, waits, reads, signals, ask } = setUp()
  const all = Array.from({ length: RUN_READS_MAX + 1 }, () => ask())
  while (waits.calls.length > 0) await waits.at(0).letGo(PUBLISHED)
  await clock.move(RECEIPTS_POLL_TIMEOUT_MS)
  expect(signals.map(({ aborted }) => aborted)).toEqual(signals.map(() => true))
  while (reads.calls.length > 0) await reads.at(0).fail(new Unanswered('elasticsearch', 0))
  expect(all.map(({ answer }) => answer)).toEqual(all.map(() => ({ state: 'unavailable' })))
  expect(reads.count).toBe(RUN_READS_MAX)
})

test('a stop aborts the read and answers at once', async () => {
  const { waits, reads, signals, stop, ask } = setUp()
  const asked = ask()
  await waits.at(0).letGo(PUBLISHED)
  stop.abort()
  expect(signals[0]?.aborted).toBe(true)
  await reads.at(0).fail(new Unanswered('elasticsearch', 0))
  expect(asked.answer).toEqual({ state: 'stopping' })
})

test('the read of a client that has disconnected is aborted; a defect is reported', async () => {
  const { waits, reads, signals, ask } = setUp()
  const gone = new AbortController()
  ask(events, gone.signal)
  const asked = ask()
  while (waits.calls.length > 0) await waits.at(0).letGo(PUBLISHED)
  gone.abort()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  await reads.at(1).fail(new TypeError('a defect'))
  expect(asked.error).toEqual(new TypeError('a defect'))
})

// --- reading

/** Organizations of the partition, and of others. */
const orgs = Array.from({ length: 60 }, (_, index) => `org_${index}`)
const [ours, others] = [true, false].map(own => orgs.filter(org => (partitionOf(org, 3) === 1) === own))

type Given = {
  readonly position?: number
  readonly parked?: readonly object[]
  readonly total?: number
  readonly buckets?: readonly object[]
  readonly rest?: number
  readonly status?: number
  /** Shards of the refresh that failed. */
  readonly failed?: number
  /** False: g2 becomes live while the position of g1 is read. */
  readonly isSwapped?: boolean
  /** Of g2. */
  readonly topic?: string
  readonly layout?: { readonly layout: 2 }
  /** Of the position, besides its number. */
  readonly more?: object
  /** The index of parked records was replaced before it is searched. */
  readonly isReplaced?: boolean
}
const read = async (run: Run, given: Given = {}) => {
  const { position = 100, parked = [], total = parked.length, buckets = [], rest = 0, status = 200, failed = 0 } = given
  const requests: Request[] = []
  let isSwapped = given.isSwapped ?? true
  const indices = new ParkedIndices()
  const send = sending(async request => {
    const ofIndices = await indices.answer(request)
    if (ofIndices !== undefined) return ofIndices
    requests.push(request)
    if (request.path === '/_mget') {
      const docs = (request.body as { docs: { _id: string }[] }).docs.map(({ _id }) => {
        if (_id.startsWith('position:g1:')) isSwapped = true
        const live = { kind: 'live', body: { generation: isSwapped ? 'g2' : 'g1' } }
        const [, name] = _id.split('generation:')
        const topic = name === 'g2' ? (given.topic ?? 't') : 't'
        const generation = {
          kind: 'generation',
          body: { generation: name, topic, ...given.layout, ...recordedIds(name ?? '') },
        }
        const other = name ? generation : { kind: 'position', body: { position, ...given.more } }
        const _source = _id === 'live' ? live : other
        return { _id, found: true, _version: 1, _source }
      })
      return { status: 200, body: { docs } }
    }
    if (given.isReplaced) indices.replaced.add('c-g2-parked')
    if (request.path.endsWith('_refresh')) return { status: 200, body: { _shards: { failed } } }
    const hits = { total: { value: total }, hits: parked.map(_source => ({ _source })) }
    return { status, body: { hits, aggregations: { organizations: { buckets, sum_other_doc_count: rest } } } }
  })
  const receipt = createRunReader(
    send,
    'c',
    createIsIntact(send, 'c', () => 0),
  )(run, never)
  return { requests, asked: indices.asked, receipt: await receipt.catch((error: unknown) => error) }
}

test('a run of a replaced index is not known, also if the index is replaced just before the search', async () => {
  expect((await read(events, { isReplaced: true })).receipt).toEqual({ state: 'not_served' })
})

test('a run is not known while a command removes documents', async () => {
  const { requests, receipt } = await read(events, { more: { removing: true } })
  expect([receipt, requests.map(({ path }) => path)]).toEqual([{ state: 'not_served' }, ['/_mget', '/_mget']])
})

test.each([100, 18, 10])(
  'until the partition is read again to its offset, only parked records of a run are known (position %i)',
  async position => {
    const parked = position > 10 ? [{ offset: 12, code: 'rep_unknown' }] : []
    const { requests, receipt } = await read(events, { position, more: { serve_from: 101 }, parked })
    expect(receipt).toEqual({
      ...RECEIPT,
      ...{ published: 0, applied: 0, without_effect: 0 },
      ...{ parked: parked.length, not_yet: 10 - parked.length, parked_records: parked },
    })
    const [parkedSearch, changedSearch] = requests.slice(3).map(({ body }) => JSON.stringify(body))
    expect(parkedSearch).toContain(`{"gte":10,"lt":${Math.min(position, 20)}}`)
    expect(changedSearch).toContain('{"gte":10,"lt":10}')
  },
)

test('of a run that is not published the ids of indices do not matter', async () => {
  const { receipt, asked } = await read(events, { position: 10, isReplaced: true })
  expect([receipt, asked]).toEqual([expect.objectContaining({ not_yet: 10 }), []])
})

test('a run is read with five requests for documents: live generation, its position, parked records, and changes before the position', async () => {
  const { requests, receipt } = await read(events, {
    position: 18,
    parked: [{ offset: 12, code: 'rep_unknown' }],
    buckets: [
      { key: ours?.[0], doc_count: 4 },
      { key: others?.[0], doc_count: 7 },
      { key: ours?.[1], doc_count: 1 },
    ],
  })
  expect(receipt).toEqual({
    published: 7,
    applied: 5,
    without_effect: 2,
    parked: 1,
    not_yet: 2,
    parked_records: [{ offset: 12, code: 'rep_unknown' }],
    has_more: false,
  })
  expect(requests.map(({ path, body }) => [path, (body as { docs?: object[] })?.docs?.[0]])).toEqual([
    ['/_mget', { _index: 'c-control', _id: 'live' }],
    ['/_mget', { _index: 'c-control', _id: 'position:g2:1' }],
    ['/c-g2-parked/_refresh', undefined],
    ['/c-g2-parked/_search', undefined],
    ['/c-g2-reps,c-g2-periods,c-g2-payouts,c-g2-payroll_files/_search', undefined],
  ])
  expect(requests[3]?.body).toMatchObject({ size: RUN_PARKED_LISTED_MAX, sort: [{ offset: 'asc' }] })
  expect(JSON.stringify(requests[3]?.body)).toContain('{"offset":{"gte":10,"lt":18}}')
  expect(JSON.stringify(requests[4]?.body)).toContain('{"seq":{"gte":10,"lt":18}}')
  expect(JSON.stringify(requests[4]?.body)).toContain(`"size":${RUN_ORGANIZATIONS_MAX}`)
  expect([requests[3], requests[4]].map(sent => sent?.query)).toEqual([
    { allow_partial_search_results: false },
    { allow_partial_search_results: false },
  ])
})

test('the changes of a generation that is routed by organization are counted in its one index of records', async () => {
  const { requests } = await read(events, { layout: { layout: 2 } })
  expect(requests.at(-1)?.path).toBe('/c-g2-payouts/_search')
})

test('a run is read of the generation that is live after its position was read', async () => {
  const { requests } = await read(events, { isSwapped: false })
  const asked = requests.flatMap(
    ({ body }) => (body as { docs?: { _id: string }[] })?.docs?.map(({ _id }) => _id) ?? [],
  )
  const ofG2 = ['live', 'position:g2:1', 'generation:g2', 'live']
  expect(asked).toEqual(['live', 'position:g1:1', 'generation:g1', 'live', ...ofG2])
  expect(requests.at(-2)?.path).toBe('/c-g2-parked/_search')
})

test.each([
  ['after a swap', true],
  ['also when the swap comes during the read', false],
])('a run of another topic than that of the live generation is not read, %s', async (_, isSwapped) => {
  const { requests, receipt } = await read(events, { isSwapped, topic: 't-9' })
  expect(receipt).toEqual(OTHER_TOPIC)
  expect(requests.filter(({ path }) => path !== '/_mget')).toEqual([])
  const ofKeys: Run = { ...events, stream: 'api-keys' }
  expect((await read(ofKeys, { topic: 't-9' })).receipt).toMatchObject({ published: 10 })
})

test.each([
  [0, 0, 10],
  [10, 0, 10],
  [11, 1, 9],
  [20, 10, 0],
  [1_000, 10, 0],
])('at position %i, %i offsets are published and %i are not yet', async (position, published, not_yet) => {
  expect((await read(events, { position })).receipt).toMatchObject({ published, not_yet })
})

test('more parked records than it lists are counted, and has_more says so', async () => {
  const parked = Array.from({ length: 2 }, (_, index) => ({ offset: 10 + index, code: 'id_reused' }))
  expect((await read(events, { parked, total: 7 })).receipt).toMatchObject({
    published: 3,
    parked: 7,
    parked_records: parked,
    has_more: true,
  })
})

test('changes of too many organizations are not counted, and those of API keys cannot be', async () => {
  const unknown = { published: 10, applied: null, without_effect: null }
  expect((await read(events, { rest: 1 })).receipt).toMatchObject(unknown)
  const keys = { ...events, stream: 'api-keys' as const, partition: 0 }
  const { requests, receipt } = await read(keys)
  expect(receipt).toMatchObject(unknown)
  expect(requests.map(({ path }) => path)).toEqual([
    '/_mget',
    '/_mget',
    '/c-api-keys-parked/_refresh',
    '/c-api-keys-parked/_search',
  ])
})

test('a search without a whole answer gives no receipt', async () => {
  expect((await read(events, { status: 404 })).receipt).toBeInstanceOf(Unanswered)
})

test('a run is not known while parked records may be missing from the search', async () => {
  const { receipt } = await read(events, { position: 18, failed: 1 })
  expect(receipt).toBeInstanceOf(Unanswered)
})
