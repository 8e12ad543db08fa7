import { Readable } from 'node:stream'
import { Client } from '@elastic/elasticsearch'
import { BaseConnection, type ConnectionRequestResponseAsStream } from '@elastic/transport'
import { afterEach, describe, expect, test } from 'vitest'
import { clientOptions, createTransport } from '../../../api/elasticsearch/client-options.ts'
import { createCredentials } from '../../../schemas/stored/credentials.ts'

const clients: Client[] = []
const built = (...settings: Parameters<typeof clientOptions>) => {
  const client = new Client(clientOptions(...settings))
  clients.push(client)
  return client.connectionPool.connections
}
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

describe('the Elasticsearch client', () => {
  test('knows every node', () => {
    const connections = built(['http://one:9200', 'https://two:9201/under/'], undefined, undefined)
    expect(connections.map(({ url }) => url.href)).toEqual(['http://one:9200/', 'https://two:9201/under/'])
  })

  test('sends the API key, or name and password, if they are set', () => {
    expect(built(['https://one:9200'], { apiKey: 'a2V5' }, undefined)[0]?.headers.authorization).toBe('ApiKey a2V5')
    const me = { username: 'me', password: 'ö:1' }
    expect(built(['https://one:9200'], me, undefined)[0]?.headers.authorization).toBe('Basic bWU6w7Y6MQ==')
    expect(createCredentials(() => me).header()).toEqual({ authorization: 'Basic bWU6w7Y6MQ==' })
    expect(built(['https://one:9200'], undefined, undefined)[0]?.headers.authorization).toBeUndefined()
  })

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
      createCredentials(() => ({ apiKey: key })),
    )
    const ask = async () => {
      const { signal } = new AbortController()
      const options = { asStream: true, meta: true, maxRetries: 0, headers: {}, signal } as const
      return (await transport({ method: 'GET', path: '/' }, options)).statusCode
    }
    expect(await ask()).toBe(401)
    key = 'second'
    expect(await ask()).toBe(401)
    key = 'third'
    expect(await ask()).toBe(200)
    expect(asked).toEqual(['first', 'first', 'second', 'second', 'third'].map(text => `ApiKey ${text}`))
  })

  test('trusts the certificate authority from the file', () => {
    expect(built(['https://one:9200'], undefined, 'PEM')[0]?.tls).toMatchObject({ ca: 'PEM' })
    expect(built(['https://one:9200'], undefined, undefined)[0]?.tls?.ca).toBeUndefined()
  })

  test('never retries on its own, and never waits longer than a request may take', () => {
    expect(clientOptions(['http://one:9200'], undefined, undefined)).toMatchObject({
      maxRetries: 0,
      requestTimeout: 3_000,
      sniffOnStart: false,
      sniffInterval: false,
      sniffOnConnectionFault: false,
    })
  })
})

describe('a node that cannot answer', () => {
  /** Nodes that answer with the given statuses, and the names of those that were asked. */
  const nodes = (statuses: Record<string, number>) => {
    const asked: string[] = []
    class Connection extends BaseConnection {
      // @ts-expect-error the client asks for streams only
      override request = async (): Promise<ConnectionRequestResponseAsStream> => {
        asked.push(this.url.hostname)
        const body = Readable.from([Buffer.from('{}')])
        return { statusCode: statuses[this.url.hostname] ?? 0, headers: { 'x-elastic-product': 'Elasticsearch' }, body }
      }
      override close = async (): Promise<void> => undefined
    }
    const urls = Object.keys(statuses).map(name => `http://${name}:9200`)
    const client = new Client({ ...clientOptions(urls, undefined, undefined), Connection: Connection as never })
    clients.push(client)
    const transport = createTransport(client)
    const read = async () => {
      const { signal } = new AbortController()
      const options = { asStream: true, meta: true, maxRetries: urls.length - 1, headers: {}, signal } as const
      return (await transport({ method: 'GET', path: '/' }, options)).statusCode
    }
    return { asked, read }
  }

  test.each([502, 503, 504])('with status %i is not asked again soon: another one answers each read', async status => {
    const { asked, read } = nodes({ one: 200, two: status, three: 200 })
    const all = Array.from({ length: 30 }, read)
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]))
    asked.length = 0
    for (let time = 0; time < 30; time++) expect(await read()).toBe(200)
    expect(new Set(asked)).toEqual(new Set(['one', 'three']))
  })

  test('is asked as before if no other one can: the cause is not the node', async () => {
    const statuses = { one: 503, two: 503, three: 503 }
    const { asked, read } = nodes(statuses)
    for (let time = 0; time < 4; time++) {
      expect(await read()).toBe(503)
      expect(asked.splice(0).toSorted()).toEqual(['one', 'three', 'two'])
    }
    Object.assign(statuses, { one: 200, two: 200, three: 200 })
    expect([await read(), await read(), await read()]).toEqual([200, 200, 200])
    expect(asked.toSorted()).toEqual(['one', 'three', 'two'])
  })

  test('is the only one: it is asked once for each read', async () => {
    const { asked, read } = nodes({ one: 503 })
    expect([await read(), await read(), asked]).toEqual([503, 503, ['one', 'one']])
  })

  test.each([400, 404, 429, 500])('is not one that answers with status %i', async status => {
    const { asked, read } = nodes({ one: status, two: status })
    expect([await read(), await read(), asked.length]).toEqual([status, status, 2])
  })
})
