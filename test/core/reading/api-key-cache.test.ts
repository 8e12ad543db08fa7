import { describe, expect, test } from 'vitest'
import { createApiKeyCache, networksOf, worksFrom } from '../../../core/reading/api-key-cache.ts'
import { Refusal } from '../../../core/runtime/refusals.ts'
import type { DocumentName } from '../../../core/store/read/slice-documents.ts'
import { multiGetAnswer, positionText } from '../../api/answers.ts'
import { documentText, sha256 } from '../../support/bodies.ts'

const signal = new AbortController().signal
const KEY = 'ck_0123456789abcdefghij'
/** Documents of each multi-get: the key and the position of keys, then the key again. */
const FIRST_LOOK_UP = [2, 1]
const EXPIRY = Date.parse('2027-01-01T00:00:00Z')

const keyIndex = () => {
  const asked: number[] = []
  const clock = { now: 1_000, time: EXPIRY - 1 }
  const documents: Record<string, string> = { 'position:api-keys:0': positionText(5, 0, 5) }
  /** Indices whose documents come with an error in their place. */
  const unreadable = new Set<string>()
  /** Called after each multi-get has read its documents. */
  const after = { read: (): void => undefined }
  const put = (key: string, more: object = {}, body: object = {}) => {
    const fields = { key_id: 'key_1', org_id: 'org_a', permissions: ['read'], revoked: false, ...more }
    documents[sha256(key)] = documentText(fields, JSON.stringify({ created_seq: 0, ...body }))
  }
  const putExpiring = (key: string, expires_at: unknown) =>
    put(key, { permissions: [] }, { permissions: ['payouts:read'], expires_at })
  const keys = createApiKeyCache(
    'p',
    async (names: readonly DocumentName[]) => {
      asked.push(names.length)
      const answer = multiGetAnswer(names, documents, index => unreadable.has(index))
      after.read()
      return answer
    },
    () => clock.now,
    () => clock.time,
  )
  return {
    after,
    asked,
    clock,
    documents,
    put,
    putExpiring,
    unreadable,
    remembered: keys.remembered,
    lookup: (key: string) => keys.lookup(key, signal),
    checkServed: keys.checkServed,
    wasValid: (key: string, address?: string) => keys.wasValid(key, address),
  }
}

const reasonOf = async (act: Promise<unknown>): Promise<string | undefined> =>
  act.then(
    () => undefined,
    (error: unknown) => (error instanceof Refusal && error.code === 'unavailable' ? error.reason : String(error)),
  )

