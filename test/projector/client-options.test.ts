import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { elasticsearchConfig, kafkaConfig } from '../../projector/client-options.ts'
import { AnswerReader } from '../../projector/elasticsearch/bulk-responses.ts'
import { ELASTICSEARCH_TIMEOUT_MS } from '../../projector/limits.ts'
import { projectorSettings, readSettings, SettingsError } from '../../schemas/settings.ts'

const settingsOf = (environment: Record<string, string>) =>
  readSettings(projectorSettings, { KAFKA_BROKERS: 'a:1,b:2', ELASTICSEARCH_URL: 'https://es:9200', ...environment })

const files: Record<string, string> = { '/ca.pem': 'certificate' }
const readFile = (path: string): Buffer => {
  const content = files[path]
  if (content === undefined) throw new Error(`no file ${path}`)
  return Buffer.from(content)
}

describe('the Kafka client', () => {
  const configOf = (environment: Record<string, string>) => kafkaConfig(settingsOf(environment), 'a-client', readFile)

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
    (path: string) => kafkaConfig(settingsOf({ KAFKA_SSL: 'true', KAFKA_SSL_CA_FILE: path }), 'x', readFile),
  ],
  [
    'ELASTICSEARCH_CA_FILE',
    (path: string) => elasticsearchConfig(settingsOf({ ELASTICSEARCH_CA_FILE: path }), readFile),
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
      Serializer: AnswerReader,
    })
  })

  test('gets every node', () => {
    expect(configOf({ ELASTICSEARCH_URL: 'http://a:9200, http://b:9200' }).nodes).toEqual([
      'http://a:9200',
      'http://b:9200',
    ])
  })

  test('authenticates with the API key, and trusts the certificate authorities of a file', () => {
    expect(configOf({ ELASTICSEARCH_API_KEY: 'secret' }).auth).toEqual({ apiKey: 'secret' })
    expect(configOf({ ELASTICSEARCH_CA_FILE: '/ca.pem' }).tls).toEqual({ ca: Buffer.from('certificate') })
  })
})
