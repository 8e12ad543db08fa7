import { describe, expect, test } from 'vitest'
import { serialize } from '../../../../core/ledger/decide/project.ts'
import { type DocumentChange, documentChangeOf, refOf } from '../../../../core/ledger/rules/state.ts'
import { StopError } from '../../../../core/runtime/failures.ts'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { pack, type WriteSteps, write as writeDocuments } from '../../../../core/store/documents/documents.ts'
import type { Request } from '../../../../core/store/elasticsearch/client.ts'
import { BULK_BYTES, BULK_DOCUMENTS } from '../../../../core/store/limits.ts'
import { type Found, getting, sending } from '../../../support/answering.ts'
import { layoutIn } from '../../../support/layout.ts'

const change = (id: string, version: number, body: unknown = { id }): DocumentChange =>
  documentChangeOf(refOf('statements', id), version, { org_id: 'org_1', seq: version, body })

type Item = { _index: string; _id: string; version: number; source: string }
type ItemAnswer = number | { status: number; type?: string }
type Told = { status: number; body?: unknown }

const write = (changes: readonly DocumentChange[], steps: WriteSteps): Promise<void> =>
  writeDocuments(
    pack(
      changes.map(serialize),
      layoutIn(place => `test-${place}`),
    ),
    steps,
  )

/** The documents of a bulk request, parsed from the lines that are sent. */
const itemsOf = ({ bulk }: Request): Item[] => {
  const lines = String(bulk).split('\n')
  expect(lines.pop()).toBe('')
  return lines.flatMap((line, at) => {
    if (at % 2 === 1) return []
    const { index, ...others } = JSON.parse(line)
    expect([Object.keys(others), Object.keys(index)]).toEqual([[], ['_index', '_id', 'version', 'version_type']])
    expect(index.version_type).toBe('external')
    return [{ ...index, source: lines[at + 1] }]
  })
}

/** An Elasticsearch that gives these answers to the first bulk requests, and then accepts everything. */
const elasticsearch = (...answers: ((items: Item[]) => Told)[]) => {
  const sent: Item[][] = []
  const asked: string[][] = []
  const pauses: number[] = []
  const refusals: (string | undefined)[] = []
  const counted: Record<string, number> = {}
  const stored = new Map<string, Found>()
  const steps: WriteSteps = {
    request: sending(async request => {
      expect(request).toMatchObject({ method: 'POST', path: '/_bulk' })
      const items = itemsOf(request)
      sent.push(items)
      const { status, body } = (answers.shift() ?? written)(items)
      return { status, body }
    }),
    getDocuments: getting(async docs => {
      asked.push(docs.map(({ _id }) => _id))
      return docs.map(({ _id }) => ({ _id, ...(stored.get(_id) ?? { found: false }) }))
    }),
    pause: async attempt => void pauses.push(attempt),
    count: (outcome, items) => {
      counted[outcome] = (counted[outcome] ?? 0) + items
    },
    onRefused: reason => void refusals.push(reason),
  }
  const ids = () => sent.map(items => items.map(({ _id }) => _id))
  return { steps, sent, ids, asked, pauses, refusals, counted, stored }
}

const answerOf = ({ _index, _id }: Item, answer: ItemAnswer) => {
  const { status, type } = typeof answer === 'number' ? { status: answer, type: undefined } : answer
  return { index: { _index, _id, status, ...(type && { error: { type, reason: 'quotes a document' } }) } }
}
const perItem =
  (...answers: ItemAnswer[]) =>
  (items: Item[]): Told => ({
    status: 200,
    body: { items: items.map((item, at) => answerOf(item, answers[at] ?? 201)) },
  })
const written = perItem()

const stopOf = async (writing: Promise<void>): Promise<StopError> => {
  const error = await writing.catch((reason: unknown) => reason)
  return error instanceof StopError ? error : expect.unreachable(`not stopped: ${error}`)
}

test('nothing is sent if there is nothing to write', async () => {
  const { steps, sent } = elasticsearch()
  await write([], steps)
  expect(sent).toEqual([])
})

test('documents that are sent again in another order keep their content, even if all have the same length', async () => {
  const { steps, sent, stored } = elasticsearch(perItem(409, 201, 201, 429))
  stored.set('a', { found: true, _version: 1, _source: {} })
  const changes = ['a', 'b', 'c', 'd'].map((id, at) => change(id, 2 + at))
  await write(changes, steps)
  // First the documents refused for now, then those whose stored version is lower.
  expect(sent[1]).toEqual([sent[0]?.[3], sent[0]?.[0]])
})

