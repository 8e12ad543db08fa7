import { describe, expect, test } from 'vitest'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import {
  BATCHED_DOCUMENTS,
  RECORD_FRAME_BYTES,
  RECORDS_SURE,
  SMALL_ANSWER_BYTES,
} from '../../../../core/store/limits.ts'
import { batchMultiGets } from '../../../../core/store/read/batch-multi-gets.ts'
import type { MultiGet } from '../../../../core/store/read/search-client.ts'
import { type DocumentName, sliceMultiGet, smallDocument } from '../../../../core/store/read/slice-documents.ts'
import { multiGetAnswer } from '../../../api/answers.ts'
import { addressIn } from '../../../support/layout.ts'

const named = (id: string): DocumentName => ({ ...addressIn('c', id), form: 'small' })
const names = (ids: string): DocumentName[] => [...ids].map(named)
const stored = Object.fromEntries([...'abcdefgh'].map(id => [id, JSON.stringify({ id })]))
const records = Object.fromEntries([...'abcdefgh'].map(id => [id, `{"id":"${id}","body_bytes":2,"body":{}}`]))
/** As they are read for their sizes: `f` is large, and documents of the control index have no size. */
const LARGE = 8_000_000
const sizes = { ...stored, a: '{}', b: '{}', c: '{"body_bytes":600000}', d: '{"body_bytes":600000}' }
Object.assign(sizes, { e: '{"body_bytes":400000}', f: `{"body_bytes":${LARGE}}` })

type Asked = {
  readonly names: readonly DocumentName[]
  readonly ids: string
  readonly signal: AbortSignal
  readonly limits: Parameters<MultiGet>[2]
  readonly answer: () => void
  readonly fail: (error: Error) => void
}

/** A response in which the shard of one document failed. The reason of the error contains braces. */
const spoilt = (answer: Buffer, unreadable: string | undefined): Buffer => {
  const text = answer.toString()
  const error = '"error":{"type":"no_shard_available_action_exception","reason":"\\"}{\\" }"}'
  return Buffer.from(
    text.replace(new RegExp(`("_id":"${unreadable}",).*?"_source":\\{"id":"${unreadable}"\\}`), `$1${error}`),
  )
}

/** Multi-gets that the test answers, and a timer that the test fires. */
const rig = ({ unreadable, inMemory }: { unreadable?: string; inMemory?: ArrayBuffer } = {}) => {
  /** Moves a response into a resizable buffer, as a long response has. Leaves the first response where it is. */
  const moved = (bytes: Buffer): Buffer => {
    if (inMemory === undefined || asked.length < 2) return bytes
    inMemory.resize(bytes.length)
    bytes.copy(Buffer.from(inMemory))
    return Buffer.from(inMemory, 0, bytes.length)
  }
  const asked: Asked[] = []
  let ring = (): void => undefined
  const { ofRequest, ofProcess: multiGet } = batchMultiGets(
    (given, signal, limits) =>
      new Promise((resolve, reject) => {
        const texts = { small: stored, record: records, size: sizes }[given[0]?.form ?? 'small']
        const answer = () => resolve(moved(spoilt(multiGetAnswer(given, texts), unreadable)))
        const ids = given.map(({ _id }) => _id).join('')
        asked.push({ names: given, ids, signal, limits, answer, fail: reject })
      }),
    (_, run) => {
      ring = run
      return () => {
        ring = () => undefined
      }
    },
  )
  /** The ids of the documents found, with `-` for a missing one. */
  const ask = async (ids: string, signal = new AbortController().signal): Promise<string> => {
    const found = sliceMultiGet(await multiGet(names(ids), signal), names(ids))
    return found.map(cut => (cut ? (smallDocument(cut) as { id: string }).id : '-')).join('')
  }
  return { multiGet, ofRequest, asked, ask, ring: () => ring(), ids: () => asked.map(({ ids }) => ids) }
}
const turn = () => new Promise(resolve => setImmediate(resolve))

