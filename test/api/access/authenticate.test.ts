/** Keys with networks: the address of each request decides, also while the key is cached. Failed logins by address. */
import { expect, test } from 'vitest'
import { authenticate, createFailedLogins } from '../../../api/access/authenticate.ts'
import { networkOf } from '../../../api/http/client-address.ts'
import { ADDRESSES_REMEMBERED, FAILURES_WINDOW_SECONDS } from '../../../api/limits.ts'
import type { ApiKeyCache, KeyHolder } from '../../../core/reading/api-key-cache.ts'
import { networksOf } from '../../../core/reading/api-key-cache.ts'
import { Refusal, refusalAnswer } from '../../../core/runtime/refusals.ts'

const INSIDE = '203.0.113.7'
const OUTSIDE = '203.0.114.7'
const KEY = 'ck_0123456789abcdefghij'
const isAllowedFrom = networksOf(['203.0.113.0/24'])
if (isAllowedFrom === undefined) throw new Error('a test needs a network')
const limited: KeyHolder = { org: 'org_a', orgHash: 'h', id: 'key_1', permissions: new Set(['read']), isAllowedFrom }

const rig = (found: KeyHolder | 'unknown', isCached: boolean) => {
  const from: { address: string | undefined } = { address: INSIDE }
  const used: KeyHolder[] = []
  const step = authenticate({
    keys: { remembered: () => (isCached ? found : undefined) } as unknown as ApiKeyCache,
    admitKey: async () => found,
    addressOf: () => from.address,
    mayStore: true,
    onUsed: key => void used.push(key),
    onLimited: () => undefined,
  })
  const audited = { refusedKey: undefined as KeyHolder | undefined }
  const ask = async (address: string | undefined, next: Parameters<typeof step>[1] = async () => undefined) => {
    from.address = address
    const header = `Bearer ${KEY}`
    const req = { rawHeaders: ['Authorization', header], headers: { authorization: header } }
    const ctx = { req, set: () => undefined, vary: () => undefined, state: { audited, signal: undefined } }
    return step(ctx as unknown as Parameters<typeof step>[0], next).then(
      () => 'answered',
      (error: unknown) => error,
    )
  }
  return { from, used, audited, ask }
}

test.each([
  ['cached', true],
  ['looked up', false],
])('a key that is %s works inside its networks only', async (_, isCached) => {
  const { used, audited, ask } = rig(limited, isCached)
  expect(await ask(INSIDE)).toBe('answered')
  expect([used, audited.refusedKey]).toEqual([[limited], undefined])
  for (const address of [OUTSIDE, undefined]) {
    expect(await ask(address)).toMatchObject({ code: 'unauthorized', reason: 'key_outside_its_networks' })
  }
  // The audit names the key; it was not used.
  expect([used, audited.refusedKey]).toEqual([[limited], limited])
})

test('outside its networks a key gets the very answer of an unknown key', async () => {
  const answers = await Promise.all([rig(limited, true).ask(OUTSIDE), rig('unknown', true).ask(OUTSIDE)])
  const [outside, unknown] = answers.map(error => (error instanceof Refusal ? refusalAnswer(error) : undefined))
  expect(outside).toEqual(unknown)
  expect(outside?.status).toBe(401)
})

test('a request that waits is refused when its client is no longer inside', async () => {
  const { from, ask } = rig(limited, true)
  const refused = await ask(INSIDE, async ({ recheckKey }) => {
    from.address = OUTSIDE
    await recheckKey()
  })
  expect(refused).toMatchObject({ code: 'unauthorized' })
})

const WINDOW = FAILURES_WINDOW_SECONDS * 1_000

test('limits the failed logins of an address per window, and starts again in the next window', () => {
  let time = 5
  const { reserve } = createFailedLogins(() => time, 3)
  for (let count = 0; count < 3; count++) {
    expect(reserve('192.0.2.1')).toBeDefined()
    time += 1_000
  }
  expect(reserve('192.0.2.1')).toBeUndefined()
  expect(reserve('192.0.2.2')).toBeDefined()
  // More failures do not extend the window.
  time = 5 + WINDOW - 1
  expect(reserve('192.0.2.1')).toBeUndefined()
  time += 1
  expect(reserve('192.0.2.1')).toBeDefined()
})

test('counts a login as failed when it begins, and takes that back once if the login succeeds', () => {
  const { reserve } = createFailedLogins(() => 0, 2)
  const [first, second] = [reserve('192.0.2.1'), reserve('192.0.2.1')]
  expect([first, second, reserve('192.0.2.1')]).toEqual([expect.any(Function), expect.any(Function), undefined])
  first?.()
  first?.()
  expect([reserve('192.0.2.1'), reserve('192.0.2.1')]).toEqual([expect.any(Function), undefined])
})

test('a login that began in an earlier window takes nothing back in the current window', () => {
  let time = 0
  const { reserve } = createFailedLogins(() => time, 1)
  const before = reserve('192.0.2.1')
  time = WINDOW
  expect(reserve('192.0.2.1')).toBeDefined()
  before?.()
  expect(reserve('192.0.2.1')).toBeUndefined()
})

test('a client with many addresses takes bounded memory: only the latest addresses are remembered', () => {
  const { reserve } = createFailedLogins(() => 0, 1)
  const addressOf = (place: number) => `10.${place >> 16}.${(place >> 8) & 255}.${place & 255}`
  for (let place = 0; place < 2 * ADDRESSES_REMEMBERED; place++) reserve(addressOf(place))
  expect(reserve(addressOf(2 * ADDRESSES_REMEMBERED - 1))).toBeUndefined()
  expect(reserve(addressOf(ADDRESSES_REMEMBERED))).toBeUndefined()
  expect(reserve(addressOf(0))).toBeDefined()
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:DB8:1:2::', '2001:db8:1:2'],
  ['2001:db8:1:2:ffff:ffff:ffff:ffff', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:0db8::0001', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
  ['::', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['', ''],
  [undefined, ''],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})
