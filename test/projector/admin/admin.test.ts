import type { Server } from 'node:http'
import { connect } from 'node:net'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, test } from 'vitest'
import { type AdminSteps, startAdmin } from '../../../projector/admin/admin.ts'
import { RECEIPT_PATHS } from '../../../projector/admin/answer-receipt.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

const steps: AdminSteps = {
  health: { reasons: () => ({}) },
  registry: new Registry(),
  failed: () => [],
  clocks: () => ({ elasticsearch_ahead_ms: 0, agree: true }),
  live: () => 'g1',
  ages: { list: () => [] },
  published: () => [],
  now: () => 0,
  parkedLately: async () => ({ codes: [], ahead: 0 }),
  status: async () => [],
  receipts: {
    sources: () => [],
    ask: async () => ({ state: 'not_yet' }),
    askRun: async () => ({ state: 'unavailable' }),
    explain: async () => 'why',
  },
  asyncapi: () => undefined,
  log: { error: () => undefined },
}

const start = async (given: Partial<AdminSteps> = {}) => {
  server = await startAdmin('127.0.0.1', 0, { ...steps, ...given })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: answer.status, body: await answer.text() }
  }
  return { ask, port }
}

test('it is alive while it answers, and ready if there is no reason against it; otherwise it gives the reasons', async () => {
  const reasons: Record<string, string> = {}
  const { ask } = await start({ health: { reasons: () => reasons } })
  expect(await ask('/livez')).toEqual({ status: 200, body: '{"live":true}' })
  expect(await ask('/readyz')).toEqual({ status: 200, body: '{"ready":true,"reasons":{}}' })
  reasons.kafka = 'does not answer'
  expect(await ask('/readyz')).toEqual({ status: 503, body: '{"ready":false,"reasons":{"kafka":"does not answer"}}' })
  expect((await ask('/livez')).status).toBe(200)
})

test('its status has every partition, or is 503 if it is unknown', async () => {
  const partition = { generation: 'g1', topic: 't', partition: 0, searchable_to: 1, end: 2, lag: 1, lost: 0, parked: 0 }
  const { ask } = await start({ status: async () => [partition] })
  expect(await ask('/status')).toEqual({
    status: 200,
    body: JSON.stringify({ partitions: [partition], clocks: steps.clocks() }),
  })
  server?.close()
  expect((await (await start({ status: async () => undefined })).ask('/status')).status).toBe(503)
})

test('its page says whether it is ready, what else is wrong, and where each partition is; texts are escaped', async () => {
  const partition = {
    generation: 'g1',
    topic: '<t>',
    partition: 0,
    searchable_to: 1,
    end: 4,
    lag: 3,
    lost: 1200,
    parked: 2,
  }
  const given: Partial<AdminSteps> = {
    health: { reasons: () => ({ kafka: 'does not answer' }) },
    failed: () => [{ generation: 'g2', code: 'index_missing' }],
    clocks: () => ({ elasticsearch_ahead_ms: 9_000, agree: false }),
    status: async () => [partition],
  }
  const { ask, port } = await start(given)
  const { status, body } = await ask('/')
  expect(status).toBe(200)
  const { headers } = await fetch(`http://127.0.0.1:${port}/`)
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';.* frame-ancestors 'none'$/)
  expect([headers.get('content-type'), headers.get('x-content-type-options')]).toEqual([
    'text/html; charset=utf-8',
    'nosniff',
  ])
  expect(body).toContain('<title>Commission projector: not ready</title>')
  expect(body).toContain('<li>kafka: does not answer. <a href="runbooks#commissionpartitionstuck">')
  expect(body).toContain('Generation g2 is not live, and has failed: index_missing.')
  expect(body).toContain('do not agree')
  expect(body).toContain('ends 1,200 records before the position of g1.')
  expect(body).toContain('data-head="Topic"><span>&#60;t&#62;</span></td>')
  server?.close()
  const calm = (await (await start({ status: async () => undefined })).ask('/')).body
  expect(calm).toContain('Commission projector: ready</h1>')
  expect(calm).toContain('The positions cannot be read now.')
  expect(calm).toContain('Nothing is wrong that this process can see.')
})

