/** The API server on a real port, with clients that violate HTTP. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { expect, test } from 'vitest'
import {
  createApiServer,
  listen,
  onceFurtherBytes,
  type RequestListener,
  stop,
  type Tls,
} from '../../../api/http/server.ts'
import { sendBytes } from '../../support/api.ts'
import { eventually, type Scope } from '../../support/scope.ts'

const serve = async (
  scope: Scope,
  listener: RequestListener = (_, res) => void res.end('answer'),
  { connectionsMax = 1_000, tls }: { readonly connectionsMax?: number; readonly tls?: Tls } = {},
) => {
  let refusals = 0
  let drops = 0
  const server = createApiServer({
    listener,
    tls,
    newRequestId: () => 'id',
    onRefused: () => refusals++,
    connectionsMax,
    onDrop: () => drops++,
  })
  const port = await listen(server, '127.0.0.1', 0)
  scope.onTestFinished(() => stop(server, 0))
  return { server, port, refusals: () => refusals, drops: () => drops }
}
const pem = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', '..', 'support', 'tls', `${name}.pem`), 'utf8')
const tls: Tls = { cert: pem('cert'), key: pem('key') }

/** A client that sends bytes and reads nothing. */
const reading = async (scope: Scope, port: number, bytes: string) => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined).pause()
  scope.onTestFinished(async () => void socket.destroy())
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

test.each([
  ['CONNECT', CONNECT],
  ['CONNECT and more', `${CONNECT}${'x'.repeat(100_000)}`],
  ['bytes that are not HTTP', 'no request\r\n\r\n'],
  ['an upgrade', 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ['a request and CONNECT', `${GET}${CONNECT}`],
  ['an expectation', 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'],
])('a client that sends %s and resets its connection does not end the process', async (_, bytes) => {
  const scope: (() => Promise<void>)[] = []
  const { port } = await serve({ onTestFinished: release => void scope.push(release) })
  const send = async (): Promise<void> => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    socket.write(bytes)
    setImmediate(() => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 20 }, send))
  expect(await sendBytes(port, CONNECT)).toContain('400')
  for (const release of scope) await release()
})

test('a CONNECT after a request is refused after the answer to that request', async scope => {
  const answered = Promise.withResolvers<void>()
  const { port, refusals } = await serve(scope, (_, res) => void answered.promise.then(() => res.end('the answer')))
  const received = sendBytes(port, `${GET}${CONNECT}`)
  setImmediate(() => answered.resolve())
  const text = await received
  expect(text.indexOf('the answer')).toBeGreaterThan(0)
  expect(text.indexOf('HTTP/1.1 400')).toBeGreaterThan(text.indexOf('the answer'))
  expect(refusals()).toBe(1)
})

