import { describe, expect, test } from 'vitest'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import { type Answer, AnswerTooLong, type Request } from '../../../../core/store/elasticsearch/client.ts'
import { getEach, getFromPrimaries, multiGet } from '../../../../core/store/elasticsearch/primary-reads.ts'
import { MGET_BYTES } from '../../../../core/store/limits.ts'
import { sending } from '../../../support/answering.ts'
import { addressIn } from '../../../support/layout.ts'

const docs = [addressIn('test-reps', 'a'), addressIn('test-reps', 'b')]
const a = { _index: 'test-reps', _id: 'a', _version: 7, result: 'noop', status: 200, get: { _source: { name: 'Ada' } } }
const b = { _index: 'test-reps', _id: 'b', status: 404, error: { type: 'document_missing_exception', reason: 'x' } }
const failed = (status: number, type: string) => ({ ...b, status, error: { type, reason: 'x' } })
const itemsOf = (...items: unknown[]): Answer => ({ status: 200, body: { items: items.map(update => ({ update })) } })
const read = (answer: Answer) =>
  getFromPrimaries(
    sending(async () => answer),
    docs,
  )

describe('a read from the primaries', () => {
  test('is an update of each document that changes nothing', async () => {
    const sent: Request[] = []
    const send = sending(async request => {
      sent.push(request)
      return itemsOf(a, b)
    })
    await getFromPrimaries(send, [addressIn('test-reps', 'a'), { ...addressIn('test-reps', 'b'), _source: ['code'] }])
    expect(sent).toEqual([
      {
        method: 'POST',
        path: '/_bulk',
        query: { _source: true },
        answerBytesMax: MGET_BYTES,
        check: expect.any(Function),
        bulk: Buffer.from(
          [
            '{"update":{"_index":"test-reps","_id":"a"}}',
            '{"doc":{}}',
            '{"update":{"_index":"test-reps","_id":"b","_source":{"includes":["code"]}}}',
            '{"doc":{}}',
            '',
          ].join('\n'),
        ),
      },
    ])
  })

  test('gives the documents in the requested order', async () => {
    expect(await read(itemsOf(a, b))).toEqual([
      { _id: 'a', found: true, _version: 7, _source: { name: 'Ada' } },
      { _id: 'b', found: false },
    ])
  })

  test('that is too long gives its first documents: it asks for fewer, and for a single one of any size', async () => {
    const asked: [documents: number, bytes: number | undefined][] = []
    const send = sending(async ({ bulk, answerBytesMax }) => {
      asked.push([String(bulk).split('\n').length >> 1, answerBytesMax])
      if (answerBytesMax !== undefined) throw new AnswerTooLong()
      return itemsOf(a)
    })
    const many = ['a', 'b', 'c', 'd'].map(_id => addressIn('test-reps', _id))
    expect(await getFromPrimaries(send, many)).toHaveLength(1)
    expect(asked).toEqual([
      [4, MGET_BYTES],
      [2, MGET_BYTES],
      [1, undefined],
    ])
  })

  test('with a missing index stops: an index that is gone must not look empty', async () => {
    await expect(read(itemsOf(a, failed(404, 'index_not_found_exception')))).rejects.toThrow(
      expect.objectContaining({ code: 'index_missing' }),
    )
  })

  test.each([
    [429, 'es_rejected_execution_exception'],
    [503, 'unavailable_shards_exception'],
    [403, 'cluster_block_exception'],
    [400, 'index_closed_exception'],
    // Of a shard that closes meanwhile.
    [404, 'index_shard_closed_exception'],
    [500, 'already_closed_exception'],
  ])('of which an item is answered %i %s may work later', async (status, type) => {
    await expect(read(itemsOf(a, failed(status, type)))).rejects.toEqual(
      new Unanswered('elasticsearch', status, type, 'test-reps'),
    )
  })

  test.each([
    [400, 'illegal_argument_exception'],
    [403, 'security_exception'],
  ])('of which an item is refused for good, %i %s, stops and names the refusal', async (status, type) => {
    await expect(read(itemsOf(a, failed(status, type)))).rejects.toThrow(
      expect.objectContaining({
        code: 'write_refused',
        message: expect.stringContaining(`status ${status}, ${type}, while reading`),
        where: { index: 'test-reps' },
      }),
    )
  })

  test('without the source gives none', async () => {
    const send = sending(async () => itemsOf({ ...a, get: undefined }))
    const found = await getFromPrimaries(send, [{ ...addressIn('test-reps', 'a'), _source: false }])
    expect(found).toEqual([{ _id: 'a', found: true, _version: 7, _source: undefined }])
  })

  test.each<[string, Answer]>([
    ['answered in another order', itemsOf(b, a)],
    ['answered with fewer documents', itemsOf(a)],
    ['answered without a version', itemsOf(a, { ...a, _id: 'b', _version: undefined })],
    ['answered with a changed document', itemsOf(a, { ...a, _id: 'b', result: 'updated' })],
    ['answered without the document', itemsOf(a, { ...a, _id: 'b', get: {} })],
    ['answered with a document of another index', itemsOf(a, { ...b, _index: 'test-periods' })],
    ['answered with an error without a status', itemsOf(a, { ...b, status: undefined })],
    ['answered with another status', { status: 400, body: {} }],
    ['answered without a body', { status: 200, body: {} }],
  ])('%s stops', async (_, answer) => {
    await expect(read(answer)).rejects.toThrow(expect.objectContaining({ code: 'write_refused' }))
  })
})