describe('a key', () => {
  test('belongs to its holder, with its permissions', async () => {
    const { put, lookup } = keyIndex()
    put(KEY)
    put(`${KEY}x`, { permissions: [] })
    put(`${KEY}y`, { permissions: ['payouts:read', 'totals:read', 'payouts:read'] })
    const holder = { org: 'org_a', orgHash: sha256('org_a').slice(0, 16), id: 'key_1' }
    expect(await lookup(KEY)).toEqual({ ...holder, permissions: new Set(['read']) })
    expect(await lookup(`${KEY}x`)).toEqual({ ...holder, permissions: new Set() })
    expect(await lookup(`${KEY}y`)).toEqual({ ...holder, permissions: new Set(['payouts:read', 'totals:read']) })
  })

  test('gets no permission from a word that this version does not know', async () => {
    const { put, lookup } = keyIndex()
    put(KEY, { permissions: ['payouts:write', 'Read', 'reps:read'] })
    expect(await lookup(KEY)).toMatchObject({ permissions: new Set(['reps:read']) })
  })

  test.each([
    ['2027-01-01T00:00:00Z', 0],
    ['2027-01-01T01:00:00+01:00', 0],
    ['2027-01-01T00:00:00.000000001Z', 1],
    ['2026-12-31T23:59:59.999Z', -1],
    ['2027-01-01T00:00:00.001000000Z', 1],
  ])('that expires at %s is unknown from there on, without another look-up', async (expires_at, first) => {
    const { asked, clock, putExpiring, lookup, remembered, wasValid } = keyIndex()
    clock.time = EXPIRY + first - 1
    putExpiring(KEY, expires_at)
    expect(await lookup(KEY)).toMatchObject({ org: 'org_a', permissions: new Set(['payouts:read']) })
    clock.time++
    expect([remembered(KEY), await lookup(KEY), wasValid(KEY)]).toEqual(['unknown', 'unknown', false])
    expect(asked).toEqual(FIRST_LOOK_UP)
    clock.now += 3_000
    expect([await lookup(KEY), remembered(KEY), wasValid(KEY)]).toEqual(['unknown', 'unknown', false])
  })

  test('whose expiry cannot be read is unavailable, not without expiry', async () => {
    const { putExpiring, lookup } = keyIndex()
    putExpiring(KEY, 'soon')
    expect(await reasonOf(lookup(KEY))).toBe('key_malformed')
  })

  test('with networks has their permissions, and each request has its address checked, also while it is cached', async () => {
    const { asked, put, lookup, remembered, wasValid } = keyIndex()
    put(KEY, { permissions: [] }, { within: { networks: ['10.0.0.0/8'], permissions: ['payouts:read'] } })
    const found = [await lookup(KEY), remembered(KEY)]
    expect(asked).toEqual(FIRST_LOOK_UP)
    for (const holder of found) {
      if (holder === undefined || holder === 'unknown') throw new Error('not found')
      expect(holder).toMatchObject({ permissions: new Set(['payouts:read']) })
      const addresses = ['10.1.2.3', '::ffff:10.1.2.3', '11.1.2.3', undefined]
      expect(addresses.map(address => worksFrom(holder, () => address))).toEqual([true, true, false, false])
    }
    expect([wasValid(KEY, '10.1.2.3'), wasValid(KEY, '11.1.2.3'), wasValid(KEY)]).toEqual([true, false, false])
  })

  test.each([
    { networks: ['office'], permissions: ['read'] },
    { networks: ['10.0.0.0/8', '10.0.0.0/33'], permissions: ['read'] },
    { networks: '10.0.0.0/8', permissions: ['read'] },
    { permissions: ['read'] },
    { networks: [] },
    null,
  ])('whose networks cannot be read works from nowhere: %j', async within => {
    const { put, lookup } = keyIndex()
    put(KEY, { permissions: [] }, { within })
    const found = await lookup(KEY).catch(() => undefined)
    expect(found === undefined || found === 'unknown' || !worksFrom(found, () => '10.0.0.1')).toBe(true)
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
    expect(asked).toEqual(FIRST_LOOK_UP)
    clock.now += 2
    expect(await lookup(KEY)).toBe('unknown')
  })

  test('that is unknown is looked up again after two seconds: somebody may have created it', async () => {
    const { asked, clock, put, lookup } = keyIndex()
    await lookup(KEY)
    await lookup(KEY)
    expect(asked).toEqual(FIRST_LOOK_UP)
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

  test('are unavailable while documents of keys are removed: one that is valid may be gone for a moment', async () => {
    const { documents, lookup } = keyIndex()
    documents['position:api-keys:0'] = positionText(5, 0, 5).replace('"serve_from"', '"removing":true,"serve_from"')
    expect(await reasonOf(lookup(KEY))).toBe('keys_not_read_yet')
  })

  test('are read again once they are served: a multi-get may read a key before its position', async () => {
    for (const serveFrom of [5, 9]) {
      const { after, documents, put, lookup } = keyIndex()
      if (serveFrom === 9) await lookup(`${KEY}before`)
      documents['position:api-keys:0'] = positionText(serveFrom, 0, serveFrom)
      put(`${KEY}x`)
      after.read = () => {
        put(KEY)
        put(`${KEY}x`, { revoked: true })
      }
      // Both look-ups begin before one of them knows that keys are served.
      const [created, revoked] = await Promise.all([lookup(KEY), lookup(`${KEY}x`)])
      expect(created).toMatchObject({ org: 'org_a' })
      expect(revoked).toBe('unknown')
    }
  })

  test('of a restored copy are read again, also if they are served from the same offset as before', async () => {
    for (const [passed, expected] of [
      [1_999, 'org_a'],
      [2_000, undefined],
    ] as const) {
      const { after, clock, put, lookup } = keyIndex()
      await lookup(`${KEY}before`)
      clock.now += passed
      put(KEY)
      // The copy is from before the revocation. It is read again, and served, before the position is read.
      after.read = () => put(KEY, { revoked: true })
      const found = await lookup(KEY)
      expect(found === 'unknown' ? undefined : found.org).toBe(expected)
    }
  })

  test('are not read again while the same keys are served, also if a readiness check found them served', async () => {
    const { asked, put, lookup, checkServed } = keyIndex()
    put(KEY)
    await checkServed(signal)
    await lookup(KEY)
    await lookup(`${KEY}x`)
    expect(asked).toEqual([2, 2, 2])
  })

  test('are not served if the user may read their position, but not the keys', async () => {
    const { unreadable, checkServed } = keyIndex()
    expect(await reasonOf(checkServed(signal))).toBeUndefined()
    unreadable.add('p-api-keys')
    expect(await reasonOf(checkServed(signal))).toBe('elasticsearch_partial')
  })

  test('are unavailable if their position is missing', async () => {
    const { documents, lookup } = keyIndex()
    delete documents['position:api-keys:0']
    expect(await reasonOf(lookup(KEY))).toBe('no_key_position')
  })
})

const isIn = (networks: readonly unknown[], address: string | undefined): boolean | undefined =>
  networksOf(networks)?.(address)

describe('an address', () => {
  test.each([
    ['10.1.2.3', ['10.0.0.0/8'], true],
    ['11.0.0.0', ['10.0.0.0/8'], false],
    ['203.0.113.7', ['203.0.113.7/32'], true],
    ['203.0.113.8', ['203.0.113.7/32'], false],
    ['203.0.113.7', ['203.0.113.255/24'], true],
    ['192.0.2.1', ['10.0.0.0/8', '192.0.2.0/24'], true],
    ['192.0.2.1', ['0.0.0.0/0'], true],
    ['2001:db8::1', ['2001:DB8::/32'], true],
    ['2001:db9::1', ['2001:db8::/32'], false],
    ['fe80::1%eth0', ['fe80::/10'], true],
    ['::1', ['::/0'], true],
    ['::1', ['0.0.0.0/0'], false],
  ])('%s in %j: %s', (address, networks, expected) => {
    expect(isIn(networks, address)).toBe(expected)
  })

  test.each(['::ffff:10.1.2.3', '::FFFF:a01:203', '0:0:0:0:0:ffff:10.1.2.3'])(
    'in IPv6 form counts as IPv4: %s',
    address => {
      expect(isIn(['10.0.0.0/8'], address)).toBe(true)
      for (const networks of [['11.0.0.0/8'], ['::/0'], ['::ffff:a00:0/104']]) {
        expect(isIn(networks, address)).toBe(false)
      }
    },
  )

  test('of IPv4 is in no network of IPv6', () => {
    for (const networks of [['::/0'], ['::ffff:a00:0/104']]) expect(isIn(networks, '10.1.2.3')).toBe(false)
  })

  test.each([undefined, '', 'unknown', '10.0.0', '10.0.0.1:8080'])(
    'that cannot be read is in no network: %s',
    address => {
      expect(isIn(['0.0.0.0/0', '::/0'], address)).toBe(false)
    },
  )
})

test.each([['office'], ['10.0.0.0'], ['10.0.0.0/33'], [undefined], [10]])(
  'one text that is no network makes the whole list unreadable: %s',
  network => {
    expect(networksOf(['10.0.0.0/8', network])).toBeUndefined()
  },
)
