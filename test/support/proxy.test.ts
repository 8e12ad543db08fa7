/** The proxy must really cause the faults that tests ask for: otherwise their assertions prove nothing. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startProxy } from './proxy.ts'
import { eventually, fileScope } from './scope.ts'

const file = fileScope()
const answer = 'x'.repeat(1_000)
let effects: string[] = []
let target: string

beforeAll(async () => {
  const server = createServer((asked, answered) => {
    asked.on('data', data => effects.push(String(data))).on('end', () => answered.end(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  file.onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
  })
  target = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  effects = []
})

/** Returns what comes back and how the exchange ends. Uses a new connection each time. */
const ask = async ({ port }: FaultProxy, body = 'effect', path = '/'): Promise<{ text: string; ended: string }> => {
  let text = ''
  const asking = request({ port, path, method: 'POST', agent: false, headers: { 'content-length': body.length } })
  asking.end(body)
  try {
    const [response] = await once(asking, 'response')
    for await (const piece of response) text += piece
    return { text, ended: 'whole' }
  } catch (error) {
    return { text, ended: (error as NodeJS.ErrnoException).code ?? 'unknown' }
  }
}

test('a healthy proxy passes everything on and records each request', async t => {
  const proxy = await startProxy(t, target)
  const body = 'b'.repeat(300_000)
  expect(await ask(proxy, body, '/large')).toEqual({ text: answer, ended: 'whole' })
  expect(effects.join('')).toBe(body)
  expect(proxy.asked()).toEqual([
    { line: 'POST /large HTTP/1.1', bytes: expect.any(Number), answered: expect.any(Number) },
  ])
  expect(proxy.asked()[0]?.bytes).toBeGreaterThan(body.length)
})

test('late: a request arrives when the proxy is healed, although its client has given up and was answered by a second request', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'late' }, line => line.includes('/concerned'), 1)
  const first = 'f'.repeat(300_000)
  const headers = { 'content-length': first.length }
  const asking = request({ port: proxy.port, path: '/concerned', method: 'POST', agent: false, headers })
  asking.on('error', () => undefined).end(first)
  await eventually(() => expect(proxy.asked()[0]?.bytes).toBeGreaterThan(first.length))
  asking.destroy()
  expect((await ask(proxy, 'second', '/concerned')).ended).toBe('whole')
  expect(effects.join('')).toBe('second')
  await proxy.heal()
  await eventually(() => expect(effects.join('')).toBe(`second${first}`))
  await eventually(() => expect(proxy.asked()[0]?.answered).toBeGreaterThan(0))
})

test('latency: every chunk arrives later', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'latency', milliseconds: 50 })
  const began = performance.now()
  expect((await ask(proxy)).ended).toBe('whole')
  expect(performance.now() - began).toBeGreaterThan(95)
})

test('slices: everything arrives, in small chunks', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'slices', bytes: 3 })
  expect(await ask(proxy)).toEqual({ text: answer, ended: 'whole' })
  expect(effects.join('')).toBe('effect')
})

test('reset: no effect, no answer', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'reset' })
  expect(await ask(proxy)).toEqual({ text: '', ended: 'ECONNRESET' })
  expect(effects).toEqual([])
})

test('lost answer: the effect, no answer', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'lost-answer' })
  expect(await ask(proxy)).toEqual({ text: '', ended: 'ECONNRESET' })
  expect(effects).toEqual(['effect'])
})

test('cut answer: the effect, a part of the answer', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'cut-answer', bytes: 500 })
  const { text, ended } = await ask(proxy)
  expect(ended).toBe('ECONNRESET')
  expect(text.length).toBeGreaterThan(100)
  expect(text.length).toBeLessThan(500)
  expect(effects).toEqual(['effect'])
})

test('other answer: no effect, and the answer that the test chose', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'other-answer', answer: 'HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno' })
  expect(await ask(proxy, '')).toEqual({ text: 'no', ended: 'whole' })
  expect(effects).toEqual([])
})

test('away: connections are refused until the proxy is healed, on the same port', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'away' })
  expect((await ask(proxy)).ended).toBe('ECONNREFUSED')
  await proxy.heal()
  expect((await ask(proxy)).ended).toBe('whole')
})

describe('a black hole', () => {
  test('passes nothing on until it is healed, and then everything', async t => {
    const proxy = await startProxy(t, target)
    await proxy.inject({ kind: 'black-hole' })
    const asked = ask(proxy)
    expect(await Promise.race([asked, quietFor(100)])).toBe('quiet')
    expect(effects).toEqual([])
    await proxy.heal()
    expect(await asked).toEqual({ text: answer, ended: 'whole' })
  })

  test('passes a request on late although its client has given up', async t => {
    const proxy = await startProxy(t, target)
    await proxy.inject({ kind: 'black-hole' })
    const given = new AbortController()
    const asked = fetch(`http://${proxy.address}`, { method: 'POST', body: 'effect', signal: given.signal })
    while (proxy.asked().length === 0) await new Promise(setImmediate)
    given.abort()
    await expect(asked).rejects.toThrow()
    await proxy.heal()
    while (effects.length === 0) await new Promise(setImmediate)
    expect(effects).toEqual(['effect'])
  })
})

const quietFor = (milliseconds: number): Promise<'quiet'> =>
  new Promise(resolve => setTimeout(() => resolve('quiet'), milliseconds))

test('a fault strikes matching requests a given number of times and counts them; a test can wait for a request that passes', async t => {
  const proxy = await startProxy(t, target)
  await proxy.inject({ kind: 'reset' }, line => line.startsWith('POST /struck'), 2)
  const passed = proxy.passes(line => line.includes('/struck'))
  expect((await ask(proxy, 'effect', '/other')).ended).toBe('whole')
  for (const ended of ['ECONNRESET', 'ECONNRESET', 'whole']) {
    expect((await ask(proxy, 'effect', '/struck')).ended).toBe(ended)
  }
  await passed
  expect(proxy.hits()).toBe(2)
  await proxy.heal()
  expect(proxy.hits()).toBe(2)
})
