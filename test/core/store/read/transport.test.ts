import { Readable } from 'node:stream'
import { Client } from '@elastic/elasticsearch'
import {
  BaseConnection,
  type ConnectionRequestOptions,
  type ConnectionRequestParams,
  type ConnectionRequestResponseAsStream,
  errors,
} from '@elastic/transport'
import { expect, onTestFinished, test } from 'vitest'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import { createCredentials } from '../../../../core/store/elasticsearch-credentials.ts'
import { clientOptions, createTransport } from '../../../../core/store/read/transport.ts'

test('repeats a request once if its key is refused and the file has another one by now', async () => {
  let key = 'first'
  const asked: unknown[] = []
  const request = async (_: unknown, { headers }: { headers: Record<string, string> }) => {
    asked.push(headers.authorization)
    return { statusCode: headers.authorization === 'ApiKey third' ? 200 : 401, body: Readable.from([]), meta: {} }
  }
  const client = { transport: { request }, connectionPool: {} } as unknown as Client
  const transport = createTransport(
    client,
    0,
    createCredentials(() => ({ apiKey: key })),
  )
  const ask = async () => {
    const { signal } = new AbortController()
    return (await transport({ method: 'GET', path: '/' }, signal)).statusCode
  }
  expect(await ask()).toBe(401)
  key = 'second'
  expect(await ask()).toBe(401)
  key = 'third'
  expect(await ask()).toBe(200)
  expect(asked).toEqual(['first', 'first', 'second', 'second', 'third'].map(text => `ApiKey ${text}`))
})

/** Nodes that answer with the given statuses, not at all, or that refuse the connection; the names of those asked. */
const createNodes = (statuses: Record<string, number | 'silent' | 'refusing'>, token = () => 'key') => {
  const asked: string[] = []
  const answerOf = (name: string, path: string, signal: AbortSignal): Promise<ConnectionRequestResponseAsStream> => {
    asked.push(name)
    const status = path === '/slow' ? 'silent' : (statuses[name] ?? 0)
    if (status === 'refusing') return Promise.reject(new errors.ConnectionError('ECONNREFUSED'))
    if (status !== 'silent') {
      const body = Readable.from([Buffer.from('{}')])
      return Promise.resolve({ statusCode: status, headers: { 'x-elastic-product': 'Elasticsearch' }, body })
    }
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(new errors.RequestAbortedError('aborted')))
    return promise
  }
  class Connection extends BaseConnection {
    // @ts-expect-error the API asks for streams only
    override request = ({ path }: ConnectionRequestParams, { signal }: ConnectionRequestOptions) =>
      answerOf(this.url.hostname, path, signal as AbortSignal)
    override close = async (): Promise<void> => undefined
  }
  const urls = Object.keys(statuses).map(name => `http://${name}:9200`)
  const client = new Client({ ...clientOptions(urls, undefined, undefined), Connection: Connection as never })
  onTestFinished(() => client.close())
  let clock = 0
  const credentials = createCredentials(() => ({ apiKey: token() }))
  const transport = createTransport(client, urls.length - 1, credentials, () => ++clock)
  const read = async (path = '/', { signal } = new AbortController()) =>
    (await transport({ method: 'GET', path }, signal)).statusCode
  /** Reads as often as there are nodes. Returns the names of those that were asked. */
  const askedNow = async () => {
    asked.length = 0
    for (const _ of urls) await read()
    return asked.toSorted()
  }
  return { asked, askedNow, read }
}

test.each([502, 503, 504])('a node that answers %i is left out, and another one answers each read', async status => {
  const { askedNow, read } = createNodes({ one: 200, two: status, three: 200 })
  expect(new Set(await Promise.all(Array.from({ length: 30 }, () => read())))).toEqual(new Set([200]))
  expect(new Set(await askedNow())).toEqual(new Set(['one', 'three']))
})

test('no node is left out if none can answer: the cause is not the node', async () => {
  const statuses = { one: 503, two: 503, three: 503 }
  const { asked, askedNow, read } = createNodes(statuses)
  for (let time = 0; time < 4; time++) {
    expect(await read()).toBe(503)
    expect(asked.splice(0).toSorted()).toEqual(['one', 'three', 'two'])
  }
  Object.assign(statuses, { one: 200, two: 200, three: 200 })
  expect(await askedNow()).toEqual(['one', 'three', 'two'])
})

test('a single node is asked once for each read', async () => {
  const { asked, read } = createNodes({ one: 503 })
  expect([await read(), await read(), asked]).toEqual([503, 503, ['one', 'one']])
})

test.each([
  ['refusing', 503, 503],
  ['refusing', 'refusing', 503],
  ['refusing', 503, 'refusing'],
  ['refusing', 'refusing', 'refusing'],
] as const)('a read asks each node once at most: %s, %s, %s', async (one, two, three) => {
  const { asked, read } = createNodes({ one, two, three })
  for (let time = 0; time < 6; time++) {
    await read().catch(() => undefined)
    expect(asked.splice(0).toSorted()).toEqual(['one', 'three', 'two'])
  }
})

test('reads at the same time ask each node once at most, too', async () => {
  const { asked, read } = createNodes({ one: 503, two: 'refusing', three: 503 })
  await Promise.allSettled(Array.from({ length: 30 }, () => read()))
  expect(asked).toHaveLength(90)
  for (const name of ['one', 'two', 'three']) expect(asked.filter(one => one === name)).toHaveLength(30)
})

test('a read whose credentials are renewed is sent once more', async () => {
  let key = 0
  const { asked, read } = createNodes({ one: 401, two: 503 }, () => `key ${key++}`)
  for (let time = 0; time < 4; time++) {
    expect(await read()).toBe(401)
    expect(asked.splice(0).filter(name => name === 'one')).toHaveLength(2)
  }
})

test.each([400, 404, 429, 500])('a node that answers %i is not left out, and no other one is asked', async status => {
  const { askedNow } = createNodes({ one: status, two: status })
  expect(await askedNow()).toEqual(['one', 'two'])
})

test('a silent node is left out after the first read whose time is up', async () => {
  const { asked, askedNow, read } = createNodes({ one: 200, two: 'silent' })
  const time = new AbortController()
  const reads = [read('/', time), read('/', time)]
  await expect.poll(() => asked).toHaveLength(2)
  time.abort(abortReason('time_is_up'))
  const results = await Promise.allSettled(reads)
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(await askedNow()).toEqual(['one', 'one'])
})

test('no node is left out because a client has gone, or because one read of several is slow', async () => {
  const { asked, askedNow, read } = createNodes({ one: 200, two: 200 })
  for (const word of ['client_gone', 'time_is_up'] as const) {
    const ended = new AbortController()
    asked.length = 0
    const slow = [read('/slow', ended), read('/slow', ended)]
    await expect.poll(() => asked).toHaveLength(2)
    if (word === 'time_is_up') await askedNow()
    ended.abort(abortReason(word))
    for (const one of slow) await expect(one).rejects.toThrow()
    expect(await askedNow()).toEqual(['one', 'two'])
  }
})
