/** Delivers answers over real local connections. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { deliveryTime, limitDelivery } from '../../../api/access/permits.ts'
import type { Arrived } from '../../../api/http/request.ts'
import { oneAtATime } from '../../../api/http/server.ts'
import { DELIVERY_RATE_MIN, DELIVERY_TIME_MIN, REQUESTS_AHEAD_MAX } from '../../../api/limits.ts'
import { allocate, createAnswerBudget, free } from '../../../core/store/read/answer-budget.ts'
import { PAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { eventually, type Scope } from '../../support/scope.ts'

const fileOf = (name: string): string => join(import.meta.dirname, '..', '..', 'support', 'tls', name)
const tls = { cert: readFileSync(fileOf('cert.pem')), key: readFileSync(fileOf('key.pem')) }

const listening = async (scope: Scope, listener: RequestListener, secure?: typeof tls): Promise<number> => {
  const server: Server = secure ? createTlsServer(secure, listener) : createServer(listener)
  server.on('connect', ({ socket }) => socket.on('error', () => socket.destroy()))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  scope.onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
const connected = (scope: Scope, port: number, bytes: string, open = () => connect(port, '127.0.0.1')): Socket => {
  const socket = open()
  socket.on('error', () => undefined).write(bytes)
  scope.onTestFinished(async () => void socket.destroy())
  return socket
}
const request = (path: string, method = 'GET') => `${method} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

/** More bytes than the socket buffers of the kernel can take. */
const LARGE = 32 * 1024 * 1024

const NO_TURN = { wait: async () => undefined, tryNow: () => true, isMine: () => false, end: () => undefined }

type Served = { readonly hasKey?: boolean; readonly isEncrypted?: boolean; readonly reads?: Buffer[] }
const serve = (body: () => Buffer, { hasKey = true, isEncrypted, reads = [] }: Served = {}) => {
  const budget = createAnswerBudget({ onRefused: () => undefined })
  const timers: { readonly milliseconds: number; readonly run: () => void; cancelled: boolean }[] = []
  let timeouts = 0
  const later = (milliseconds: number, run: () => void) => {
    const timer = { milliseconds, run, cancelled: false }
    timers.push(timer)
    return () => {
      timer.cancelled = true
    }
  }
  const app = new Koa<Arrived>()
  app.silent = true
  app.use(async (ctx, next) => {
    if (ctx.get('X-Last')) ctx.set('Connection', 'close')
    await next()
  })
  const step = limitDelivery(budget, later, () => timeouts++)
  app.use((ctx, next) => {
    Object.assign(ctx.state, { spent: { waited: 0, bytesRead: 0, held: undefined } })
    return step(ctx, next)
  })
  app.use(async ctx => {
    if (hasKey) ctx.state.spent.held = { reservation: budget.open(undefined), reads, turn: NO_TURN }
    if (isEncrypted) Object.assign(ctx.req.socket, { encrypted: true })
    ctx.body = body()
  })
  return { listener: app.callback(), budget, timers, timeouts: () => timeouts }
}
const serving = async (scope: Scope, body: () => Buffer, served?: Served) => {
  const { listener, ...given } = serve(body, served)
  return { port: await listening(scope, listener), ...given }
}

