/** The share of seal keys that an organization reads at once, with a store that answers when the test says so. */
import { expect, test } from 'vitest'
import { holdKeys } from '../../../../core/reading/sealed/hold-keys.ts'
import type { SealKey } from '../../../../core/reading/sealed/key-store.ts'
import { createKeyReads, type KeyReads } from '../../../../core/reading/sealed/key-turns.ts'
import { SEAL_KEY_REQUESTS_OF_ORGANIZATION, SEAL_KEYS_OF_ORGANIZATION } from '../../../../core/reading/sealed/limits.ts'
import { createOpenRecords } from '../../../../core/reading/sealed/open-records.ts'
import { createSemaphores } from '../../../../core/runtime/semaphore.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import { sliceSearch } from '../../../../core/store/read/slice-documents.ts'
import { recordText, searchAnswer } from '../../../api/answers.ts'
import { seal, sealKey } from '../../../support/seal.ts'

const signal = new AbortController().signal
const { permits } = SEAL_KEYS_OF_ORGANIZATION
const requestsAtOnce = SEAL_KEY_REQUESTS_OF_ORGANIZATION.permits
const noTimer = () => () => undefined

/** A page of reps, each with a key of its own: `key-0`, `key-1` and so on. */
const pageOf = (org: string, key: string, people: number) => {
  const records = Array.from({ length: people }, (_, n) => {
    const record = `rep_${n}`
    const name = seal('Ada', { org, record, field: 'name', keyId: `${key}-${n}` })
    return { id: `${org}:${record}:1`, text: recordText(n, { id: record, name, email: null }), place: n }
  })
  return sliceSearch(searchAnswer('i', records), [{ name: 'i', kind: 'reps' }], org)
}

const settled = () => new Promise(setImmediate)

const setUp = (keyReads: KeyReads = createKeyReads(noTimer)) => {
  const asked: string[] = []
  const answers: ((key: SealKey) => void)[] = []
  const readKey = holdKeys(
    id => {
      asked.push(id)
      const { promise, resolve } = Promise.withResolvers<SealKey>()
      answers.push(found => resolve(found.state === 'here' ? { ...found, key: sealKey(id) } : found))
      return promise
    },
    () => 0,
    noTimer,
  )
  const open = createOpenRecords(readKey, keyReads)
  const read = (key: string, people: number, { org = 'org_a', until = signal } = {}) =>
    open.hits(org, pageOf(org, key, people), until)
  const answer = async (count: number, found: SealKey = { state: 'here', key: Buffer.alloc(0) }) => {
    for (let answered = 0; answered < count; answered++) {
      answers.shift()?.(found)
      await settled()
    }
  }
  const inUse = () => [keyReads.requests, keyReads.keys].map(one => one.held() + one.waiting())
  return { read, answer, inUse, asked, askedOf: (key: string) => asked.filter(id => id.startsWith(`${key}-`)).length }
}

test('an organization reads a few keys at once, and others need not wait', async () => {
  const { read, answer, inUse, asked, askedOf } = setUp()
  const pages = [read('a', 50), read('b', 1, { org: 'org_b' })]
  await settled()
  expect([askedOf('a'), askedOf('b')]).toEqual([permits, 1])
  for (let answered = 1; answered <= 51; answered++) {
    await answer(1)
    // The key of the other organization is the second one that is answered.
    expect(asked.length - answered).toBeLessThanOrEqual(answered < 2 ? permits + 1 : permits)
  }
  expect((await Promise.all(pages)).map(({ state }) => state?.length)).toEqual([99, 1])
  expect(inUse()).toEqual([0, 0])
})

test('a small request does not wait for all keys of a large one', async () => {
  const { read, answer, askedOf } = setUp()
  const large = read('large', 50)
  await settled()
  const small = read('small', 1)
  await settled()
  expect(askedOf('small')).toBe(0)
  await answer(2)
  expect(askedOf('small')).toBe(1)
  await answer(60)
  await Promise.all([large, small])
})

test('of many large requests the first ones end first', async () => {
  const { read, answer, askedOf } = setUp()
  const pages = Array.from({ length: requestsAtOnce + 1 }, (_, n) => read(`page${n}`, 20))
  await settled()
  await answer(requestsAtOnce * 20 - permits)
  expect(askedOf(`page${requestsAtOnce}`)).toBe(0)
  await Promise.all([answer(permits), ...pages.slice(0, requestsAtOnce)])
  expect(askedOf(`page${requestsAtOnce}`)).toBe(permits)
  await answer(20)
  await Promise.all(pages)
})

test('no further key is read once the client has gone', async () => {
  const { read, answer, inUse, asked } = setUp()
  const client = new AbortController()
  const pages = Array.from({ length: 10 }, (_, n) => read(`page${n}`, 50, { until: client.signal }))
  await settled()
  client.abort(abortReason('client_gone'))
  for (const page of pages) await expect(page).rejects.toMatchObject({ reason: 'client_gone' })
  await answer(permits)
  expect([asked.length, inUse()]).toEqual([permits, [0, 0]])
  const next = read('next', 1)
  await settled()
  await answer(1)
  expect((await next).state).toBe('o')
})

test('no further key is read once one of them cannot be read', async () => {
  const { read, answer, inUse, asked } = setUp()
  const page = read('a', 50)
  await settled()
  const refused = expect(page).rejects.toMatchObject({ reason: 'seal_key_unknown' })
  await answer(1, { state: 'unknown' })
  await refused
  await answer(permits + 1)
  expect(asked.length).toBeLessThanOrEqual(permits + 1)
  expect(inUse()).toEqual([0, 0])
})

test('a key that is held needs no turn', async () => {
  const { read, answer, asked } = setUp()
  const first = read('a', 1)
  await settled()
  await answer(1)
  await first
  const full = Array.from({ length: requestsAtOnce }, (_, n) => read(`page${n}`, 20))
  await settled()
  expect((await read('a', 1)).state).toBe('o')
  expect(asked.filter(id => id === 'a-0')).toHaveLength(1)
  await answer(100)
  await Promise.all(full)
})

test('a request without a turn is refused, and its key is not read', async () => {
  const none = createSemaphores({ permits: 0, queue: 0, waitMax: 0 }, noTimer)
  for (const full of ['requests', 'keys'] as const) {
    const { read, asked, inUse } = setUp({ ...createKeyReads(noTimer), [full]: none })
    await expect(read('a', 3)).rejects.toMatchObject({ reason: 'seal_key_reads' })
    expect([asked, inUse()]).toEqual([[], [0, 0]])
  }
})
