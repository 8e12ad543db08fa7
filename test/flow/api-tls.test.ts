import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { useStore } from '../support/api.ts'
import { inTime } from '../support/in-time.ts'
import { type Api, startApi, startProcess } from '../support/processes.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { elasticsearchOf } from '../support/stored.ts'

const scope = fileScope()
const fileOf = (name: string): string => join(import.meta.dirname, '..', 'support', 'tls', name)
const ca = readFileSync(fileOf('cert.pem'))
const settings = { API_TLS_CERT_FILE: fileOf('cert.pem'), API_TLS_KEY_FILE: fileOf('key.pem') }

const shared = (async () => {
  const store = await useStore(scope)
  store.payout('org_tls', 1, { id: 'payout_1' })
  const description = 'x'.repeat(500)
  const lines = Array.from({ length: 2_000 }, (_, n) => ({ id: `line_${n}`, amount: '0', description }))
  store.payout('org_tls', 2, { id: 'payout_2', period: 'period_2', lines })
  await store.publish('org_tls', 3)
  const api = await startApi(scope, store.prefix, { settings })
  return { store, api, port: Number(new URL(api.url).port) }
})()

type Answer = { readonly status: number; readonly headers: Headers; readonly text: string }
const get = (port: number, path: string, key?: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    request({ host: '127.0.0.1', port, path, ca, headers }, answer => {
      let text = ''
      answer.setEncoding('utf8').on('data', data => (text += data))
      const given = new Headers({ 'x-request-id': String(answer.headers['x-request-id']) })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: given, text }))
    })
      .on('error', reject)
      .end()
  })
const getInTime = (api: Api, path: string, key: string): Promise<Answer> =>
  inTime(
    () => get(Number(new URL(api.url).port), path, key),
    () => api.lines(),
  )

/** Sends bytes over an encrypted connection and returns the answer. */
const send = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca }, () => socket.write(bytes))
    let text = ''
    socket.setEncoding('latin1').on('data', data => (text += data))
    socket.on('close', () => resolve(text)).on('error', reject)
  })

test('serves the same answers over TLS, and refuses wrong bytes in the same form', async () => {
  const { store, api, port } = await shared
  const key = await store.key('org_tls')
  expect(await getInTime(api, '/api/v1/payouts', key)).toMatchObject({
    status: 200,
    text: expect.stringContaining('payout_1'),
  })
  expect((await get(port, '/api/v1/payouts')).status).toBe(401)
  const refused = await send(port, 'NONSENSE\r\n\r\n')
  expect(refused).toMatch(/^HTTP\/1\.1 400 /)
  expect(refused).toContain('{"error":{"code":"invalid_request"')
})

test('sends a long answer whole, without a warning of Node', async () => {
  const { store } = await shared
  const key = await store.key('org_tls')
  const api = await startApi(scope, store.prefix, { settings })
  const { status, text } = await getInTime(api, '/api/v1/payouts/payout_2', key)
  expect([status, JSON.parse(text).data.line_items.length]).toEqual([200, 2_000])
  await api.stop()
  expect(api.log()).not.toContain('Warning')
})

test('does not answer unencrypted bytes, and keeps running', async () => {
  const { store, api, port } = await shared
  const key = await store.key('org_tls')
  await expect(fetch(`http://127.0.0.1:${port}/api/v1/payouts`)).rejects.toThrow()
  expect((await getInTime(api, '/api/v1/payouts', key)).status).toBe(200)
  expect(api.exit()).toBeUndefined()
})

test('gives new connections a new certificate without a restart', async t => {
  const { store } = await shared
  const folder = mkdtempSync(join(tmpdir(), 'commission-tls-'))
  t.onTestFinished(() => rmSync(folder, { recursive: true }))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  cpSync(fileOf('cert.pem'), cert)
  cpSync(fileOf('key.pem'), key)
  const files = { API_TLS_CERT_FILE: cert, API_TLS_KEY_FILE: key }
  const api = await startApi(scope, store.prefix, { settings: files })
  const port = Number(new URL(api.url).port)
  expect((await get(port, '/api/v1/payouts')).status).toBe(401)
  cpSync(fileOf('renewed-cert.pem'), cert)
  await eventually(() => expect(api.log()).toContain('cannot be used'))
  expect((await get(port, '/api/v1/payouts')).status).toBe(401)
  cpSync(fileOf('renewed-key.pem'), key)
  await eventually(() => expect(api.log()).toContain('new connections get the new certificate'))
  const renewed = readFileSync(fileOf('renewed-cert.pem'))
  // Uses a new connection: open ones keep their certificate.
  const served = await new Promise<boolean>(resolve => {
    const socket = connect({ host: '127.0.0.1', port, ca: renewed }, () => resolve(socket.authorized))
    socket.on('error', () => resolve(false))
    t.onTestFinished(() => void socket.destroy())
  })
  expect(served).toBe(true)
  expect(api.exit()).toBeUndefined()
})

test.each([
  ['that does not exist', { ...settings, API_TLS_CERT_FILE: '/nowhere.pem' }, 'API_TLS_CERT_FILE'],
  ['that is not a certificate', { ...settings, API_TLS_CERT_FILE: fileOf('../scope.ts') }, 'API_TLS_CERT_FILE'],
  ['without its key', { ...settings, API_TLS_KEY_FILE: '' }, 'API_TLS_KEY_FILE'],
])('does not start with a certificate %s, and says so', async (_, wrong, name) => {
  const { store } = await shared
  const child = startProcess(scope, 'api/main.ts', {
    ELASTICSEARCH_URL: elasticsearchOf(store.prefix),
    API_PORT: '0',
    API_ADMIN_PORT: '0',
    ...wrong,
  })
  await eventually(() => expect(child.exit()).toEqual({ code: 1, signal: null }))
  expect(child.log()).toContain(`  ${name}: expected`)
})