describe('a temporary failure is retried only for its documents:', () => {
  test.each<ItemAnswer>([
    408,
    429,
    502,
    503,
    504,
    { status: 403, type: 'cluster_block_exception' },
    { status: 400, type: 'index_closed_exception' },
    { status: 429, type: 'es_rejected_execution_exception' },
    { status: 503, type: 'unavailable_shards_exception' },
  ])('after %j', async failure => {
    const answers = [perItem(201, failure, 200, failure), perItem(failure, 201)]
    const { steps, ids, pauses, refusals, counted } = elasticsearch(...answers)
    await write(
      ['a', 'b', 'c', 'd'].map(id => change(id, 1)),
      steps,
    )
    expect(ids()).toEqual([['a', 'b', 'c', 'd'], ['b', 'd'], ['b']])
    expect(pauses).toEqual([0, 1])
    // Reported while any document is refused, and not longer.
    const { status, type = 'no type' } = typeof failure === 'number' ? { status: failure } : failure
    const said = `Elasticsearch refuses documents for now: ${status}, ${type}, index test-statements`
    expect(refusals).toEqual([said, said, said, undefined])
    expect(counted).toEqual({ written: 4, stale: 0, retried: 3 })
  })

  test.each([
    [new Unanswered('elasticsearch', 503), 8],
    // A 413 may have been lost with the connection, so the requests are halved, but not without end.
    [new Unanswered('elasticsearch', 429), 1],
    [new Unanswered('elasticsearch', 0), 1],
  ])('for all documents after %s', async (failure, megabytes) => {
    const failing = (): never => {
      throw failure
    }
    const { steps, ids, refusals, counted } = elasticsearch(...Array(6).fill(failing))
    const changes = Array.from({ length: 16 }, (_, at) => change(`${at}`, 1, { text: 'x'.repeat(520_000) }))
    await write(changes, steps)
    expect(refusals.slice(0, 6)).toEqual(Array(6).fill(failure.message))
    expect(refusals.at(-1)).toBeUndefined()
    const taken = ids().slice(6)
    expect(taken.flat()).toEqual(changes.map(({ id }) => id))
    expect(Math.max(...taken.map(({ length }) => length))).toBe(2 * megabytes)
    expect(counted.written).toBe(16)
  })

  test.each([
    [503, 16],
    // A shard without memory may never take them all at once.
    [429, 2],
  ])('fewer at a time if items are refused for lack of memory: after %i', async (failure, documents) => {
    const refused = (items: Item[]) => perItem(...items.map(() => failure))(items)
    const { steps, ids, counted } = elasticsearch(...Array(6).fill(refused))
    const changes = Array.from({ length: 16 }, (_, at) => change(`${at}`, 1, { text: 'x'.repeat(500_000) }))
    await write(changes, steps)
    const taken = ids().slice(6)
    expect(taken.flat().toSorted()).toEqual(changes.map(({ id }) => id).toSorted())
    expect(Math.max(...taken.map(({ length }) => length))).toBe(documents)
    expect(counted.written).toBe(16)
  })

  test('the pauses begin anew once something was written', async () => {
    const refused = perItem(429, 429)
    const { steps, ids, pauses } = elasticsearch(refused, refused, refused, written, perItem(503))
    await write(
      ['a', 'b'].map(id => change(id, 1, { text: 'x'.repeat(600_000) })),
      steps,
    )
    expect(ids()).toEqual([['a', 'b'], ['a', 'b'], ['a', 'b'], ['a'], ['b'], ['b']])
    expect(pauses).toEqual([0, 1, 2, 0])
  })

  test('not after an error that stops the projector', async () => {
    const { steps, sent } = elasticsearch(() => {
      throw new StopError('access_refused', 'Elasticsearch answers 401')
    })
    expect((await stopOf(write([change('a', 1)], steps))).code).toBe('access_refused')
    expect(sent).toHaveLength(1)
  })

  test('without a limit of attempts', async () => {
    const refusals = Array.from({ length: 500 }, () => perItem(503))
    const { steps, pauses } = elasticsearch(...refusals)
    await write([change('a', 1)], steps)
    expect(pauses).toHaveLength(500)
  })
})

