import { describe, expect, test } from 'vitest'
import { cutMultiGet, type DocumentName, smallDocument } from '../../api/cut-documents.ts'
import { unavailable } from '../../api/failures.ts'
import { gather } from '../../api/gather.ts'
import { GATHERED_NAMES } from '../../api/limits.ts'
import { endingBecause } from '../../api/request.ts'
import { multiGetAnswer } from './answers.ts'

const named = (id: string): DocumentName => ({ index: 'c', id, form: 'small' })
const names = (ids: string): DocumentName[] => [...ids].map(named)
const stored = Object.fromEntries([...'abcdefgh'].map(id => [id, JSON.stringify({ id })]))

/** Multi-gets that are answered when the test says so, and a timer that rings when it says so. */
const rig = () => {
  const asked: { ids: string; signal: AbortSignal; answer: () => void; fail: (error: Error) => void }[] = []
  let ring = (): void => undefined
  const multiGet = gather(
    (given, signal) =>
      new Promise((resolve, reject) => {
        const answer = () => resolve(multiGetAnswer(given, stored))
        asked.push({ ids: given.map(({ id }) => id).join(''), signal, answer, fail: reject })
      }),
    (_, run) => {
      ring = run
      return () => {
        ring = () => undefined
      }
    },
  )
  /** The ids of what came for these. */
  const ask = async (ids: string, signal = new AbortController().signal): Promise<string> => {
    const found = cutMultiGet(await multiGet(names(ids), signal), names(ids))
    return found.map(cut => (cut ? (smallDocument(cut) as { id: string }).id : '-')).join('')
  }
  return { asked, ask, ring: () => ring(), ids: () => asked.map(({ ids }) => ids) }
}
const turn = () => new Promise(resolve => setImmediate(resolve))

describe('multi-gets of several requests', () => {
  test('go at once while none is under way', async () => {
    const { asked, ask, ids } = rig()
    const first = ask('ab')
    expect(ids()).toEqual(['ab'])
    asked[0]?.answer()
    expect(await first).toBe('ab')
  })

  test('wait for the one under way, go together, and are answered each with its own', async () => {
    const { asked, ask, ids } = rig()
    const answers = ['ab', 'abc', 'abd', 'x', 'db'].map(one => ask(one))
    expect(ids()).toEqual(['ab'])
    asked[0]?.answer()
    await turn()
    // What is asked for again, in another order, is read again: `b` behind `d`.
    expect(ids()).toEqual(['ab', 'abcdxb'])
    asked[1]?.answer()
    expect(await Promise.all(answers)).toEqual(['ab', 'abc', 'abd', '-', 'db'])
  })

  test('wait no longer than they may', async () => {
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

  test('are never answered by what was asked before they came', async () => {
    const { asked, ask, ring, ids } = rig()
    const answers = ['a', 'a'].map(one => ask(one))
    ring()
    answers.push(ask('a'))
    ring()
    expect(ids()).toEqual(['a', 'a', 'a'])
    for (const { answer } of asked) answer()
    expect(await Promise.all(answers)).toEqual(['a', 'a', 'a'])
  })

  test('are as many together as may be, and a large one goes alone', async () => {
    const { asked, ask, ids } = rig()
    const large = 'abcdefgh'.repeat(GATHERED_NAMES / 4)
    const answers = ['a', 'b', large, 'c'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'b', large, 'c'])
    for (const { answer } of asked) answer()
    expect(await Promise.all(answers)).toEqual(['a', 'b', large, 'c'])
  })

  test.each(['elasticsearch_partial', 'elasticsearch_malformed_document', 'elasticsearch_overloaded'])(
    'are asked again one by one where together they are %s',
    async because => {
      const { asked, ask, ids } = rig()
      const answers = ['a', 'bc', 'bd'].map(one => ask(one))
      asked[0]?.answer()
      await turn()
      asked[1]?.fail(unavailable(because))
      await turn()
      expect(ids()).toEqual(['a', 'bcd', 'bc', 'bd'])
      asked[2]?.answer()
      asked[3]?.fail(unavailable(because))
      expect(await Promise.allSettled(answers)).toMatchObject([
        { value: 'a' },
        { value: 'bc' },
        { reason: { code: 'unavailable', because } },
      ])
    },
  )

  test('fail together where Elasticsearch is away', async () => {
    const { asked, ask, ids } = rig()
    const answers = ['a', 'b', 'c'].map(one => ask(one))
    asked[0]?.answer()
    await turn()
    asked[1]?.fail(unavailable('elasticsearch_connection'))
    const settled = await Promise.allSettled(answers)
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(ids()).toEqual(['a', 'bc'])
  })

  test('of a request that ends is left at once; what others ask goes on until all have ended', async () => {
    const { asked, ask } = rig()
    const [one, other] = [new AbortController(), new AbortController()]
    const first = ask('a')
    const answers = [ask('b', one.signal), ask('c', other.signal)]
    asked[0]?.answer()
    expect(await first).toBe('a')
    await turn()
    one.abort(endingBecause('client_gone'))
    await expect(answers[0]).rejects.toMatchObject({ code: 'unavailable', because: 'client_gone' })
    expect(asked[1]?.signal.aborted).toBe(false)
    other.abort(endingBecause('time_is_up'))
    await expect(answers[1]).rejects.toMatchObject({ code: 'unavailable', because: 'time_is_up' })
    expect(asked[1]?.signal.aborted).toBe(true)
  })

  test('of a request that ended while it waited is not asked', async () => {
    const { asked, ask, ids } = rig()
    const gone = new AbortController()
    const answers = Promise.allSettled([ask('a'), ask('b', gone.signal), ask('c')])
    gone.abort(endingBecause('client_gone'))
    asked[0]?.answer()
    await turn()
    expect(ids()).toEqual(['a', 'c'])
    asked[1]?.answer()
    expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })
})
