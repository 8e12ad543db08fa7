/** Replaces API processes one after the other while clients read through a load balancer that polls `/readyz`. */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { type Api, startApi } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'

const DRAIN_SECONDS = '3'
/** Much shorter than the drain. */
const LOOK_EVERY_MS = 250
const CLIENTS = 8

/** Sends each request to the next backend that was ready at the last poll. Never retries. */
const startBalancer = async (scope: Scope) => {
  const backends = new Map<Api, { ready: boolean; readonly agent: Agent }>()
  const looking = setInterval(() => {
    for (const [api, backend] of backends) {
      fetch(`${api.adminUrl}/readyz`).then(
        ({ status }) => {
          backend.ready = status === 200
        },
        () => {
          backend.ready = false
        },
      )
    }
  }, LOOK_EVERY_MS)
  let next = 0
  const server = createServer((req, res) => {
    const ready = [...backends].filter(([, { ready }]) => ready)
    const [api, backend] = ready[next++ % Math.max(1, ready.length)] ?? []
    if (!api || !backend) return void res.writeHead(502).end()
    const { hostname, port } = new URL(api.url)
    const onward = request({ hostname, port, path: req.url, headers: req.headers, agent: backend.agent }, answer => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    onward.on('error', () => (res.headersSent ? res.destroy() : res.writeHead(502).end()))
    onward.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => {
    clearInterval(looking)
    server.closeAllConnections()
    server.close()
    for (const { agent } of backends.values()) agent.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    add: (api: Api) => void backends.set(api, { ready: false, agent: new Agent({ keepAlive: true }) }),
    remove: (api: Api) => void backends.delete(api),
    ready: () => [...backends.values()].filter(({ ready }) => ready).length,
  }
}

test('no request fails while three API processes are replaced one after the other', async scope => {
  const store = await useStore(scope)
  for (let n = 0; n < 20; n++) store.payout('org_rolling', n, { id: `payout_${n}`, period: `period_${n}` })
  await store.publish('org_rolling', 20)
  const key = await store.key('org_rolling')
  const balancer = await startBalancer(scope)
  const settings = { API_DRAIN_SECONDS: DRAIN_SECONDS }
  const apis = await Promise.all([1, 2, 3].map(() => startApi(scope, store.prefix, { settings })))
  for (const api of apis) balancer.add(api)
  await eventually(() => expect(balancer.ready()).toBe(3))

  let going = true
  const statuses = new Map<number, number>()
  const clients = Array.from({ length: CLIENTS }, async () => {
    while (going) {
      const answer = await fetch(`${balancer.url}/payouts`, { headers: { authorization: `Bearer ${key}` } })
      await answer.arrayBuffer()
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      await pause(5)
    }
  })
  for (const api of apis) {
    const begun = performance.now()
    expect(await api.stop()).toEqual({ code: 0, signal: null })
    expect(performance.now() - begun).toBeGreaterThan(Number(DRAIN_SECONDS) * 1_000)
    balancer.remove(api)
    balancer.add(await startApi(scope, store.prefix, { settings }))
    await eventually(() => expect(balancer.ready()).toBe(3))
  }
  going = false
  await Promise.all(clients)
  expect([...statuses.keys()]).toEqual([200])
  expect(statuses.get(200)).toBeGreaterThan(100)
})

test('a stopping process reports it before it stops serving, and closes the connection after each answer', async scope => {
  const store = await useStore(scope)
  const api = await startApi(scope, store.prefix, { settings: { API_DRAIN_SECONDS: '4' } })
  const stopped = api.stop()
  await eventually(async () => {
    const ready = await fetch(`${api.adminUrl}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([503, { ready: false, reasons: ['stopping'] }])
  })
  const answer = await fetch(`${api.url}/payouts`)
  expect([answer.status, answer.headers.get('connection')]).toEqual([401, 'close'])
  const statusOf = async (url: string) => (await fetch(url).catch(() => undefined))?.status
  for (let admin: number | undefined = 200; admin !== undefined; ) {
    admin = await statusOf(`${api.adminUrl}/livez`)
    // The admin port closes last.
    if (admin === undefined) expect(await statusOf(`${api.url}/payouts`)).toBeUndefined()
  }
  expect(await stopped).toEqual({ code: 0, signal: null })
})