describe('multi-gets of several requests', () => {
  test('free the shared response, and keep their own parts of it', async () => {
    const shared = new ArrayBuffer(0, { maxByteLength: 10_000 })
    const { multiGet, asked, ids } = rig({ inMemory: shared })
    const answers = ['a', 'b', 'c'].map(id => multiGet(names(id), new AbortController().signal))
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'bc'])
    asked[1]?.answer()
    const found = (await Promise.all(answers)).map((answer, at) => sliceMultiGet(answer, names('abc'.charAt(at))))
    expect(found.flat().map(cut => cut && smallDocument(cut))).toEqual([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
    expect(shared.byteLength).toBe(0)
  })

  test('start at once if none is in flight', async () => {
    const { asked, ask, ids } = rig()
    const first = ask('ab')
    expect(ids()).toEqual(['ab'])
    asked[0]?.answer()
    expect(await first).toBe('ab')
  })

  test('wait for the one in flight, go together, and get their own documents each', async () => {
    const { asked, ask, ids } = rig()
    const answers = ['ab', 'abc', 'abd', 'x', 'db'].map(one => ask(one))
    expect(ids()).toEqual(['ab'])
    asked[0]?.answer()
    await turn()
    // Requests share an id only in the same order: `b` after `d` is read again.
    expect(ids()).toEqual(['ab', 'abcdxb'])
    asked[1]?.answer()
    expect(await Promise.all(answers)).toEqual(['ab', 'abc', 'abd', '-', 'db'])
  })

  test('wait no longer than their limit', async () => {
    const { asked, ask, ring, ids } = rig()
    const slow = ask('a')
    const others = ['b', 'c'].map(one => ask(one))
    ring()
    expect(ids()).toEqual(['a', 'bc'])
    asked[1]?.answer()
    expect(await Promise.all(others)).toEqual(['b', 'c'])
    asked[0]?.answer()
    expect(await slow).toBe('a')
  })

  test('never get a response that was requested before they came', async () => {
    const { asked, ask, ring, ids } = rig()
    const answers = ['a', 'a'].map(one => ask(one))
    ring()
    answers.push(ask('a'))
    ring()
    expect(ids()).toEqual(['a', 'a', 'a'])
    for (const { answer } of asked) answer()
    expect(await Promise.all(answers)).toEqual(['a', 'a', 'a'])
  })

  test('go together up to a limit of names; a large one goes alone', async () => {
    const { asked, ask, ids } = rig()
    const large = 'abcdefgh'.repeat(BATCHED_DOCUMENTS / 4)
    const answers = ['a', 'b', large, 'c'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'b', large, 'c'])
    for (const { answer } of asked) answer()
    expect(await Promise.all(answers)).toEqual(['a', 'b', large, 'c'])
  })

  test('go together with their like: those that read records apart from those that read small documents', async () => {
    const { multiGet, asked, ask, ids } = rig()
    const record = (id: string) =>
      multiGet([named('p'), { ...addressIn('c', id), form: 'record' }], new AbortController().signal)
    const answers = [ask('a'), ask('b'), record('r'), ask('c'), record('s'), ask('d')]
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'bcd', 'prs'])
    asked[2]?.fail(unavailable('answer_bytes_of_process'))
    asked[1]?.answer()
    const settled = await Promise.allSettled(answers)
    expect(settled.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
  })

  test('are not sent again once their request has ended, and leave no unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      for (const reason of [
        'elasticsearch_partial',
        'elasticsearch_malformed_document',
        'elasticsearch_overloaded',
      ] as const) {
        const { asked, ask, ids } = rig()
        const gone = new AbortController()
        const answers = Promise.allSettled([ask('a'), ask('b', gone.signal), ask('c'), ask('d', gone.signal)])
        asked[0]?.answer()
        await turn()
        expect(ids()).toEqual(['a', 'bcd'])
        gone.abort(abortReason('client_gone'))
        asked[1]?.fail(unavailable(reason))
        await turn()
        expect(ids().slice(2).join('')).not.toMatch(/[bd]/)
        for (const { fail } of asked.slice(2)) fail(unavailable(reason))
        const settled = await answers
        expect(settled).toMatchObject([{ value: 'a' }, {}, {}, {}])
        expect(settled.map(one => (one.status === 'rejected' ? one.reason.reason : ''))).toEqual([
          '',
          'client_gone',
          reason,
          'client_gone',
        ])
        await turn()
      }
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', note)
    }
  })

  test.each(['elasticsearch_malformed_document', 'elasticsearch_malformed_record'] as const)(
    'are sent again in halves, one after the other, until the one that fails with %s is alone',
    async reason => {
      const { asked, ask, ids } = rig()
      const answers = Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map(one => ask(one)))
      asked[0]?.answer()
      for (const fails of [true, false, true, true, false]) {
        await turn()
        const last = asked.at(-1)
        if (fails) last?.fail(unavailable(reason))
        else last?.answer()
      }
      expect(ids()).toEqual(['a', 'bcde', 'bc', 'de', 'd', 'e'])
      expect(await answers).toMatchObject([
        { value: 'a' },
        { value: 'b' },
        { value: 'c' },
        { reason: { code: 'unavailable', reason } },
        { value: 'e' },
      ])
    },
  )

  describe('of records, if the response is larger than small ones are,', () => {
    const record = (id: string): DocumentName => ({ ...addressIn('c', id), form: 'record' })
    const own = (expected = 0) => ({ expected, arrived: () => undefined })
    const askAll = (rigged: ReturnType<typeof rig>, ids: string, expected?: (id: string) => number) =>
      [...ids].map(id => rigged.ofRequest([record(id)], new AbortController().signal, own(expected?.(id))))
    const tooLarge = unavailable('elasticsearch_too_large')

    test('are asked for their sizes: small ones go together again, and a large one gets its size', async () => {
      const rigged = rig()
      const { asked, ids } = rigged
      const answers = askAll(rigged, 'acdefb')
      asked[0]?.answer()
      await turn()
      asked[1]?.fail(tooLarge)
      for (let n = 2; n < 5; n++) {
        await turn()
        asked[n]?.answer()
      }
      // No group has more than SMALL_ANSWER_BYTES, and the large record was asked for only once.
      expect(ids()).toEqual(['a', 'cdefb', 'cdefb', 'c', 'deb'])
      expect(asked.map(({ limits }) => limits?.bytesMax)).toEqual([
        undefined,
        SMALL_ANSWER_BYTES,
        SMALL_ANSWER_BYTES,
        undefined,
        SMALL_ANSWER_BYTES,
      ])
      const found = await Promise.all(answers)
      expect(found[4]).toEqual({ needs: LARGE + RECORD_FRAME_BYTES })
      expect(found.filter(outcome => 'answer' in outcome)).toHaveLength(5)
    })

    test('are refused together if the sizes cannot be read', async () => {
      const rigged = rig()
      const { asked, ids } = rigged
      const answers = Promise.allSettled(askAll(rigged, 'abc'))
      asked[0]?.answer()
      await turn()
      asked[1]?.fail(tooLarge)
      await turn()
      asked[2]?.fail(unavailable('elasticsearch_connection'))
      expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
      expect(ids()).toEqual(['a', 'bc', 'bc'])
    })

    test('are told to go alone if the sizes were wrong', async () => {
      const rigged = rig()
      const { asked, ids } = rigged
      const answers = askAll(rigged, 'abe')
      asked[0]?.answer()
      await turn()
      asked[1]?.fail(tooLarge)
      await turn()
      asked[2]?.answer()
      await turn()
      asked[3]?.fail(tooLarge)
      expect((await Promise.all(answers)).slice(1)).toEqual(Array(2).fill({ needs: SMALL_ANSWER_BYTES + 1 }))
      expect(ids()).toEqual(['a', 'be', 'be', 'be'])
    })

    test('are not read together if that is to be expected, and count for their own requests', async () => {
      const rigged = rig()
      const { asked, ids, ring } = rigged
      const expected: Record<string, number> = { c: SMALL_ANSWER_BYTES + 1, d: 600_000, e: 400_000, f: 600_000 }
      const answers = askAll(rigged, 'acdef', id => expected[id] ?? 0)
      expect(ids()).toEqual(['a', 'c'])
      ring()
      expect(ids()).toEqual(['a', 'c', 'de', 'f'])
      expect(asked.map(({ limits }) => limits?.arrived !== undefined)).toEqual([true, true, false, true])
      for (const { answer } of asked) answer()
      await Promise.all(answers)
    })

    test('a read of the process gets its response, and not its size', async () => {
      const rigged = rig()
      const { asked, ids, multiGet } = rigged
      const answers = [...askAll(rigged, 'ab'), multiGet([record('f')], new AbortController().signal)]
      asked[0]?.answer()
      await turn()
      asked[1]?.fail(tooLarge)
      for (let n = 2; n < 5; n++) {
        await turn()
        asked[n]?.answer()
      }
      const forms = (await Promise.all(answers)).map(one => (Buffer.isBuffer(one) ? 'bytes' : Object.keys(one).join()))
      expect(forms).toEqual(['answer', 'answer', 'bytes'])
      expect(ids().slice(2).sort()).toEqual(['b', 'bf', 'f'])
    })
  })

  test('are not sent again if Elasticsearch is overloaded: one refusal answers all', async () => {
    const { asked, ask, ids } = rig()
    const answers = ['a', 'b', 'c', 'd'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    asked[1]?.fail(unavailable('elasticsearch_overloaded'))
    expect((await Promise.allSettled(answers)).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
    ])
    expect(ids()).toEqual(['a', 'bcd'])
  })

  test('are not sent again if one document cannot be read: the others get their answer', async () => {
    const { asked, ask, ids } = rig({ unreadable: 'c' })
    const answers = ['a', 'b', 'bc', 'd'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    asked[1]?.answer()
    expect(await Promise.allSettled(answers)).toMatchObject([
      { value: 'a' },
      { value: 'b' },
      { reason: { code: 'unavailable', reason: 'elasticsearch_partial' } },
      { value: 'd' },
    ])
    expect(ids()).toEqual(['a', 'bcd'])
  })

  test('together ask for no more records than one response can hold, even if the records are large', async () => {
    const { multiGet, asked } = rig()
    const record = (id: number): DocumentName => ({ ...addressIn('r', `org_a:payout_${id}`), form: 'record' })
    const signal = new AbortController().signal
    const ask = (id: number) => multiGet([named('a'), record(id)], signal).catch(() => undefined)
    const answers = Array.from({ length: 2 * RECORDS_SURE + 2 }, (_, id) => ask(id))
    asked[0]?.fail(unavailable('elasticsearch_connection'))
    await turn()
    const records = asked.map(({ names }) => names.filter(({ form }) => form === 'record').length)
    expect(records).toEqual([1, RECORDS_SURE, RECORDS_SURE, 1])
    for (const { fail } of asked) fail(unavailable('elasticsearch_connection'))
    await Promise.all(answers)
  })

  test('fail together if Elasticsearch is unreachable', async () => {
    const { asked, ask, ids } = rig()
    const answers = ['a', 'b', 'c'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    asked[1]?.fail(unavailable('elasticsearch_connection'))
    const settled = await Promise.allSettled(answers)
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(ids()).toEqual(['a', 'bc'])
  })

  test('release a request that ends at once; the shared read continues until all its requests have ended', async () => {
    const { asked, ask } = rig()
    const [one, other] = [new AbortController(), new AbortController()]
    const first = ask('a')
    const answers = [ask('b', one.signal), ask('c', other.signal)]
    asked[0]?.answer()
    expect(await first).toBe('a')
    await turn()
    one.abort(abortReason('client_gone'))
    await expect(answers[0]).rejects.toMatchObject({ code: 'unavailable', reason: 'client_gone' })
    expect(asked[1]?.signal.aborted).toBe(false)
    other.abort(abortReason('time_is_up'))
    await expect(answers[1]).rejects.toMatchObject({ code: 'unavailable', reason: 'time_is_up' })
    expect(asked[1]?.signal.aborted).toBe(true)
  })

  test('are not sent for a request that ended while it waited', async () => {
    const { asked, ask, ids } = rig()
    const gone = new AbortController()
    const answers = Promise.allSettled([ask('a'), ask('b', gone.signal), ask('c')])
    gone.abort(abortReason('client_gone'))
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'c'])
    asked[1]?.answer()
    expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})