describe('an answer', () => {
  test('holds its bytes until the client has received them', async scope => {
    const { port, budget, timers } = await serving(scope, () => Buffer.alloc(LARGE))
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
    socket.resume()
    await eventually(() => expect(budget.held()).toBe(0))
    expect(timers.map(({ cancelled }) => cancelled)).toEqual([true])
  })

  test('gives its memory back at once when the client has received it, and that of all reads before', async scope => {
    const [body, read, small] = [allocate(LARGE), allocate(LARGE), Buffer.from('small')]
    const { port, budget } = await serving(scope, () => body, { reads: [read, body.subarray(5), small] })
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
    expect([read, small, body].map(({ length }) => length)).toEqual([0, 5, LARGE])
    socket.resume()
    await eventually(() => expect(body.length).toBe(0))
  })

  test('releases its bytes when the client disconnects', async scope => {
    const { port, budget } = await serving(scope, () => Buffer.alloc(LARGE))
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
    socket.destroy()
    await eventually(() => expect(budget.held()).toBe(0))
  })

  test('is cut off, and releases its bytes, if the client reads too slowly', async scope => {
    const { port, budget, timers, timeouts } = await serving(scope, () => Buffer.alloc(LARGE))
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(timers.map(({ milliseconds }) => milliseconds)).toEqual([deliveryTime(LARGE)]))
    timers[0]?.run()
    await eventually(() => expect(budget.held()).toBe(0))
    expect(timeouts()).toBe(1)
  })

  test('that is a small part of a large buffer is copied, and holds only its own bytes', async scope => {
    const { port, budget } = await serving(scope, () => Buffer.alloc(4 * LARGE).subarray(0, LARGE))
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
  })

  test('that grew in place keeps no memory behind its bytes', async scope => {
    const memory = new ArrayBuffer(LARGE + 1_000_000, { maxByteLength: 2 * LARGE })
    const { port, budget } = await serving(scope, () => Buffer.from(memory, 0, LARGE))
    const socket = connected(scope, port, request('/'))
    socket.pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
    expect(memory.byteLength).toBe(LARGE)
  })

  test('without a key is shared by all deliveries, so it holds no bytes; its time is limited like any other', async scope => {
    const shared = Buffer.alloc(LARGE)
    const { port, budget, timers, timeouts } = await serving(scope, () => shared, { hasKey: false })
    const sockets = [1, 2, 3, 4].map(() => connected(scope, port, request('/')).pause())
    await eventually(() => expect(timers).toHaveLength(sockets.length))
    expect([budget.held(), timers.some(({ cancelled }) => cancelled)]).toEqual([0, false])
    timers[0]?.run()
    await eventually(() => expect([timeouts(), timers.filter(({ cancelled }) => cancelled).length]).toEqual([1, 1]))
  })

  test('without a key holds its bytes on an encrypted connection, which has a copy of them', async scope => {
    const shared = Buffer.alloc(LARGE)
    const { port, budget } = await serving(scope, () => shared, { hasKey: false, isEncrypted: true })
    connected(scope, port, request('/')).pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
  })

  test('that is freed too early closes an encrypted connection: no other answer fills it up', async scope => {
    const body = allocate(LARGE)
    const { budget, listener } = serve(() => body)
    const port = await listening(scope, listener, tls)
    const open = () => connectTls({ port, host: '127.0.0.1', ca: tls.cert })
    const socket = connected(scope, port, request('/'), open).pause()
    await eventually(() => expect(budget.held()).toBe(LARGE))
    free(body)
    socket.resume()
    await eventually(() => expect(socket.closed).toBe(true))
  })

  test('to a HEAD request holds no bytes', async scope => {
    const { port, budget, timers } = await serving(scope, () => Buffer.alloc(LARGE))
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'HEAD' })
    expect(answer.headers.get('content-length')).toBe(String(LARGE))
    expect([budget.held(), timers]).toEqual([0, []])
  })

  test('that cannot be sent any more holds its bytes until the connection closes', async scope => {
    const { port, budget, timers } = await serving(scope, () => Buffer.alloc(LARGE))
    // The first answer ends the connection. CONNECT removes Node's own listeners from the socket.
    const last = 'GET /1 HTTP/1.1\r\nHost: a\r\nX-Last: 1\r\n\r\n'
    const socket = connected(scope, port, `${last}${request('/2')}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`)
    socket.resume()
    await new Promise(resolve => socket.on('close', resolve))
    await eventually(() => expect([timers.length > 0, budget.held()]).toEqual([true, 0]))
    expect(timers.every(({ cancelled }) => cancelled)).toBe(true)
  })

  test('of ordinary size may take half a minute, and the largest page three minutes', () => {
    // 200 payouts with 6 lines each, over a line with 16 KiB/s.
    expect(deliveryTime(247_000)).toBeGreaterThan((247_000 / 16_384) * 1_000)
    expect(deliveryTime(0)).toBe(DELIVERY_TIME_MIN)
    expect(deliveryTime(PAGE_BYTES_MAX)).toBe(DELIVERY_TIME_MIN + (PAGE_BYTES_MAX / DELIVERY_RATE_MIN) * 1_000)
    expect(deliveryTime(PAGE_BYTES_MAX)).toBeLessThanOrEqual(180_000)
  })
})

describe('pipelined requests on one connection', () => {
  /** Answers the next request only when the test says so. */
  const answeringWhenTold = async (scope: Scope) => {
    const begun: string[] = []
    const waiting: (() => void)[] = []
    const port = await listening(
      scope,
      oneAtATime((req, res) => {
        begun.push(req.url ?? '')
        waiting.push(() => res.end(`answer to ${req.url}\n`))
      }).listener,
    )
    return { port, begun, answerNext: () => waiting.shift()?.() }
  }

  test('are answered one after the other, in order', async scope => {
    const { port, begun, answerNext } = await answeringWhenTold(scope)
    const paths = Array.from({ length: 60 }, (_, n) => `/${n}`)
    const socket = connected(scope, port, paths.map(path => request(path)).join(''))
    let text = ''
    socket.setEncoding('latin1').on('data', data => (text += data))
    for (const [n, path] of paths.entries()) {
      await eventually(() => expect(begun.at(-1)).toBe(path), { every: 1 })
      expect(begun).toHaveLength(n + 1)
      answerNext()
    }
    await eventually(() => expect([...text.matchAll(/answer to (\S+)/g)].map(([, path]) => path)).toEqual(paths))
  })

  test('do not begin after the connection has closed', async scope => {
    const { port, begun } = await answeringWhenTold(scope)
    const socket = connected(scope, port, request('/1') + request('/2') + request('/3'))
    await eventually(() => expect(begun).toEqual(['/1']))
    socket.destroy()
    // A later request has begun, so each earlier request that could begin has begun.
    const next = connected(scope, port, request('/4'))
    await eventually(() => expect(begun).toContain('/4'))
    next.destroy()
    expect(begun).toEqual(['/1', '/4'])
  })

  test('do not begin after an answer that closes the connection', async scope => {
    const begun: string[] = []
    const port = await listening(
      scope,
      oneAtATime((req, res) => {
        begun.push(req.url ?? '')
        res.setHeader('Connection', 'close')
        setTimeout(() => res.end('the answer'))
      }).listener,
    )
    const body = 'GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx'
    const socket = connected(scope, port, body + request('/2'))
    socket.resume()
    await new Promise(resolve => socket.on('close', resolve))
    expect(begun).toEqual(['/1'])
  })

  test('are limited in number: with too many, the server closes the connection', async scope => {
    const { port } = await answeringWhenTold(scope)
    const socket = connected(scope, port, request('/').repeat(REQUESTS_AHEAD_MAX + 2))
    await new Promise(resolve => socket.on('close', resolve))
  })

  test('leave the connection usable for later requests', async scope => {
    const { port, begun, answerNext } = await answeringWhenTold(scope)
    const socket = connected(scope, port, request('/1') + request('/2'))
    socket.resume()
    for (const path of ['/1', '/2', '/3']) {
      await eventually(() => expect(begun.at(-1)).toBe(path), { every: 1 })
      answerNext()
      if (path === '/2') socket.write(request('/3'))
    }
  })
})
