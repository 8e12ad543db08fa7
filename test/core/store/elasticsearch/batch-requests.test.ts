/** Small requests of several partitions go together: `createBatcher` in core/store/elasticsearch/client.ts. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { StopError } from '../../../../core/runtime/failures.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import {
  type Answer,
  AnswerTooLong,
  type BatchableKind,
  bulks,
  createBatcher,
  primaryReads,
  type Request,
  replacements,
} from '../../../../core/store/elasticsearch/client.ts'
import { BATCHED_BYTES, BATCHED_IDS, MGET_BYTES, SMALL_BULK_BYTES } from '../../../../core/store/limits.ts'
import { everythingRuns, Held } from '../../../projector/held.ts'
import { sending } from '../../../support/answering.ts'

type Sent = { readonly request: Request; readonly signal: AbortSignal | undefined }

/** Batches requests. The test holds each one on its way to Elasticsearch. */
const setUp = (kind: BatchableKind, ready?: () => Promise<void>) => {
  const sent = new Held<Sent, Answer>()
  const send = createBatcher(
    kind,
    sending((request, signal) => sent.call({ request, signal })),
    ready,
  )
  const outcomes: Record<string, unknown> = {}
  const ask = async (name: string, request: Request, signal?: AbortSignal): Promise<void> => {
    send(request, signal).then(
      answer => {
        outcomes[name] = answer
      },
      (error: unknown) => {
        outcomes[name] = error
      },
    )
    await everythingRuns()
  }
  return { ask, sent, outcomes, underWay: () => sent.calls.map(({ argument }) => argument.request) }
}

const bulkOf = (...ids: string[]): Request => ({
  method: 'POST',
  path: '/_bulk',
  query: { filter_path: 'items' },
  bulk: Buffer.from(ids.map(id => `{"index":{"_index":"i","_id":"${id}","version":1}}\n{"id":"${id}"}\n`).join('')),
})
const items = (...ids: string[]): Answer => ({ status: 200, body: { items: ids.map(_id => ({ index: { _id } })) } })
const readOf = (...ids: string[]): Request => ({
  method: 'POST',
  path: '/_bulk',
  answerBytesMax: 1_000,
  bulk: Buffer.from(ids.map(id => `{"update":{"_index":"i","_id":"${id}","_source":true}}\n{"doc":{}}\n`).join('')),
})
const found = (...ids: string[]): Answer => ({
  status: 200,
  body: { items: ids.map(_id => ({ update: { _id, result: 'noop' } })) },
})
const idsIn = ({ bulk }: Request): string[] =>
  [...String(bulk).matchAll(/"_id":"([^"]*)"/g)].flatMap(([, id]) => id ?? [])
const replacementOf = (id: string): Request => ({
  method: 'PUT',
  path: `/control/_doc/${encodeURIComponent(id)}`,
  query: { if_seq_no: 4, if_primary_term: 1 },
  body: { of: id },
})

