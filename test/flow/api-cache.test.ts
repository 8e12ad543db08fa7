/** How long a client may keep an answer. */
import { expect, test } from 'vitest'
import { type Answer, serveApi, useStore } from '../support/api.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const shared = (async () => {
  const store = await useStore(scope, { timeOfFirst: Date.UTC(2020, 0) })
  const org = 'org_cache'
  store.rep(org, 'rep_1', [{ seq: 0, name: 'Ada' }])
  store.period(org, 'period_1', [{ seq: 1, name: 'January' }])
  store.payout(org, 2, { id: 'payout_1' })
  store.payroll(org, 3, 'payroll_1', '1.00')
  await store.publish(org, 4)
  return { store, key: await store.key(org), ...(await serveApi(scope, store.prefix)) }
})()

const pages = ['/reps', '/periods', '/payouts', '/payouts/payout_1/history', '/payroll_files', '/changes']
const whole = [
  '/reps/rep_1',
  '/periods/period_1',
  '/payouts/payout_1',
  '/statements/payout_1',
  '/payroll_files/payroll_1',
  '/totals',
]

const cacheControl = async (asked: Promise<Answer>) => (await asked).headers.get('cache-control')

const KEPT = 'private, max-age=3600, immutable'
const ASKED_AGAIN = 'private, no-cache'
test.each([
  ...whole.map(path => [path, 'only as of a change', KEPT] as const),
  ...pages.map(path => [path, 'never: pages are read together', ASKED_AGAIN] as const),
])('%s lets a client keep it unasked %s', async (path, _, expected) => {
  const { ask, key } = await shared
  expect(await cacheControl(ask(path, key))).toBe(ASKED_AGAIN)
  const first = await ask(`${path}?as_of=payroll_1`, key)
  // An old copy may have answered it.
  expect([first.status, first.headers.get('cache-control')]).toEqual([200, ASKED_AGAIN])
  const headers = { 'if-none-match': first.headers.get('etag') ?? '' }
  await eventually(async () => {
    const again = await ask(`${path}?as_of=payroll_1`, key, { headers })
    expect([again.status, again.headers.get('cache-control')]).toEqual([304, expected])
  })
  const instant = await ask(`${path}?as_of=2020-01-01T00:00:00.005Z`, key)
  expect([instant.status, instant.headers.get('cache-control')]).toEqual([200, ASKED_AGAIN])
})

test('a refusal does not let a client keep it', async () => {
  const { ask, key } = await shared
  for (const path of ['/payouts/payout_9?as_of=payroll_1', '/payouts?as_of=payroll_1&starting_after=payout_9']) {
    const refused = await ask(path, key)
    expect([refused.status >= 400, refused.headers.get('cache-control')]).toEqual([true, 'private, no-cache'])
  }
})

test('API_CACHE=no-store forbids to keep any answer', async t => {
  const { store, key } = await shared
  const { ask } = await serveApi(t, store.prefix, { mayStore: false })
  for (const path of ['/payouts', '/payouts?as_of=payroll_1', '/payouts/payout_9', '/totals?as_of=payroll_1']) {
    expect(await cacheControl(ask(path, key))).toBe('no-store')
  }
})
