/** The admin port of the API: `/readyz` tells of everything, `/readyz/process` of this process only. */
import { once } from 'node:events'
import { expect, type TestContext, test } from 'vitest'
import { createAdminServer } from '../../../api/admin/admin.ts'
import { generationOf } from '../../support/layout.ts'

type Parts = Parameters<typeof createAdminServer>[0]

const start = async (t: TestContext, given: Partial<Parts>) => {
  const server = createAdminServer({
    readiness: async () => ({ notReady: ['elasticsearch_away'], positions: undefined }),
    ages: { list: () => [] },
    isStopping: () => false,
    api: undefined,
    now: () => 0,
    metrics: async () => '',
    keyUses: () => [{ organization_hash: 'aa', key_id: 'key_1', last_used_on: '2026-02-01' }],
    started: 0,
    metricsType: 'text/plain',
    onFailure: () => undefined,
    ...given,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: answer.status, body: await answer.json() }
  }
}

test('a process without Elasticsearch is not ready, but accepts requests until it stops', async t => {
  let stopping = false
  const ask = await start(t, { isStopping: () => stopping })
  expect(await ask('/readyz')).toEqual({ status: 503, body: { ready: false, reasons: ['elasticsearch_away'] } })
  expect(await ask('/readyz/process')).toEqual({ status: 200, body: { ready: true, reasons: [] } })
  stopping = true
  expect(await ask('/readyz/process')).toEqual({ status: 503, body: { ready: false, reasons: ['stopping'] } })
})

test('an API that serves some partitions is ready, and its answer names the others', async t => {
  const notServed = new Map([[1, 'not_read_again_yet']])
  const positions = { generation: generationOf(), building: null, partitions: [], notServed }
  const ask = await start(t, { readiness: async () => ({ notReady: [], positions }) })
  const partitions_not_served = { 1: 'not_read_again_yet' }
  expect(await ask('/readyz')).toEqual({ status: 200, body: { ready: true, reasons: [], partitions_not_served } })
})

test('a page that fails gives a 500 without the message of the error, and tells of the error once', async t => {
  const defect = new TypeError('quotes a document')
  const failures: unknown[] = []
  const ask = await start(t, { metrics: () => Promise.reject(defect), onFailure: error => failures.push(error) })
  expect(await ask('/metrics')).toEqual({ status: 500, body: {} })
  expect(failures).toEqual([defect])
})

test('requests to the API are answered on this port only if the API does not encrypt', async t => {
  const none = await start(t, {})
  expect((await none('/api/v1/payouts')).status).toBe(404)
  const ask = await start(t, { api: (req, res) => void res.end(JSON.stringify({ asked: req.url })) })
  expect(await ask('/api/v1/payouts?limit=1')).toEqual({ status: 200, body: { asked: '/api/v1/payouts?limit=1' } })
  expect((await ask('/api/v2')).status).toBe(404)
})
