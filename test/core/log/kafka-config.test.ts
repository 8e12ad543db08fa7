import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { kafkaConfig } from '../../../core/log/kafka-config.ts'
import { projectorSettings, readSettings, SettingsError } from '../../../core/runtime/settings.ts'
import { elasticsearchConfig } from '../../../core/store/elasticsearch-config.ts'
import { ELASTICSEARCH_TIMEOUT_MS } from '../../../core/store/limits.ts'

const settingsOf = (environment: Record<string, string>) =>
  readSettings(projectorSettings, { KAFKA_BROKERS: 'a:1,b:2', ELASTICSEARCH_URL: 'https://es:9200', ...environment })

const tls = (name: string): string => readFileSync(join(import.meta.dirname, '../../support/tls', name), 'utf8')
const files: Record<string, string> = {
  '/ca.pem': 'certificate',
  '/cert.pem': tls('cert.pem'),
  '/key.pem': tls('key.pem'),
  '/other-key.pem': tls('renewed-key.pem'),
  '/token': 'first.token\n',
  '/empty': ' \n',
}
const readFile = (path: string): Buffer => {
  const content = files[path]
  if (content === undefined) throw new Error(`no file ${path}`)
  return Buffer.from(content)
}

describe('the Kafka client', () => {
  const configOf = (environment: Record<string, string>) =>
    kafkaConfig(settingsOf(environment), 'a-client', readFile, Date.now)

  test('gets its brokers and its client id, logs nothing, and by default uses neither TLS nor SASL', () => {
    const config = configOf({})
    expect(config).toMatchObject({ clientId: 'a-client', brokers: ['a:1', 'b:2'], logLevel: kafkajs.logLevel.NOTHING })
    expect(Object.keys(config)).not.toContain('ssl')
    expect(Object.keys(config)).not.toContain('sasl')
  })

  test('trusts the certificate authorities of the machine with TLS, or only those of a file', () => {
    expect(configOf({ KAFKA_SSL: 'true' }).ssl).toBe(true)
    expect(configOf({ KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: '/ca.pem' }).ssl).toEqual({
      ca: [Buffer.from('certificate')],
    })
  })

  test('shows its own certificate with the key', () => {
    const mutual = { KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: '/cert.pem', KAFKA_SSL_KEY_FILE: '/key.pem' }
    const own = { cert: Buffer.from(tls('cert.pem')), key: Buffer.from(tls('key.pem')) }
    expect(configOf(mutual).ssl).toEqual(own)
    expect(configOf({ ...mutual, KAFKA_SSL_CA_FILE: '/ca.pem' }).ssl).toEqual({
      ca: [Buffer.from('certificate')],
      ...own,
    })
    expect(() => configOf({ ...mutual, KAFKA_SSL_KEY_FILE: '/other-key.pem' })).toThrow(
      'KAFKA_SSL_KEY_FILE: expected the key of the certificate in KAFKA_SSL_CERT_FILE, both as PEM; got "/other-key.pem"',
    )
  })

  test('reads its certificate and key again for each connection, and keeps a pair until the next one fits', t => {
    const renewed = { '/cert.pem': tls('renewed-cert.pem'), '/key.pem': tls('renewed-key.pem') }
    const previous = { '/cert.pem': tls('cert.pem'), '/key.pem': tls('key.pem') }
    t.onTestFinished(() => void Object.assign(files, previous))
    const { ssl } = configOf({ KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: '/cert.pem', KAFKA_SSL_KEY_FILE: '/key.pem' })
    // The client copies the options for each connection.
    const next = () => Object.values(Object.assign({}, ssl as object)).map(String)
    files['/cert.pem'] = renewed['/cert.pem']
    expect(next()).toEqual(Object.values(previous))
    files['/key.pem'] = renewed['/key.pem']
    expect(next()).toEqual(Object.values(renewed))
    delete files['/key.pem']
    expect(next()).toEqual(Object.values(renewed))
  })

  test('reads a password in a file again for each authentication', t => {
    t.onTestFinished(() => void delete files['/password'])
    files['/password'] = 'first\n'
    const environment = { KAFKA_SASL_MECHANISM: 'scram-sha-512', KAFKA_SASL_USERNAME: 'me' }
    const settings = readSettings(
      projectorSettings,
      { KAFKA_BROKERS: 'a:1', ELASTICSEARCH_URL: 'http://es', ...environment, KAFKA_SASL_PASSWORD_FILE: '/password' },
      readFile,
    )
    const { sasl } = kafkaConfig(settings, 'a-client', readFile, Date.now)
    expect(sasl).toMatchObject({ password: 'first' })
    files['/password'] = 'second\n'
    expect(sasl).toMatchObject({ password: 'second' })
  })

  describe('with a token', () => {
    const bearing = (path: string) =>
      configOf({ KAFKA_SASL_MECHANISM: 'oauthbearer', KAFKA_SASL_TOKEN_FILE: path }).sasl as {
        readonly mechanism: string
        readonly oauthBearerProvider: () => Promise<{ readonly value: string }>
      }

    test('reads the file again for each authentication', async t => {
      const { mechanism, oauthBearerProvider } = bearing('/token')
      expect([mechanism, await oauthBearerProvider()]).toEqual(['oauthbearer', { value: 'first.token' }])
      t.onTestFinished(() => {
        files['/token'] = 'first.token\n'
      })
      files['/token'] = 'second.token'
      expect(await oauthBearerProvider()).toEqual({ value: 'second.token' })
      // The next attempt reads it again: another program may be writing it.
      files['/token'] = ''
      await expect(oauthBearerProvider()).rejects.toMatchObject({
        message: 'KAFKA_SASL_TOKEN_FILE has no token',
        retriable: true,
      })
    })

    test.each(['/empty', '/missing'])('does not start with the file %s', path => {
      expect(() => bearing(path)).toThrow(
        `KAFKA_SASL_TOKEN_FILE: expected a file that can be read and has a token; got "${path}"`,
      )
    })
  })

  test.each(['plain', 'scram-sha-256', 'scram-sha-512'])('authenticates with %s', mechanism => {
    const environment = { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD: 'secret' }
    expect(configOf(environment).sasl).toEqual({ mechanism, username: 'me', password: 'secret' })
  })

  test('accepts all these options', () => {
    const all = {
      KAFKA_SSL: 'true',
      KAFKA_SASL_MECHANISM: 'plain',
      KAFKA_SASL_USERNAME: 'me',
      KAFKA_SASL_PASSWORD: 'x',
    }
    expect(() => new kafkajs.Kafka(configOf(all)).admin()).not.toThrow()
  })
})