describe('requests of several partitions', () => {
  test('wait while one is in flight, then go as one; each gets its own answer', async () => {
    const { ask, sent, outcomes, underWay } = setUp(bulks)
    await ask('a', bulkOf('1'))
    await ask('b', bulkOf('2', '3'))
    await ask('c', bulkOf('4'))
    expect(underWay()).toEqual([bulkOf('1')])
    await sent.at(0).letGo(items('1'))
    expect(underWay()).toEqual([bulkOf('2', '3', '4')])
    await sent.at(0).letGo(items('2', '3', '4'))
    expect(outcomes).toEqual({ a: items('1'), b: items('2', '3'), c: items('4') })
    await ask('d', bulkOf('5'))
    expect(underWay()).toEqual([bulkOf('5')])
  })

  test('do not wait for a large one, and it does not wait for them', async () => {
    const { ask, underWay } = setUp(bulks)
    const large = { ...bulkOf(), bulk: Buffer.alloc(SMALL_BULK_BYTES + 1) }
    await ask('small', bulkOf('1'))
    await ask('large', large)
    expect(underWay()).toEqual([bulkOf('1'), large])
  })

  test('go as one with all that came until they may be sent; so a slow refresh makes one larger request', async () => {
    const refresh = Promise.withResolvers<void>()
    const { ask, underWay } = setUp(bulks, () => refresh.promise)
    const large = { ...bulkOf(), bulk: Buffer.alloc(SMALL_BULK_BYTES + 1) }
    await ask('a', bulkOf('1'))
    await ask('large', large)
    await ask('b', bulkOf('2'))
    expect(underWay()).toEqual([])
    refresh.resolve()
    await everythingRuns()
    expect(underWay()).toEqual(expect.arrayContaining([bulkOf('1', '2'), large]))
    expect(underWay()).toHaveLength(2)
  })

  test('that are small fill one request up to its largest size', async () => {
    const { ask, sent, underWay } = setUp(bulks)
    const bytes = SMALL_BULK_BYTES
    const count = BATCHED_BYTES / bytes
    await ask('first', bulkOf('1'))
    for (let at = 0; at <= count; at++) await ask(String(at), { ...bulkOf(), bulk: Buffer.alloc(bytes) })
    await sent.at(0).letGo(items('1'))
    expect(underWay().map(({ bulk }) => bulk?.length)).toEqual([BATCHED_BYTES])
  })

  test('that are too large together go in groups, one after the other', async () => {
    const { ask, sent, underWay } = setUp(primaryReads)
    const half = Array.from({ length: BATCHED_IDS / 2 }, (_, at) => String(at))
    await ask('first', readOf('0'))
    for (const name of ['a', 'b', 'c']) await ask(name, readOf(...half))
    await sent.at(0).letGo(found('0'))
    expect(underWay()).toEqual([{ ...readOf(...half, ...half), answerBytesMax: MGET_BYTES }])
    await sent.at(0).letGo(found(...half, ...half))
    expect(underWay()).toEqual([readOf(...half)])
  })

  test.each<[string, Answer | Error]>([
    ['is refused as a whole', { status: 413, body: '' }],
    ['is answered with fewer items', items('2')],
    ['is answered with more items', items('2', '3', '4', '5')],
    ['is answered without a body', { status: 200, body: undefined }],
    ['fails for good', new Error('for good')],
  ])('that %s are sent again one by one', async (_, answer) => {
    const { ask, sent, outcomes, underWay } = setUp(bulks)
    await ask('first', bulkOf('1'))
    await ask('a', bulkOf('2'))
    await ask('b', bulkOf('3'))
    await sent.at(0).letGo(items('1'))
    await (answer instanceof Error ? sent.at(0).fail(answer) : sent.at(0).letGo(answer))
    expect(underWay()).toEqual([bulkOf('2'), bulkOf('3')])
    const refused = new Error('only this one')
    await sent.at(0).fail(refused)
    await sent.at(0).letGo(items('3'))
    expect(outcomes).toEqual({ first: items('1'), a: refused, b: items('3') })
  })

  test('that read single documents of any size read many only up to a limit, and then one by one', async () => {
    const { answerBytesMax: _, ...single } = readOf('1')
    const { ask, sent, underWay } = setUp(primaryReads)
    for (const name of ['first', 'a', 'b']) await ask(name, single)
    await sent.at(0).letGo(found('1'))
    expect(underWay()).toEqual([{ ...readOf('1', '1'), answerBytesMax: MGET_BYTES }])
    await sent.at(0).fail(new AnswerTooLong())
    expect(underWay()).toEqual([single, single])
  })

  test('that get no answer fail as temporary errors, each on its own', async () => {
    const { ask, sent, outcomes } = setUp(bulks)
    await ask('first', bulkOf('1'))
    await ask('a', bulkOf('2'))
    await ask('b', bulkOf('3'))
    await sent.at(0).fail(new Unanswered('elasticsearch', 0))
    const unavailable = new Unanswered('elasticsearch', 503)
    await sent.at(0).fail(unavailable)
    expect(outcomes).toEqual({ first: new Unanswered('elasticsearch', 0), a: unavailable, b: unavailable })
  })

  test('are aborted once nobody waits for any of them, and not earlier', async () => {
    const { ask, sent, outcomes } = setUp(bulks)
    const [one, other] = [new AbortController(), new AbortController()]
    await ask('first', bulkOf('1'))
    await ask('a', bulkOf('2'), one.signal)
    await ask('b', bulkOf('3'), other.signal)
    await sent.at(0).letGo(items('1'))
    const { signal } = sent.at(0).argument
    one.abort()
    expect(signal?.aborted).toBe(false)
    other.abort()
    expect(signal?.aborted).toBe(true)
    await sent.at(0).fail(new Unanswered('elasticsearch', 0))
    expect(outcomes).toMatchObject({ a: new Unanswered('elasticsearch', 0), b: new Unanswered('elasticsearch', 0) })
  })

  test('are not sent if nobody waits for them any more', async () => {
    const { ask, sent, outcomes, underWay } = setUp(bulks)
    const waiting = new AbortController()
    await ask('first', bulkOf('1'))
    await ask('a', bulkOf('2'), waiting.signal)
    await ask('b', bulkOf('3'))
    waiting.abort(new Error('closed'))
    await sent.at(0).letGo(items('1'))
    expect(underWay()).toEqual([bulkOf('3')])
    expect(outcomes.a).toEqual(new Error('closed'))
  })

  test('get the same answers as alone, whatever is batched together', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 })
    await fc.assert(
      fc.asyncProperty(sizes, async sizes => {
        const send = createBatcher(
          primaryReads,
          sending(async request => {
            await everythingRuns()
            return found(...idsIn(request))
          }),
        )
        const asked = sizes.map((size, place) => Array.from({ length: size }, (_, at) => `${place}-${at}`))
        const answers = await Promise.all(asked.map(ids => send(readOf(...ids))))
        expect(answers).toEqual(asked.map(ids => found(...ids)))
      }),
    )
  })
})

