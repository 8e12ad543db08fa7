/** Keys with networks: the address of each request decides, also while the key is cached. */
import { expect, test } from 'vitest'
import { authenticate } from '../../../api/access/authenticate.ts'
import type { ApiKeyCache, KeyHolder } from '../../../core/reading/api-key-cache.ts'
import { networksOf } from '../../../core/reading/networks.ts'
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
  const read = { refusedKey: undefined as KeyHolder | undefined }
  const ask = async (address: string | undefined, next: Parameters<typeof step>[1] = async () => undefined) => {
    from.address = address
    const header = `Bearer ${KEY}`
    const req = { rawHeaders: ['Authorization', header], headers: { authorization: header } }
    const ctx = { req, set: () => undefined, vary: () => undefined, state: { read, signal: undefined } }
    return step(ctx as unknown as Parameters<typeof step>[0], next).then(
      () => 'answered',
      (error: unknown) => error,
    )
  }
  return { from, used, read, ask }
}

test.each([
  ['cached', true],
  ['looked up', false],
])('a key that is %s works inside its networks only', async (_, isCached) => {
  const { used, read, ask } = rig(limited, isCached)
  expect(await ask(INSIDE)).toBe('answered')
  expect([used, read.refusedKey]).toEqual([[limited], undefined])
  for (const address of [OUTSIDE, undefined]) {
    expect(await ask(address)).toMatchObject({ code: 'unauthorized', reason: 'key_outside_its_networks' })
  }
  // The audit names the key; it was not used.
  expect([used, read.refusedKey]).toEqual([[limited], limited])
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