describe('a version conflict is checked', () => {
  const body = { amount: '1.00', list: [{ x: null }] }
  const source = { org_id: 'org_1', seq: 5, body_bytes: JSON.stringify(body).length, body }

  test('the same version with the same content is fine, in any order of keys', async () => {
    const { steps, stored, ids, asked, counted } = elasticsearch(perItem(409))
    const { body: _, ...fields } = source
    stored.set('a', { found: true, _version: 5, _source: { body: { list: [{ x: null }], amount: '1.00' }, ...fields } })
    await write([change('a', 5, body)], steps)
    expect([ids(), asked]).toEqual([[['a']], [['a']]])
    expect(counted).toEqual({ written: 0, stale: 1 })
  })

  test.each([
    ['an amount with other digits', { ...source, body: { ...body, amount: '1.0' } }],
    ['an extra field', { ...source, extra: 1 }],
    ['a missing field', { seq: 5, body_bytes: source.body_bytes, body }],
    ['no content', undefined],
  ])('the same version with %s stops the projector', async (_, _source) => {
    const { steps, stored } = elasticsearch(perItem(409))
    stored.set('a', { found: true, _version: 5, _source })
    const { code, where } = await stopOf(write([change('a', 5, body)], steps))
    expect([code, where]).toEqual(['content_differs', { index: 'test-statements', version: 5 }])
  })

  test('a parked record written by an older version, without raw header names, counts as the same', async () => {
    const parked = (headers: unknown[][]) => ({ key: null, headers, value: null })
    const [plain, raw] = [
      ['x', 'MQ=='],
      ['x\ufffd', null, 'eP8='],
    ]
    const older = parked([plain, raw.slice(0, 2)])
    const storedAs = async (body: object, body_bytes = Buffer.byteLength(JSON.stringify(body))) => {
      const { steps, stored } = elasticsearch(perItem(409))
      stored.set('a', { found: true, _version: 5, _source: { org_id: 'org_1', seq: 5, body_bytes, body } })
      await write([change('a', 5, parked([plain, raw]))], steps)
    }
    await storedAs(older)
    await expect(storedAs(older, 1)).rejects.toMatchObject({ code: 'content_differs' })
    await expect(storedAs(parked([plain]))).rejects.toMatchObject({ code: 'content_differs' })
  })

  test('a higher version is a later state, whatever its content', async () => {
    const { steps, stored, ids } = elasticsearch(perItem(409))
    stored.set('a', { found: true, _version: 6, _source: { other: true } })
    await write([change('a', 5, body)], steps)
    expect(ids()).toEqual([['a']])
  })

  test('a higher version stops if no projector wrote it: its document ends before our change', async () => {
    const ended = async (seq: number) => {
      const { steps, stored } = elasticsearch(perItem(409))
      stored.set('a', { found: true, _version: 6, _source: { org_id: 'org_1', seq } })
      await write([change('a', 5, body)], steps)
    }
    await ended(6)
    await ended(5)
    await expect(ended(4)).rejects.toMatchObject({ code: 'content_differs', where: { version: 5 } })
  })

  test('a lower version, or a missing document, is written again', async () => {
    const { steps, stored, ids, counted, refusals } = elasticsearch(perItem(409, 409, 409))
    stored.set('a', { found: true, _version: 4, _source: {} })
    stored.set('c', { found: true, _version: 9, _source: {} })
    await write([change('a', 5), change('b', 5), change('c', 5)], steps)
    expect(ids()).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b'],
    ])
    expect(counted).toEqual({ written: 2, stale: 1, retried: 2 })
    expect(refusals).toEqual([expect.stringContaining('409'), undefined])
  })

  test('large documents are read in several responses', async () => {
    const many = Array.from({ length: 5 }, (_, at) => change(`${at}`, 5))
    const { steps, stored, asked } = elasticsearch(items => perItem(...items.map(() => 409))(items))
    for (const { id } of many) stored.set(id, { found: true, _version: 6, _source: {} })
    await write(many, { ...steps, getDocuments: async docs => steps.getDocuments(docs.slice(0, 2)) })
    expect(asked).toEqual([['0', '1'], ['2', '3'], ['4']])
  })
})

describe('a permanent refusal stops the projector', () => {
  test.each<[ItemAnswer, string]>([
    [{ status: 400, type: 'document_parsing_exception' }, 'write_refused'],
    [{ status: 400, type: 'strict_dynamic_mapping_exception' }, 'write_refused'],
    [{ status: 403, type: 'security_exception' }, 'write_refused'],
    [{ status: 404, type: 'index_not_found_exception' }, 'index_missing'],
    [{ status: 500 }, 'write_refused'],
    [413, 'write_refused'],
  ])('%j', async (answer, code) => {
    const { steps, ids } = elasticsearch(perItem(201, answer))
    const error = await stopOf(write([change('a', 1), change('b', 1)], steps))
    expect(error.code).toBe(code)
    expect(ids()).toHaveLength(1)
    expect(`${error.message} ${JSON.stringify(error.where)}`).not.toMatch(/quotes|org_1|"id"/)
  })

  test.each([400, 404, 409])('a whole request answered with %i', async status => {
    const { steps } = elasticsearch(() => ({ status, body: { error: { type: 'x', reason: 'quotes a document' } } }))
    const error = await stopOf(write([change('a', 1)], steps))
    expect(error.code).toBe('write_refused')
    expect(error.message).not.toContain('quotes')
  })
})

