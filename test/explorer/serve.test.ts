/** The server of the demo's explorer: files of the page only, and the API behind the same origin. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { serveExplorer } from '../../explorer/serve.ts'

const html = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'" />'

const serve = async (t: TestContext, onRequest: RequestListener): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'explorer-'))
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await writeFile(join(folder, 'index.html'), html)
  const api = createServer(onRequest).listen(0, '127.0.0.1')
  await once(api, 'listening')
  const address = `http://127.0.0.1:${(api.address() as AddressInfo).port}/api/v1`
  const { origin, close } = await serveExplorer({ folder, api: address })
  t.onTestFinished(() => {
    close()
    api.close()
    api.closeAllConnections()
  })
  return origin
}

test('the page comes with its policy as a header, and no other file of the machine comes', async t => {
  const origin = await serve(t, (_, answer) => answer.end())
  const page = await fetch(`${origin}/`)
  expect(await page.text()).toBe(html)
  expect(page.headers.get('content-encoding')).toBe('gzip')
  expect(page.headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  for (const path of ['/package.json', '/%2e%2e/package.json', '/index.html/', '/api']) {
    expect((await fetch(`${origin}${path}`)).status, path).toBe(404)
  }
})

test('a request for the API arrives as it is, and its answer comes back as it is', async t => {
  const seen: unknown[] = []
  const origin = await serve(t, ({ url, headers: { authorization } }, answer) => {
    seen.push([url, authorization])
    answer.writeHead(429, { 'Retry-After': '7', 'Projection-Time': '2026-01-01T00:00:00Z' }).end('{}')
  })
  const answer = await fetch(`${origin}/api/v1/payouts?limit=2`, { headers: { Authorization: 'Bearer ck_1' } })
  expect(seen).toEqual([['/api/v1/payouts?limit=2', 'Bearer ck_1']])
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
  expect(answer.headers.get('projection-time')).toBe('2026-01-01T00:00:00Z')
  expect(await answer.text()).toBe('{}')
})

test('an answer is compressed on its way, and its entity tag is weak', async t => {
  const body = JSON.stringify({ data: Array(100).fill('1234.5000') })
  const origin = await serve(t, (_, answer) =>
    answer.writeHead(200, { ETag: '"1"', 'Content-Length': body.length }).end(body),
  )
  const answer = await fetch(`${origin}/api/v1/payouts`)
  expect([answer.headers.get('content-encoding'), answer.headers.get('etag')]).toEqual(['gzip', 'W/"1"'])
  expect(await answer.text()).toBe(body)
  const plain = await fetch(`${origin}/api/v1/payouts`, { headers: { 'Accept-Encoding': 'identity' } })
  expect([plain.headers.get('content-encoding'), plain.headers.get('etag')]).toEqual([null, '"1"'])
})

test('an answer that ends too early ends with an error', async t => {
  const origin = await serve(t, (_, answer) => {
    answer.writeHead(200, { 'Content-Length': 100 }).write('{"data":')
    setImmediate(() => answer.destroy())
  })
  await expect(fetch(`${origin}/api/v1/payouts`).then(answer => answer.text())).rejects.toThrow()
})

test('an API that ends the connection is a 502, and the server goes on', async t => {
  const origin = await serve(t, request => request.socket.destroy())
  expect((await fetch(`${origin}/api/v1/payouts`)).status).toBe(502)
  expect((await fetch(`${origin}/`)).status).toBe(200)
})

test('a page that is closed ends its requests to the API', async t => {
  const ended = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const origin = await serve(t, (_, answer) => {
    answer.on('close', () => ended.resolve())
    begun.resolve()
  })
  const leaving = new AbortController()
  const asked = fetch(`${origin}/api/v1/changes?wait=30`, { signal: leaving.signal }).catch(() => undefined)
  await begun.promise
  leaving.abort()
  await asked
  await ended.promise
})
