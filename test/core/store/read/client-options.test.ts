import { Client } from '@elastic/elasticsearch'
import { afterEach, describe, expect, test } from 'vitest'
import { createCredentials } from '../../../../core/store/elasticsearch-credentials.ts'
import { clientOptions } from '../../../../core/store/read/transport.ts'

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