describe('an ingest pipeline of others stops the projector', () => {
  const answered = (changes: object) => (items: Item[]) => ({
    status: 200,
    body: { items: items.map(({ _index, _id }) => ({ index: { _index, _id, status: 200, ...changes } })) },
  })

  test.each<[string, object, string]>([
    ['that dropped a document', { result: 'noop' }, 'test-statements: an ingest pipeline dropped a document;'],
    [
      'that changed one, as far as anybody knows',
      { status: 201, result: 'created', executed_pipelines: ['trim', 'enrich'] },
      'test-statements: an ingest pipeline ran: trim, enrich;',
    ],
  ])('%s', async (_, changes, message) => {
    const { steps, counted } = elasticsearch(answered(changes))
    const error = await stopOf(write([change('a', 1)], steps))
    expect([error.code, error.message]).toEqual(['index_unsuitable', expect.stringContaining(message)])
    expect(counted).toEqual({})
  })

  test('not an index without one', async () => {
    const { steps, counted } = elasticsearch(answered({ result: 'updated', executed_pipelines: [] }))
    await write([change('a', 1)], steps)
    expect(counted).toEqual({ written: 1, stale: 0 })
  })

  test('each request asks which pipelines ran, and lets no default one run', async () => {
    const { steps } = elasticsearch()
    const queries: unknown[] = []
    const request: WriteSteps['request'] = (asked, signal) => {
      queries.push(asked.query)
      return steps.request(asked, signal)
    }
    await write([change('a', 1)], { ...steps, request })
    const filter_path = expect.stringMatching(/items\.\*\.result,items\.\*\.executed_pipelines$/)
    expect(queries).toEqual([{ filter_path, pipeline: '_none', list_executed_pipelines: true }])
  })
})

describe('a response that does not match the request, item by item, stops the projector', () => {
  const [a, b] = ['a', 'b'].map(_id => ({ _index: 'test-statements', _id, status: 201 }))
  test.each<[string, unknown]>([
    ['no items in its body', {}],
    ['no body', undefined],
    ['text', 'items'],
    ['too few items', { items: [{ index: a }] }],
    ['too many items', { items: [{ index: a }, { index: b }, { index: b }] }],
    ['the items in another order', { items: [{ index: b }, { index: a }] }],
    ['an item of another index', { items: [{ index: a }, { index: { ...b, _index: 'test-payouts' } }] }],
    ['an item of another operation', { items: [{ index: a }, { create: b }] }],
    ['an item without a status', { items: [{ index: a }, { index: { ...b, status: undefined } }] }],
    ['an item that is null', { items: [{ index: a }, null] }],
  ])('%s', async (_, body) => {
    const { steps } = elasticsearch(() => ({ status: 200, body }))
    expect((await stopOf(write([change('a', 1), change('b', 1)], steps))).code).toBe('write_refused')
  })
})

describe('the size of a bulk request', () => {
  test('is limited in documents', async () => {
    const many = Array.from({ length: BULK_DOCUMENTS * 2 + 1 }, (_, at) => change(`${at}`, at))
    const { steps, sent } = elasticsearch()
    await write(many, steps)
    expect(sent.map(items => items.length)).toEqual([BULK_DOCUMENTS, BULK_DOCUMENTS, 1])
    expect(sent.flat().map(({ _id }) => _id)).toEqual(many.map(({ id }) => id))
  })

  test.each(['x', '€'])('is limited in bytes, not characters: %s', async character => {
    const third = character.repeat(Math.floor(BULK_BYTES / 3 / Buffer.byteLength(character)))
    const { steps, ids } = elasticsearch()
    await write(
      ['a', 'b', 'c', 'd'].map(id => change(id, 1, third)),
      steps,
    )
    expect(ids()).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ])
  })

  test('exceeds the limit only for a single larger document', async () => {
    const { steps, ids } = elasticsearch()
    await write([change('a', 1), change('b', 1, 'x'.repeat(BULK_BYTES + 1)), change('c', 1)], steps)
    expect(ids()).toEqual([['a'], ['b'], ['c']])
  })

  const tooLarge = (): Told => ({ status: 413 })

  test('is halved when Elasticsearch says it is too large, until it fits', async () => {
    const { steps, ids, counted } = elasticsearch(tooLarge, tooLarge, written, perItem(201, 503), tooLarge)
    await write(
      ['a', 'b', 'c', 'd', 'e'].map(id => change(id, 1)),
      steps,
    )
    expect(ids()).toEqual([['a', 'b', 'c', 'd', 'e'], ['a', 'b'], ['a'], ['b'], ['c', 'd', 'e'], ['c'], ['d', 'e']])
    expect(counted).toEqual({ written: 5, stale: 0 })
  })

  test('with one document that is still too large stops the projector', async () => {
    const { steps } = elasticsearch(tooLarge)
    expect((await stopOf(write([change('a', 1)], steps))).code).toBe('write_refused')
  })
})