const leaving = {
  closes: (socket: Socket) => void socket.destroy(),
  'closes its side': (socket: Socket) => void socket.end(),
  resets: (socket: Socket) => void socket.resetAndDestroy(),
}
const waysToLeave = Object.keys(leaving) as (keyof typeof leaving)[]
const bytesBeforeLeaving = [
  ['a request', GET],
  ['a request whose body is not complete', GET.replace('\r\n\r\n', '\r\nContent-Length: 10\r\n\r\nabc')],
  ['a chunked body that is not complete', GET.replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab')],
  ['a POST whose body is not complete', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc'],
  ['half a request behind another one', `${GET}GET / HTT`],
  ['CONNECT behind a request', `${GET}${CONNECT}`],
  ['CONNECT and more behind a request', `${GET}${CONNECT}${'x'.repeat(100_000)}`],
] as const
test.each(bytesBeforeLeaving.flatMap(([name, bytes]) => waysToLeave.map(how => [name, how, bytes] as const)))(
  'the end of a connection is seen while its answer waits: after %s the client %s',
  async (_, how, bytes) => {
    const scope: (() => Promise<void>)[] = []
    const begun = Promise.withResolvers<void>()
    let isClosed = false
    const { port } = await serve({ onTestFinished: end => void scope.push(end) }, (req, res) => {
      req.on('error', () => undefined).resume()
      res.once('close', () => {
        isClosed = true
      })
      begun.resolve()
    })
    const socket = await reading({ onTestFinished: end => void scope.push(end) }, port, bytes)
    await begun.promise
    leaving[how](socket)
    // Before the server ends a request that is not complete for its own time.
    await eventually(() => expect(isClosed).toBe(true), { within: 8_000, every: 5 })
    for (const end of scope) await end()
  },
)

test.each([
  ['a connection', undefined],
  ['an encrypted connection', tls],
])('a client that ends its side of %s behind a complete request gets its answer', async (_, certificate) => {
  const scope: (() => Promise<void>)[] = []
  const part = Buffer.alloc(1024 * 1024)
  const { port } = await serve(
    { onTestFinished: end => void scope.push(end) },
    (req, res) => {
      const answer = (): void => {
        for (let count = 0; count < 8; count++) res.write(part)
        res.end('the answer')
      }
      // The answer begins after the end of the side is there.
      req.socket.once('end', () => setImmediate(answer))
    },
    certificate && { tls: certificate },
  )
  const address = { port, host: '127.0.0.1', allowHalfOpen: true, rejectUnauthorized: false }
  const socket = certificate ? connectTls(address) : connect(address)
  scope.push(async () => void socket.destroy())
  await once(socket, certificate ? 'secureConnect' : 'connect')
  socket.end(GET)
  let text = ''
  for await (const chunk of socket) text = `${text.slice(-100)}${chunk}`
  expect(text).toContain('the answer')
  for (const end of scope.reverse()) await end()
})

test('a request that waits is told that the client has ended its side', async () => {
  const scope: (() => Promise<void>)[] = []
  const { port } = await serve({ onTestFinished: end => void scope.push(end) }, (_, res) => {
    onceFurtherBytes(res, () => void res.end('the answer'))
  })
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(GET)
  let text = ''
  for await (const chunk of socket) text += chunk
  expect(text).toContain('the answer')
  for (const end of scope) await end()
})

test('an answer that is being delivered is not cut off by the end of a request behind it', async scope => {
  const { port } = await serve(scope, (_, res) => void res.end(Buffer.alloc(8 * 1024 * 1024)))
  const socket = await reading(scope, port, `${GET}GET / HTT`)
  socket.end()
  let bytes = 0
  socket.on('data', chunk => {
    bytes += chunk.length
  })
  socket.resume()
  await once(socket, 'close')
  expect(bytes).toBeGreaterThan(8 * 1024 * 1024)
})

test.each([
  ['another request', GET],
  ['CONNECT', CONNECT],
  ['bytes that are no request', 'no request\r\n\r\n'],
])('a request that waits is told of %s behind it', async (_, bytes) => {
  const scope: (() => Promise<void>)[] = []
  const isTold = Promise.withResolvers<void>()
  const { port } = await serve({ onTestFinished: end => void scope.push(end) }, (_, res) => {
    onceFurtherBytes(res, () => {
      isTold.resolve()
      res.end('the answer')
    })
  })
  await reading({ onTestFinished: end => void scope.push(end) }, port, `${GET}${bytes}`)
  await isTold.promise
  for (const end of scope) await end()
})

/** A client that sends requests and keeps its connection open. */
const connected = (scope: Scope, port: number, bytes: string) => {
  const client = { text: '', closed: false, send: (bytes: string) => void socket.write(bytes) }
  const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
  socket.setEncoding('latin1').on('data', data => (client.text += data))
  socket.on('error', () => undefined).on('close', () => (client.closed = true))
  scope.onTestFinished(async () => void socket.destroy())
  return client
}

test('many idle connections do not keep new clients out: the server closes the longest idle ones, and no busy one', async scope => {
  const slow = Promise.withResolvers<void>()
  const answer: RequestListener = (req, res) =>
    void (req.url === '/slow' ? slow.promise.then(() => res.end('late answer')) : res.end('answer'))
  const { port, drops } = await serve(scope, answer, { connectionsMax: 10 })
  const busy = connected(scope, port, GET.replace('/', '/slow'))
  const clients: ReturnType<typeof connected>[] = []
  for (let n = 0; n < 30; n++) {
    const client = connected(scope, port, GET)
    await eventually(() => expect(client.text).toContain('answer'), { every: 1 })
    clients.push(client)
    if (n !== 4) continue
    // Now the first client is not the longest idle one.
    clients[0]?.send(GET)
    await eventually(() => expect(clients[0]?.text.match(/answer/g)).toHaveLength(2), { every: 1 })
  }
  expect(drops()).toBe(0)
  await eventually(() => expect(clients.filter(({ closed }) => !closed)).toEqual(clients.slice(-8)))
  expect(busy.closed).toBe(false)
  slow.resolve()
  await eventually(() => expect(busy.text).toContain('late answer'))
})

test('after a burst in which all connections had a request under way, new clients have room', async scope => {
  const slow = Promise.withResolvers<void>()
  const answer: RequestListener = (_, res) => void slow.promise.then(() => res.end('answer'))
  const { port, drops } = await serve(scope, answer, { connectionsMax: 10 })
  const clients = Array.from({ length: 12 }, () => connected(scope, port, GET))
  await eventually(() => expect(drops()).toBe(2))
  slow.resolve()
  await eventually(() => expect(clients.filter(({ text }) => text.includes('answer'))).toHaveLength(10))
  for (let n = 0; n < 5; n++) {
    const next = connected(scope, port, GET)
    await eventually(() => expect(next.text).toContain('answer'), { every: 1 })
  }
  expect(drops()).toBe(2)
})

test('a connection beyond the limit is closed and counted if all others have a request under way', async scope => {
  const { port, drops } = await serve(scope, () => undefined, { connectionsMax: 3 })
  const clients = Array.from({ length: 4 }, () => connected(scope, port, GET))
  await eventually(() => expect(clients.filter(({ closed }) => closed)).toHaveLength(1))
  expect(drops()).toBe(1)
})

test('a stop also closes connections that Node does not track: after CONNECT, or before the TLS handshake', async scope => {
  const large = await serve(scope, (_, res) => void setTimeout(() => res.end(Buffer.alloc(32 * 1024 * 1024))))
  const encrypted = await serve(scope, undefined, { tls })
  const known = Promise.all([once(large.server, 'connect'), once(encrypted.server, 'connection')])
  await reading(scope, large.port, `${GET}${CONNECT}`)
  await reading(scope, encrypted.port, '')
  await known
  const stopped = Promise.all([stop(large.server, 100), stop(encrypted.server, 100)]).then(() => 'stopped')
  expect(await Promise.race([stopped, sleep(30_000)])).toBe('stopped')
})

test('a connection that does not complete its TLS handshake is closed', async scope => {
  const { server, port, refusals } = await serve(scope, undefined, { tls })
  for (const bytes of ['', '\x16\x03\x01']) await reading(scope, port, bytes)
  const open = () => new Promise(resolve => server.getConnections((_, count) => resolve(count)))
  await eventually(async () => expect(await open()).toBe(0))
  expect(refusals()).toBe(0)
})
