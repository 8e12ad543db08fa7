/** The client of Stripe, written for APIs with `{data, has_more}` and `starting_after`, reads our lists. */
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'

const scope = fileScope()
const PAYOUTS = 430
const OTHERS = 60

const shared = (async () => {
  const store = await useStore(scope)
  const org = 'org_client'
  let seq = 0
  const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, place) => `${prefix}_${place}`)
  const expected = {
    payouts: [] as string[],
    reps: ids('rep', OTHERS),
    periods: ids('period', OTHERS),
    payroll_files: ids('payroll', OTHERS),
  }
  for (const [place, id] of ids('payout', PAYOUTS).entries()) {
    const isReplaced = place % 9 === 4
    store.payout(org, ++seq, { id }, isReplaced ? { until: seq + 2, by: `payout_${place + 1}` } : undefined)
    if (!isReplaced) expected.payouts.push(id)
  }
  for (const id of expected.reps) store.rep(org, id, [{ seq: ++seq, name: id }])
  for (const id of expected.periods) store.period(org, id, [{ seq: ++seq, name: id }])
  for (const id of expected.payroll_files) store.payroll(org, ++seq, id, '1.00')
  await store.publish(org, seq + 1)
  const key = await store.key(org)
  const { port } = await serveApi(scope, store.prefix)
  const client = new Stripe(key, { host: '127.0.0.1', port, protocol: 'http', telemetry: false, maxNetworkRetries: 0 })
  return { client, expected }
})()

/** A list resource of the Stripe client with a path of ours. */
class List extends Stripe.StripeResource {
  all(path: string, limit: number): AsyncIterable<{ id: string }> {
    return this._makeRequest('GET', `/api/v1/${path}`, { limit }, undefined, { methodType: 'list' }) as never
  }
}

test.each([
  ['payouts', 1],
  ['payouts', 7],
  ['payouts', 50],
  ['payouts', 200],
  ['reps', 7],
  ['periods', 50],
  ['payroll_files', 59],
] as const)('%s with %i per page: each record exactly once', async (path, limit) => {
  const { client, expected } = await shared
  const ids: string[] = []
  for await (const { id } of new List(client as never).all(path, limit)) ids.push(id)
  expect(ids).toEqual(expected[path])
})