test.each([
  [
    'KAFKA_SSL_CA_FILE',
    (path: string) => kafkaConfig(settingsOf({ KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: path }), 'x', readFile, Date.now),
  ],
  [
    'ELASTICSEARCH_CA_FILE',
    (path: string) => elasticsearchConfig(settingsOf({ ELASTICSEARCH_CA_FILE: path }), readFile),
  ],
  [
    'KAFKA_SSL_CERT_FILE',
    (path: string) =>
      kafkaConfig(
        settingsOf({ KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: path, KAFKA_SSL_KEY_FILE: '/key.pem' }),
        'x',
        readFile,
        Date.now,
      ),
  ],
] as const)('a file that cannot be read is reported like any wrong setting: %s', (name, config) => {
  expect(() => config('/missing.pem')).toThrow(SettingsError)
  expect(() => config('/missing.pem')).toThrow(`${name}: expected a file that can be read; got "/missing.pem"`)
})

describe('the Elasticsearch client', () => {
  const configOf = (environment: Record<string, string>) => elasticsearchConfig(settingsOf(environment), readFile)

  test('never retries on its own, and waits up to our limit', () => {
    expect(configOf({})).toEqual({
      nodes: ['https://es:9200'],
      maxRetries: 0,
      requestTimeout: ELASTICSEARCH_TIMEOUT_MS,
      compression: false,
      sniffOnStart: false,
    })
  })

  test('gets every node', () => {
    expect(configOf({ ELASTICSEARCH_URL: 'http://a:9200, http://b:9200' }).nodes).toEqual([
      'http://a:9200',
      'http://b:9200',
    ])
  })

  test('authenticates with the API key, or with name and password, and trusts the certificate authorities of a file', () => {
    expect(configOf({ ELASTICSEARCH_API_KEY: 'secret' }).auth).toEqual({ apiKey: 'secret' })
    const named = { ELASTICSEARCH_USERNAME: 'me', ELASTICSEARCH_PASSWORD: 'secret' }
    expect(configOf(named).auth).toEqual({ username: 'me', password: 'secret' })
    expect(configOf({ ELASTICSEARCH_CA_FILE: '/ca.pem' }).tls).toEqual({ ca: Buffer.from('certificate') })
  })
})
