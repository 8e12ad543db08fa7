/** The admin port of the API: `/readyz` tells of everything, `/readyz/process` of this process only. */
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { createAdminServer } from '../../../api/admin/admin.ts'

test('a process without Elasticsearch is not ready, but accepts requests until it stops', async t => {
  let stopping = false
  const server = createAdminServer({
    readiness: async () => ({ notReady: ['elasticsearch_away'], positions: undefined }),
    isStopping: () => stopping,
    now: () => 0,
    metrics: async () => '',
    keyUses: () => [{ organization_hash: 'aa', key_id: 'key_1', last_used_on: '2026-02-01' }],
    started: 0,
    metricsType: 'text/plain',
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: answer.status, body: await answer.json() }
  }
  expect(await ask('/readyz')).toEqual({ status: 503, body: { ready: false, reasons: ['elasticsearch_away'] } })
  expect(await ask('/readyz/process')).toEqual({ status: 200, body: { ready: true, reasons: [] } })
  stopping = true
  expect(await ask('/readyz/process')).toEqual({ status: 503, body: { ready: false, reasons: ['stopping'] } })
})
