/** The proxy of docs/examples/nginx.conf in front of the API. */
import { mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { buildPage } from '../../explorer/build-page.ts'
import { freePort } from '../../services/ports.ts'
import { serveApi, useStore } from '../support/api.ts'
import { startNginx } from '../support/nginx.ts'
import { nginxProgram } from '../support/programs.ts'
import { eventually, fileScope } from '../support/scope.ts'

const scope = fileScope()
const PAYOUTS = 50

const setUp = async () => {
  const store = await useStore(scope)
  const org = 'org_proxy'
  for (let seq = 0; seq < PAYOUTS; seq++) store.payout(org, seq, { id: `payout_${seq}` })
  await store.publish(org, PAYOUTS)
  const key = await store.key(org)
  const { port: apiPort } = await serveApi(scope, store.prefix)
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'commission-nginx-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const example = await readFile(join(import.meta.dirname, '../../docs/examples/nginx.conf'), 'utf8')
  const configuration = example
    .replace('127.0.0.1:3000', `127.0.0.1:${apiPort}`)
    .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replace('/usr/share/commission-explorer/', `${folder}/explorer/`)
  await buildPage(process.execPath, join(folder, 'explorer'), new AbortController().signal)
  const own = `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;`
  await startNginx(scope, folder, configuration, own)

  /** Sends a request without the decompression of `fetch`. */
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, to = port) =>
    new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
      const options = { port: to, path: `/api/v1${path}`, headers: { authorization: `Bearer ${key}`, ...headers } }
      const sent = request({ host: '127.0.0.1', ...options }, async answer => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) })
      })
      sent.on('error', reject).end()
    })
  await eventually(() => ask('/reps'))
  return { store, org, ask, apiPort, folder, origin: `http://127.0.0.1:${port}` }
}
let started: ReturnType<typeof setUp> | undefined
const shared = () => (started ??= setUp())
/** Sends a path as it is: `fetch` would shorten it. */
const statusOf = (origin: string, path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const { hostname, port } = new URL(origin)
    const sent = request({ host: hostname, port, path }, answer => {
      answer.resume()
      resolve(answer.statusCode)
    })
    sent.on('error', reject).end()
  })
const compressed = { 'accept-encoding': 'gzip' }

describe.skipIf(nginxProgram === undefined)('nginx in front of the API', () => {
  test('compresses a page without changing a byte of it', async () => {
    const { ask, apiPort } = await shared()
    const plain = await ask('/payouts', {}, apiPort)
    const answer = await ask('/payouts', compressed)
    expect(answer.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(answer.body).equals(plain.body)).toBe(true)
    expect(answer.body.length).toBeLessThan(plain.body.length / 4)
    expect(answer.headers.vary).toBe('Accept-Encoding, Authorization')
    expect(answer.headers['projection-time']).toBe(plain.headers['projection-time'])
    expect((await ask('/payouts')).body.equals(plain.body)).toBe(true)
  })

  test('passes entity tags on: the weak tag of a compressed page gives a 304', async () => {
    const { ask, apiPort } = await shared()
    const { etag } = (await ask('/payouts', {}, apiPort)).headers
    const weak = (await ask('/payouts', compressed)).headers.etag
    expect(weak).toBe(`W/${etag}`)
    const again = await ask('/payouts', { ...compressed, 'if-none-match': String(weak) })
    expect([again.status, again.body.length]).toEqual([304, 0])
  })

  test('serves the explorer with its policy, and no other file', async () => {
    const { origin } = await shared()
    const page = await fetch(`${origin}/explorer`)
    expect([page.status, page.url]).toEqual([200, `${origin}/explorer/`])
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('content-security-policy')).toBe("frame-ancestors 'none'")
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const html = await page.text()
    expect(html).toContain('http-equiv="Content-Security-Policy"')
    for (const [path, type] of [
      [/src="(\.\/[^"]+\.js)"/.exec(html)?.[1], 'text/javascript'],
      [/href="(\.\/[^"]+\.css)"/.exec(html)?.[1], 'text/css'],
    ] as const) {
      const file = await fetch(new URL(path ?? '', page.url))
      expect([file.status, file.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`])
      expect(file.headers.get('content-encoding')).toBe('gzip')
    }
    for (const path of ['/explorer/nothing', '/explorer../nginx.conf', '/explorer/%2e%2e/nginx.conf', '/']) {
      expect([path, await statusOf(origin, path)]).toEqual([path, 404])
    }
  })

  test('gives the explorer of another version, also if its page has the time and the size of the one before', async () => {
    const { origin, folder } = await shared()
    const file = join(folder, 'explorer/index.html')
    const { mtime } = await stat(file)
    const before = await fetch(`${origin}/explorer/`)
    const html = await before.text()
    const next = html.replace('Commission explorer', 'Another explorer!!!')
    await writeFile(file, next)
    await utimes(file, mtime, mtime)
    expect((await stat(file)).size).toBe(html.length)
    const known = (answer: Response) => ({
      'if-modified-since': answer.headers.get('last-modified') ?? '',
      'if-none-match': answer.headers.get('etag') ?? '""',
    })
    const after = await fetch(`${origin}/explorer/`, { headers: known(before) })
    expect([after.status, await after.text()]).toEqual([200, next])
    // Its other files have another name in each version: they are not sent again.
    const script = new URL(/src="(\.\/[^"]+\.js)"/.exec(html)?.[1] ?? '', `${origin}/explorer/`)
    const sent = await fetch(script)
    expect([sent.status, (await fetch(script, { headers: known(sent) })).status]).toEqual([200, 304])
  })

  test('lets a request wait for a change', async () => {
    const { ask, store, org } = await shared()
    const waiting = ask(`/changes?wait=60&starting_after=payout_${PAYOUTS - 1}`)
    store.payout(org, PAYOUTS, { id: 'payout_next' })
    await store.flush()
    await store.publish(org, PAYOUTS + 1)
    expect(JSON.parse((await waiting).body.toString()).data.map(({ id }: { id: string }) => id)).toEqual([
      'payout_next',
    ])
  })
})
