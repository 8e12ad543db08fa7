import { describe, expect, test } from 'vitest'
import type { DocumentName } from '../../../api/elasticsearch/slice-documents.ts'
import { Refusal } from '../../../api/failures.ts'
import { createApiKeyCache } from '../../../api/read/api-keys.ts'
import { documentText, sha256 } from '../../support/bodies.ts'
import { multiGetAnswer, positionText } from '../answers.ts'

const signal = new AbortController().signal
const KEY = 'ck_0123456789abcdefghij'

const keyIndex = () => {
  const asked: number[] = []
  const clock = { now: 1_000 }
  const documents: Record<string, string> = { 'position:api-keys:0': positionText(5, 0, 5) }
  const put = (key: string, more: object = {}) => {
    const fields = { key_id: 'key_1', org_id: 'org_a', permissions: ['read'], revoked: false, ...more }
    documents[sha256(key)] = documentText(fields, '{"created_seq":0}')
  }
  const keys = createApiKeyCache(
    'p',
    async (names: readonly DocumentName[]) => {
      asked.push(names.length)
      return multiGetAnswer(names, documents)
    },
    () => clock.now,
  )
  return {
    asked,
    clock,
    documents,
    put,
    lookup: (key: string) => keys.lookup(key, signal),
    checkServed: keys.checkServed,
    wasValid: keys.wasValid,
  }
}

const reasonOf = async (act: Promise<unknown>): Promise<string | undefined> =>
  act.then(
    () => undefined,
    (error: unknown) => (error instanceof Refusal && error.code === 'unavailable' ? error.reason : String(error)),
  )

describe('a key', () => {
  test('belongs to its holder, and may read if its permissions say so', async () => {
    const { put, lookup } = keyIndex()
    put(KEY)
    put(`${KEY}x`, { permissions: [] })
    const orgHash = sha256('org_a').slice(0, 16)
    expect(await lookup(KEY)).toEqual({ org: 'org_a', orgHash, id: 'key_1', mayRead: true })
    expect(await lookup(`${KEY}x`)).toEqual({ org: 'org_a', orgHash, id: 'key_1', mayRead: false })
  })

  test('is unknown if it was never created, or is revoked', async () => {
    const { put, lookup } = keyIndex()
    put(KEY, { revoked: true })
    expect(await lookup(KEY)).toBe('unknown')
    expect(await lookup(`${KEY}x`)).toBe('unknown')
  })

  test('is trusted for two seconds after its look-up began, and not longer', async () => {
    const { asked, clock, put, lookup } = keyIndex()
    put(KEY)
    await lookup(KEY)
    put(KEY, { revoked: true })
    clock.now += 1_999
    expect(await lookup(KEY)).toMatchObject({ org: 'org_a' })
    expect(asked.length).toBe(1)
    clock.now += 2
    expect(await lookup(KEY)).toBe('unknown')
  })

  test('that is unknown is looked up again after two seconds: somebody may have created it', async () => {
    const { asked, clock, put, lookup } = keyIndex()
    await lookup(KEY)
    await lookup(KEY)
    expect(asked.length).toBe(1)
    put(KEY)
    clock.now += 2_001
    expect(await lookup(KEY)).toMatchObject({ org: 'org_a' })
  })

  test('counts as valid after a look-up that found it, until a look-up does not', async () => {
    const { clock, put, lookup, wasValid } = keyIndex()
    put(KEY)
    expect(wasValid(KEY)).toBe(false)
    await lookup(KEY)
    clock.now += 1_000_000
    expect([wasValid(KEY), wasValid(`${KEY}x`)]).toEqual([true, false])
    put(KEY, { revoked: true })
    await lookup(KEY)
    expect(wasValid(KEY)).toBe(false)
  })

  test('stays cached while thousands of unknown keys are tried', async () => {
    const { asked, put, lookup } = keyIndex()
    put(KEY)
    await lookup(KEY)
    for (let i = 0; i < 10_001; i++) await lookup(`${KEY}${i}`)
    asked.length = 0
    await lookup(KEY)
    expect(asked).toEqual([])
  })
})

describe('keys', () => {
  test('are unavailable, not unknown, until the projector has read the topic of keys to its end', async () => {
    const { documents, put, lookup, checkServed } = keyIndex()
    put(KEY)
    documents['position:api-keys:0'] = positionText(4, 0, 5)
    expect(await reasonOf(lookup(KEY))).toBe('keys_not_read_yet')
    expect(await reasonOf(checkServed(signal))).toBe('keys_not_read_yet')
    documents['position:api-keys:0'] = positionText(5, 0, 5)
    expect(await lookup(KEY)).toMatchObject({ org: 'org_a' })
    expect(await reasonOf(checkServed(signal))).toBeUndefined()
  })

  test('are unavailable if their position is missing', async () => {
    const { documents, lookup } = keyIndex()
    delete documents['position:api-keys:0']
    expect(await reasonOf(lookup(KEY))).toBe('no_key_position')
  })
})
