/** Whole walks through a proxy that validates each request and answer against the OpenAPI document of the API. */
import { expect, test } from 'vitest'
import { serveApi, useStore } from '../support/api.ts'
import { fileScope } from '../support/scope.ts'
import { startValidatingProxy } from '../support/validating-proxy.ts'

const scope = fileScope()

test('whole walks and every refusal match the OpenAPI document, as another library reads it', async () => {
  const store = await useStore(scope)
  const org = 'org_described'
  const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, place) => `${prefix}_${place}`)
  let seq = 0
  const lists = {
    payouts: ids('payout', 130),
    reps: ids('rep', 30),
    periods: ids('period', 30),
    payroll_files: ids('payroll', 30),
  }
  for (const id of lists.payouts)
    store.payout(org, ++seq, { id }, id.endsWith('5') ? { until: seq + 2, by: 'payout_0' } : undefined)
  for (const id of lists.reps) store.rep(org, id, [{ seq: ++seq, name: id }])
  for (const id of lists.periods) store.period(org, id, [{ seq: ++seq, name: id }])
  for (const id of lists.payroll_files) store.payroll(org, ++seq, id, '-0.10')
  await store.publish(org, seq + 1)
  const [key, mute] = [await store.key(org), await store.key(org, { permissions: [] })]
  const api = await serveApi(scope, store.prefix, { rate: { requests: 300, windowSeconds: 3_600 } })
  const proxy = await startValidatingProxy(scope, api.port)

  const ask = async (path: string, headers: Record<string, string> = { authorization: `Bearer ${key}` }) => {
    const answer = await fetch(`http://127.0.0.1:${proxy.port}/api/v1${path}`, { headers })
    const text = await answer.text()
    return {
      status: answer.status,
      etag: answer.headers.get('etag') ?? '',
      json: text === '' ? undefined : JSON.parse(text),
    }
  }
  for (const [list, all] of Object.entries(lists)) {
    for (const limit of [7, 50]) {
      const found: string[] = []
      for (let more = true; more; ) {
        const { json } = await ask(
          `/${list}?limit=${limit}${found.length > 0 ? `&starting_after=${found.at(-1)}` : ''}`,
        )
        found.push(...json.data.map(({ id }: { id: string }) => id))
        more = json.has_more
      }
      expect(found).toEqual(list === 'payouts' ? all.filter(id => !id.endsWith('5')) : all)
    }
    for (const id of all.slice(0, 20)) expect((await ask(`/${list}/${id}`)).status).toBe(200)
  }
  for (const id of lists.payouts.slice(0, 20)) expect((await ask(`/statements/${id}`)).status).toBe(200)
  const { etag } = await ask('/payouts')
  expect((await ask('/payouts', { authorization: `Bearer ${key}`, 'if-none-match': etag })).status).toBe(304)
  expect((await ask('/openapi.json', {})).status).toBe(200)
  expect((await ask('/payouts', {})).status).toBe(401)
  expect((await ask('/payouts', { authorization: `Bearer ${mute}` })).status).toBe(403)
  expect((await ask('/payouts/payout_999')).status).toBe(404)
  expect((await ask('/payouts?limit=0')).status).toBe(400)
  expect((await ask('/payouts?starting_after=payout_999')).status).toBe(400)
  for (let status = 200; status !== 429; ) ({ status } = await ask('/reps?limit=1'))
  expect(proxy.violations).toEqual([])
  expect(proxy.seen.size).toBeGreaterThanOrEqual(16)
})

test('an answer that does not match the OpenAPI document is detected', async t => {
  const store = await useStore(t)
  store.payout('org_described', 1, { id: 'payout_1' })
  await store.publish('org_described', 2)
  const key = await store.key('org_described')
  const api = await serveApi(t, store.prefix, {
    between: elasticsearch => ({
      ...elasticsearch,
      search: async (...given) => {
        const answer = await elasticsearch.search(...given)
        return Buffer.from(answer.toString('latin1').replaceAll('"currency":"', '"currenzy":"'), 'latin1') as never
      },
    }),
  })
  const proxy = await startValidatingProxy(t, api.port)
  await fetch(`http://127.0.0.1:${proxy.port}/api/v1/payouts`, { headers: { authorization: `Bearer ${key}` } })
  expect(proxy.violations).toHaveLength(1)
})
