/** Replaces API processes one after the other while clients read through a load balancer that polls `/readyz`. */
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { type Api, startApi } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { expectServed } from '../support/walkers.ts'

/** The longest one that a setting permits. */
const DRAIN_SECONDS = '4'
/** Much shorter than the drain. */
const LOOK_EVERY_MS = 250
const CLIENTS = 8

type Backend = {
  readonly agent: Agent
  ready: boolean
  /** The number of the last poll that was answered or failed. */
  seen: number
  /** The first poll after its stop. */
  stopsAt: number
  /** Whether a poll has seen that it stops. */
  isAnswered: boolean
  /** Requests that got no answer. */
  lost: number
}

/** Sends each request to the next backend that was ready at the last poll. Never retries. */
const startBalancer = async (scope: Scope) => {
  const backends = new Map<Api, Backend>()
  let look = 0
  const looking = setInterval(() => {
    look++
    for (const [api, backend] of backends) {
      const asked = look
      const see = (ready: boolean): void => {
        // On a busy machine, the answer of an older poll may come later.
        if (asked < backend.seen) return
        Object.assign(backend, { seen: asked, ready })
      }
      fetch(`${api.adminUrl}/readyz`).then(
        ({ status }) => {
          see(status === 200)
          if (asked >= backend.stopsAt && status === 503) backend.isAnswered = true
        },
        () => see(false),
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
    onward.on('error', () => {
      backend.lost++
      if (res.headersSent) res.destroy()
      else res.writeHead(502).end()
    })
    onward.end()
  })
  // Longer than this process stands still on a busy machine: a client does not send on a connection that is closing.
  server.keepAliveTimeout = 65_000
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => {
    clearInterval(looking)
    server.closeAllConnections()
    server.close()
    for (const { agent } of backends.values()) agent.destroy()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    add: (api: Api) => {
      const agent = new Agent({ keepAlive: true })
      const never = Number.POSITIVE_INFINITY
      backends.set(api, { agent, ready: false, seen: 0, stopsAt: never, isAnswered: false, lost: 0 })
    },
    /** From now on, a poll can see that the backend stops. */
    stops: (api: Api) => void Object.assign(backends.get(api) ?? {}, { stopsAt: look + 1 }),
    /** Returns how many requests it lost because this process had no time for a poll while the backend stopped. */
    remove: (api: Api): number => {
      const { isAnswered = true, lost = 0 } = backends.get(api) ?? {}
      backends.delete(api)
      return isAnswered ? 0 : lost
    },
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
  let forgiven = 0
  const all = [...apis]
  for (const api of apis) {
    const begun = performance.now()
    balancer.stops(api)
    expect(await api.stop()).toEqual({ code: 0, signal: null })
    expect(performance.now() - begun).toBeGreaterThan(Number(DRAIN_SECONDS) * 1_000)
    forgiven += balancer.remove(api)
    const next = await startApi(scope, store.prefix, { settings })
    all.push(next)
    balancer.add(next)
    await eventually(() => expect(balancer.ready()).toBe(3))
  }
  going = false
  await Promise.all(clients)
  const [answered = 0, unavailable = 0, lost = 0] = [200, 503, 502].map(status => statuses.get(status) ?? 0)
  expect([...statuses.keys()].filter(status => ![200, 503, 502].includes(status))).toEqual([])
  await expectServed({ unavailable, pages: answered }, ...all)
  expect(lost).toBe(forgiven)
  expect(answered).toBeGreaterThan(100)
})

test('a stopping process reports it before it stops serving, and closes the connection after each answer', async scope => {
  const store = await useStore(scope)
  // On a busy machine, this process may look after the drain: then it stops another one.
  const { api, stopped, ready, answer } = await eventually(async () => {
    const api = await startApi(scope, store.prefix, { settings: { API_DRAIN_SECONDS: DRAIN_SECONDS } })
    const stopped = api.stop()
    const look = async () => {
      const answer = await fetch(`${api.adminUrl}/readyz`)
      expect(answer.status).not.toBe(200)
      return [answer.status, await answer.json()]
    }
    const ready = await eventually(look, { within: 10_000 })
    return { api, stopped, ready, answer: await fetch(`${api.url}/payouts`) }
  })
  expect(ready).toEqual([503, { ready: false, reasons: ['stopping'] }])
  expect([answer.status, answer.headers.get('connection')]).toEqual([401, 'close'])
  const statusOf = async (url: string) => (await fetch(url).catch(() => undefined))?.status
  for (let admin: number | undefined = 200; admin !== undefined; ) {
    admin = await statusOf(`${api.adminUrl}/livez`)
    // The admin port closes last.
    if (admin === undefined) expect(await statusOf(`${api.url}/payouts`)).toBeUndefined()
  }
  expect(await stopped).toEqual({ code: 0, signal: null })
})