test('its page says that parked records are found by their own times, also if there are none', async () => {
  const note = 'The times are those of the records: older records that were parked since do not count.'
  const { body } = await (await start({})).ask('/')
  expect(body).toContain(`No record. ${note}<`)
  server?.close()
  const codes = [{ code: 'rep_unknown', records: 3, first: 20, last: 40 }]
  const some = (await (await start({ parkedLately: async () => ({ codes, ahead: 1_060 }) })).ask('/')).body
  expect(some).toContain('3 records were parked in the last 24 hours.')
  expect(some).toContain(`${note} With a time ahead of the clock: 1,060.<`)
})

test('its page waits for no server that stands still: it says why the projector does not work', async () => {
  const { ask } = await start({
    health: { reasons: () => ({ kafka: 'does not answer' }) },
    status: () => new Promise(() => undefined),
    parkedLately: () => new Promise(() => undefined),
  })
  const { status, body } = await ask('/')
  expect(status).toBe(200)
  expect(body).toContain('<li>kafka: does not answer.')
  expect(body).toContain('The positions cannot be read now.')
  expect(body).toContain('The parked records cannot be read now.')
})

test('it stays ready if a generation that is not live has failed, and gives its code', async () => {
  const { ask } = await start({ failed: () => [{ generation: 'g2', code: 'index_missing' }] })
  const failed = { g2: 'index_missing' }
  expect(await ask('/readyz')).toEqual({ status: 200, body: JSON.stringify({ ready: true, reasons: {}, failed }) })
  expect(await ask('/status')).toEqual({
    status: 200,
    body: JSON.stringify({ partitions: [], clocks: steps.clocks(), failed }),
  })
})

test('a part that fails gives a 500 and one log line, both without its message', async () => {
  const status = async (): Promise<never> => {
    throw new TypeError('quotes a document')
  }
  const lines: unknown[] = []
  const { ask } = await start({ status, log: { error: (...line) => lines.push(line) } })
  expect(await ask('/status')).toEqual({ status: 500, body: '{}' })
  expect(lines).toEqual([
    [{ error: 'TypeError', at: expect.any(Array) }, 'a request to the admin port or the port of receipts failed'],
  ])
  expect(JSON.stringify(lines)).not.toContain('quotes')
})

test.each(['/status/', '/livez?x', '/__proto__', '/toString'])('%s gives a 404 with all paths', async path => {
  const { ask } = await start()
  const paths = ['/', '/runbooks', '/livez', '/readyz', '/metrics', '/status', '/asyncapi.json', ...RECEIPT_PATHS]
  expect(await ask(path)).toEqual({ status: 404, body: JSON.stringify({ paths }) })
})

test('the AsyncAPI document is a 503 until the topics are known', async () => {
  let document: object | undefined
  const { ask } = await start({ asyncapi: () => document })
  expect(await ask('/asyncapi.json')).toEqual({ status: 503, body: '{"error":"the projector is starting"}' })
  document = { asyncapi: '3.0.0' }
  expect(await ask('/asyncapi.json')).toEqual({ status: 200, body: '{"asyncapi":"3.0.0"}' })
})

test('a port in use stops the start', async () => {
  const { port } = await start()
  await expect(startAdmin('127.0.0.1', port, steps)).rejects.toThrow(
    expect.objectContaining({ code: 'port_unavailable' }),
  )
})

describe('a receipt', () => {
  const sources = () => [{ stream: 'events', topic: 't', partitions: 1 } as const]

  test('is answered to GET and HEAD, and to nothing else', async () => {
    const { port } = await start({ receipts: { ...steps.receipts, sources } })
    const ask = (method: string) => fetch(`http://127.0.0.1:${port}/receipts/t/0/7?wait=1`, { method })
    const [got, head, posted] = await Promise.all(['GET', 'HEAD', 'POST'].map(ask))
    expect(await got?.json()).toEqual({ state: 'not_yet', topic: 't', partition: 0, offset: 7 })
    expect(got?.headers.get('cache-control')).toBe('no-store')
    expect([head?.status, await head?.text(), head?.headers.get('content-type')]).toEqual([200, '', 'application/json'])
    expect([posted?.status, posted?.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })

  test('is abandoned once the client has disconnected', async () => {
    const [asked, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { port } = await start({
      receipts: {
        ...steps.receipts,
        sources,
        ask: (_place, _milliseconds, gone) => {
          gone.addEventListener('abort', () => left.resolve())
          asked.resolve()
          return new Promise(() => undefined)
        },
      },
    })
    const client = connect(port, '127.0.0.1')
    client.write('GET /receipts/t/0/7?wait=60 HTTP/1.1\r\nHost: x\r\n\r\n')
    await asked.promise
    client.end()
    await left.promise
  })
})
