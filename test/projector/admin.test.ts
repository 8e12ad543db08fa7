import type { Server } from 'node:http'
import { Registry } from 'prom-client'
import { afterEach, expect, test } from 'vitest'
import { type AdminSteps, startAdmin } from '../../projector/admin.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

const start = async (steps: Partial<AdminSteps> = {}) => {
  const health = { reasons: () => ({}) }
  server = await startAdmin('127.0.0.1', 0, { health, registry: new Registry(), status: async () => [], ...steps })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: answer.status, body: await answer.text() }
  }
  return { ask, port }
}

test('it is alive as long as it answers, ready when nothing is in the way, and else says what is', async () => {
  const reasons: Record<string, string> = {}
  const { ask } = await start({ health: { reasons: () => reasons } })
  expect(await ask('/livez')).toEqual({ status: 200, body: '{"live":true}' })
  expect(await ask('/readyz')).toEqual({ status: 200, body: '{"ready":true,"reasons":{}}' })
  reasons.kafka = 'does not answer'
  expect(await ask('/readyz')).toEqual({ status: 503, body: '{"ready":false,"reasons":{"kafka":"does not answer"}}' })
  expect((await ask('/livez')).status).toBe(200)
})

test('its status is that of every partition, or 503 when that is not known', async () => {
  const partition = { generation: 'g1', topic: 't', partition: 0, searchable_to: 1, end: 2, lag: 1, parked: 0 }
  const { ask } = await start({ status: async () => [partition] })
  expect(await ask('/status')).toEqual({ status: 200, body: JSON.stringify({ partitions: [partition] }) })
  server?.close()
  expect((await (await start({ status: async () => undefined })).ask('/status')).status).toBe(503)
})

test('a part that fails is answered 500, without its message', async () => {
  const status = async (): Promise<never> => {
    throw new Error('quotes a document')
  }
  const { ask } = await start({ status })
  expect(await ask('/status')).toEqual({ status: 500, body: '{}' })
})

test.each(['/', '/status/', '/livez?x', '/__proto__', '/toString'])(
  '%s is answered with the paths there are',
  async path => {
    const { ask } = await start()
    expect(await ask(path)).toEqual({ status: 404, body: '{"paths":["/livez","/readyz","/metrics","/status"]}' })
  },
)

test('a port in use stops the start', async () => {
  const { port } = await start()
  const second = startAdmin('127.0.0.1', port, {
    health: { reasons: () => ({}) },
    registry: new Registry(),
    status: async () => [],
  })
  await expect(second).rejects.toThrow(expect.objectContaining({ code: 'port_unavailable' }))
})
