import { describe, expect, test } from 'vitest'
import { createAdmitKey, createFailedLogins } from '../../../api/access/authenticate.ts'
import type { ApiKeyCache, KeyHolder } from '../../../core/reading/api-key-cache.ts'
import { unavailable } from '../../../core/runtime/refusals.ts'
import { createSemaphore } from '../../../core/runtime/semaphore.ts'
import { abortReason } from '../../../core/runtime/time-limits.ts'

const holder: KeyHolder = { org: 'org_a', orgHash: 'h', id: 'key_1', permissions: new Set(['read']) }
const never = new AbortController().signal
const noTimer = () => () => undefined
const turn = () => new Promise(resolve => setImmediate(resolve))
const ADDRESS = '192.0.2.1'

/** Key look-ups that end only when the test answers them. */
const rig = (options: { tries?: number; ordinary?: number; exhausted?: number; queue?: number } = {}) => {
  const asked: {
    key: string
    signal: AbortSignal
    answer: (holder: KeyHolder | 'unknown') => void
    fail: () => void
  }[] = []
  const valid = new Set<string>()
  const keys: Pick<ApiKeyCache, 'lookup' | 'wasValid'> = {
    wasValid: (key, address) => valid.has(key) || valid.has(`${key} from ${address}`),
    lookup: (key, signal) =>
      new Promise((resolve, reject) => {
        asked.push({ key, signal, answer: resolve, fail: () => reject(unavailable('elasticsearch_connection')) })
      }),
  }
  const lane = (permits: number, queue = 1) => createSemaphore({ permits, queue, waitMax: 1_000 }, noTimer)
  const keyLookups = lane(options.ordinary ?? 100, options.queue)
  const lanes = { keyLookups, keyLookupsExhausted: lane(options.exhausted ?? 2) }
  const failures = createFailedLogins(() => 0, options.tries ?? 3)
  const admit = createAdmitKey(keys as ApiKeyCache, failures, lanes, noTimer)
  const ask = (key: string, { address = ADDRESS, signal = never } = {}) => admit(key, address, signal)
  const answerAll = async (answer: KeyHolder | 'unknown') => {
    for (const one of asked.splice(0)) one.answer(answer)
    await turn()
  }
  return { asked, valid, lanes, ask, answerAll }
}