describe('positions', () => {
  const item = (id: string, more: object) => ({ index: { _index: 'control', _id: id, ...more } })
  const started = async () => {
    const all = setUp(replacements)
    await all.ask('first', replacementOf('position:g1:0'))
    await all.ask('a', replacementOf('position:g1:1'))
    await all.ask('b', replacementOf('position:g1:2'))
    await all.sent.at(0).letGo({ status: 200, body: {} })
    return all
  }

  test('go as one bulk request, and each is replaced only in the version last seen', async () => {
    const { underWay, sent, outcomes } = await started()
    const operation = (id: string) =>
      `{"index":{"_index":"control","_id":"${id}","if_seq_no":4,"if_primary_term":1}}\n{"of":"${id}"}\n`
    const bulk = Buffer.from(operation('position:g1:1') + operation('position:g1:2'))
    const query = { pipeline: '_none', list_executed_pipelines: true }
    expect(underWay()).toEqual([{ method: 'POST', path: '/_bulk', query, bulk }])
    const written = { status: 200, _seq_no: 5, _primary_term: 1 }
    const conflict = { status: 409, error: { type: 'version_conflict_engine_exception' } }
    const answered = [item('position:g1:1', written), item('position:g1:2', conflict)]
    await sent.at(0).letGo({ status: 200, body: { items: answered } })
    expect(outcomes).toMatchObject({
      a: { status: 200, body: { _seq_no: 5, _primary_term: 1 } },
      b: { status: 409 },
    })
  })

  test.each([{ status: 429 }, { status: 503 }, { status: 403, error: { type: 'cluster_block_exception' } }])(
    'with a temporary refusal of one item, %o, are tried again only for that item',
    async refused => {
      const { sent, outcomes } = await started()
      const answered = [item('position:g1:1', refused), item('position:g1:2', { status: 200 })]
      await sent.at(0).letGo({ status: 200, body: { items: answered } })
      expect(outcomes.a).toEqual(new Unanswered('elasticsearch', refused.status, refused.error?.type, 'control'))
      expect(outcomes.b).toMatchObject({ status: 200 })
    },
  )

  test.each([
    ['of another document', item('position:g1:9', { status: 200 })],
    ['of another index', { index: { _index: 'other', _id: 'position:g1:1', status: 200 } }],
    ['without a status', item('position:g1:1', {})],
    ['that failed in a way that alone would stop', item('position:g1:1', { status: 500 })],
    ['refused for good', item('position:g1:1', { status: 400, error: { type: 'mapper_parsing_exception' } })],
    ['that is missing', undefined],
  ])('with an item %s are sent again one by one', async (_, strange) => {
    const { sent, underWay } = await started()
    await sent.at(0).letGo({ status: 200, body: { items: [strange, item('position:g1:2', { status: 200 })] } })
    expect(underWay()).toEqual([replacementOf('position:g1:1'), replacementOf('position:g1:2')])
  })

  test.each([
    ['dropped', { status: 200, result: 'noop' }],
    ['may have changed', { status: 200, result: 'updated', executed_pipelines: ['x'] }],
  ])('of which an ingest pipeline %s one end with index_unsuitable, and none is sent again', async (_, through) => {
    const { sent, underWay, outcomes } = await started()
    const answered = [item('position:g1:1', through), item('position:g1:2', { status: 200 })]
    await sent.at(0).letGo({ status: 200, body: { items: answered } })
    expect(underWay()).toEqual([])
    const unsuitable = { code: 'index_unsuitable', where: { index: 'control' } }
    expect(outcomes).toMatchObject({ a: unsuitable, b: unsuitable })
  })

  test('are sent again one by one if the combined request is refused for good', async () => {
    const { sent, underWay } = await started()
    await sent.at(0).fail(new StopError('write_refused', 'Elasticsearch answers 405'))
    expect(underWay()).toEqual([replacementOf('position:g1:1'), replacementOf('position:g1:2')])
  })
})