describe('a multi-get', () => {
  const docs = [addressIn('test-reps', 'a'), addressIn('test-reps', 'b')]
  const [a, b] = [
    { _index: 'test-reps', _id: 'a', found: true, _version: 1, _source: {} },
    { _index: 'test-reps', _id: 'b', found: false },
  ]
  const ask = (answer: Answer) =>
    multiGet(
      sending(async () => answer),
      docs,
    )

  test('gives the documents in the requested order', async () => {
    expect(await ask({ status: 200, body: { docs: [a, b] } })).toEqual([a, b])
  })

  test('that is too long gives its first documents: it asks for fewer, and for a single one of any size', async () => {
    const asked: [ids: string, bytes: number | undefined][] = []
    const send = sending(async ({ body, answerBytesMax }) => {
      const ids = (body as { docs: { _id: string }[] }).docs.map(({ _id }) => _id)
      asked.push([ids.join(''), answerBytesMax])
      if (answerBytesMax !== undefined) throw new AnswerTooLong()
      return { status: 200, body: { docs: ids.map(_id => ({ ...a, _id })) } }
    })
    const many = ['a', 'b', 'c', 'd'].map(_id => addressIn('test-reps', _id))
    expect(await multiGet(send, many)).toEqual([a])
    expect(asked).toEqual([
      ['abcd', MGET_BYTES],
      ['ab', MGET_BYTES],
      ['a', undefined],
    ])
  })

  test('of each document is repeated until all are read, whatever one answer holds', async () => {
    const asked: string[] = []
    const found = await getEach(
      ['a', 'b', 'c'].map(_id => addressIn('test-reps', _id)),
      async part => {
        asked.push(part.map(({ _id }) => _id).join(''))
        return part.slice(0, 2).map(({ _id }) => ({ _id, found: false as const }))
      },
    )
    expect(found.map(({ _id }) => _id).join('')).toBe('abc')
    expect(asked).toEqual(['abc', 'c'])
  })

  test('with a missing index stops: an index that is gone must not look empty', async () => {
    const gone = { _index: 'test-reps', _id: 'b', error: { type: 'index_not_found_exception', reason: 'x' } }
    await expect(ask({ status: 200, body: { docs: [a, gone] } })).rejects.toThrow(
      expect.objectContaining({ code: 'index_missing' }),
    )
  })

  test('with a failed shard may work later', async () => {
    const error = { _index: 'test-reps', _id: 'b', error: { type: 'no_shard_available_action_exception' } }
    await expect(ask({ status: 200, body: { docs: [a, error] } })).rejects.toThrow(Unanswered)
  })

  test.each<[string, Answer]>([
    ['answered in another order', { status: 200, body: { docs: [b, a] } }],
    ['answered with fewer documents', { status: 200, body: { docs: [a] } }],
    ['answered without saying whether a document exists', { status: 200, body: { docs: [a, { _id: 'b' }] } }],
    ['answered with another status', { status: 400, body: {} }],
  ])('%s stops', async (_, answer) => {
    await expect(ask(answer)).rejects.toThrow(expect.objectContaining({ code: 'write_refused' }))
  })
})