describe('a key that is not cached', () => {
  test('counts as a failed login before its look-up: of 100 keys tried at once, only a few are looked up', async () => {
    const { asked, lanes, ask } = rig({ tries: 3, exhausted: 2 })
    const answers = Array.from({ length: 100 }, (_, n) => ask(`key${n}`))
    await turn()
    expect([
      asked.length,
      lanes.keyLookups.held(),
      lanes.keyLookupsExhausted.held(),
      lanes.keyLookupsExhausted.waiting(),
    ]).toEqual([5, 3, 2, 1])
    const refused = await Promise.all(answers.slice(6))
    expect(new Set(refused)).toEqual(new Set(['refused']))
    expect(refused.length).toBe(94)
  })

  test('takes no try while it queues: after a start, none of 100 valid keys of one address is refused', async () => {
    const { asked, ask, answerAll } = rig({ tries: 3, ordinary: 2, exhausted: 0, queue: 100 })
    const answers = Array.from({ length: 100 }, (_, n) => ask(`key${n}`))
    await turn()
    while (asked.length > 0) {
      expect(asked.length).toBe(2)
      await answerAll(holder)
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set([holder]))
  })

  test('in the queue is not looked up in its turn if unknown keys of its address have used all tries', async () => {
    const { asked, lanes, ask, answerAll } = rig({ tries: 3, ordinary: 2, exhausted: 0, queue: 100 })
    const answers = Array.from({ length: 100 }, (_, n) => ask(`key${n}`))
    const looked: string[] = []
    await turn()
    while (asked.length > 0) {
      looked.push(...asked.map(({ key }) => key))
      await answerAll('unknown')
    }
    expect(looked).toEqual(['key0', 'key1', 'key2'])
    expect([lanes.keyLookups.held(), lanes.keyLookups.waiting(), lanes.keyLookupsExhausted.waiting()]).toEqual([
      0, 0, 1,
    ])
    expect(new Set(await Promise.all(answers.slice(4)))).toEqual(new Set(['refused']))
  })

  test('is looked up and answered even if its address has no login attempt left', async () => {
    const { ask, answerAll } = rig({ tries: 1 })
    const wrong = ask('wrong')
    await turn()
    await answerAll('unknown')
    expect(await wrong).toBe('unknown')
    const good = ask('good')
    await turn()
    await answerAll(holder)
    expect(await good).toBe(holder)
  })

  test('does not count as a failed login if it is valid or its look-up failed', async () => {
    const { asked, lanes, ask, answerAll } = rig({ tries: 1 })
    for (const key of ['a', 'b']) {
      const good = ask(key)
      await turn()
      expect(lanes.keyLookups.held()).toBe(1)
      await answerAll(holder)
      expect(await good).toBe(holder)
    }
    const failed = ask('c')
    await turn()
    asked.pop()?.fail()
    await expect(failed).rejects.toMatchObject({ reason: 'elasticsearch_connection' })
    void ask('d')
    await turn()
    expect([lanes.keyLookups.held(), lanes.keyLookupsExhausted.held()]).toEqual([1, 0])
  })

  test('that was valid in this process before needs no permit for its look-up', async () => {
    const { asked, valid, lanes, ask } = rig({ tries: 0, exhausted: 0 })
    valid.add('known')
    void ask('known')
    await turn()
    expect([asked.length, lanes.keyLookups.held(), lanes.keyLookupsExhausted.held()]).toEqual([1, 0, 0])
  })

  test('outside its networks counts as a failed login, also while it is valid elsewhere, and has nobody else refused', async () => {
    const { asked, valid, lanes, ask, answerAll } = rig({ tries: 1, exhausted: 0 })
    const limited: KeyHolder = { ...holder, isAllowedFrom: address => address === '198.51.100.1' }
    valid.add('known from 198.51.100.1')
    const outside = ask('known')
    await turn()
    expect([asked.length, lanes.keyLookups.held()]).toEqual([1, 1])
    await answerAll(limited)
    expect(await outside).toBe(limited)
    // The address has no try left.
    void ask('known')
    await turn()
    expect([asked.length, lanes.keyLookups.held(), lanes.keyLookupsExhausted.waiting()]).toEqual([0, 0, 1])
    const inside = ask('known', { address: '198.51.100.1' })
    await turn()
    expect(asked.length).toBe(1)
    await answerAll(limited)
    expect(await inside).toBe(limited)
  })

  test('is looked up once for all requests that carry it at the same time', async () => {
    const { asked, ask, answerAll } = rig({ tries: 1 })
    const answers = Array.from({ length: 100 }, () => ask('busy'))
    await turn()
    expect(asked.length).toBe(1)
    await answerAll(holder)
    expect(new Set(await Promise.all(answers))).toEqual(new Set([holder]))
    void ask('busy')
    await turn()
    expect(asked.length).toBe(1)
  })

  test('still counts as a failed login if its client hangs up: the look-up continues', async () => {
    const { asked, lanes, ask, answerAll } = rig({ tries: 1 })
    const gone = new AbortController()
    const left = ask('wrong', { signal: gone.signal })
    await turn()
    gone.abort(abortReason('client_gone'))
    await expect(left).rejects.toMatchObject({ reason: 'client_gone' })
    expect(asked[0]?.signal.aborted).toBe(false)
    await answerAll('unknown')
    void ask('next')
    await turn()
    expect([lanes.keyLookups.held(), lanes.keyLookupsExhausted.held()]).toEqual([0, 1])
  })

  test('gets a 503 and counts for no address if too many clients send new keys', async () => {
    const { ask } = rig({ tries: 100, ordinary: 1 })
    const [, , third] = ['a', 'b', 'c'].map(key => ask(key))
    await expect(third).rejects.toMatchObject({ code: 'unavailable', reason: 'key_look_ups' })
  })
})
