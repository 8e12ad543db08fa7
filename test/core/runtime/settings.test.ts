import { describe, expect, test } from 'vitest'
import {
  apiSettings,
  projectorSettings,
  readSettings,
  SettingsError,
  kafkaSettings as topicNames,
  topicSettings,
} from '../../../core/runtime/settings.ts'

const enough = { KAFKA_BROKERS: 'localhost:9092', ELASTICSEARCH_URL: 'http://localhost:9200' }

const files: Record<string, string> = {
  '/secret': 'hunter2\n',
  '/redis': 'redis://me:hunter2@redis:6379\r\n',
  '/empty': '\n',
  '/lines': 'hunter2\nhunter2',
}
const readFile = (path: string): Buffer => {
  const content = files[path]
  if (content === undefined) throw new Error(`no file ${path}`)
  return Buffer.from(content)
}

const refusal = (environment: Record<string, string>, names: Parameters<typeof readSettings>[0]): SettingsError => {
  try {
    readSettings(names, environment, readFile)
  } catch (error) {
    if (error instanceof SettingsError) return error
    throw error
  }
  return expect.unreachable('the settings are taken')
}
const names = { ...projectorSettings, ...apiSettings, ...topicSettings }
const problemsOf = (environment: Record<string, string>): string[] =>
  refusal({ ...enough, ...environment }, names).problems.map(({ name }) => name)

describe('defaults', () => {
  test('of the projector are those of the contract', () => {
    expect(readSettings(projectorSettings, enough)).toEqual({
      KAFKA_BROKERS: ['localhost:9092'],
      KAFKA_EVENTS_TOPIC: 'commission.events',
      KAFKA_API_KEYS_TOPIC: 'commission.api-keys',
      KAFKA_GROUP_ID: 'commission-projector',
      KAFKA_MAX_MESSAGE_BYTES: 9_437_184,
      KAFKA_SSL: 'false',
      KAFKA_SSL_CA_FILE: undefined,
      KAFKA_SSL_CERT_FILE: undefined,
      KAFKA_SSL_KEY_FILE: undefined,
      KAFKA_SASL_MECHANISM: undefined,
      KAFKA_SASL_USERNAME: undefined,
      KAFKA_SASL_PASSWORD: undefined,
      KAFKA_SASL_TOKEN_FILE: undefined,
      ELASTICSEARCH_URL: ['http://localhost:9200'],
      ELASTICSEARCH_API_KEY: undefined,
      ELASTICSEARCH_USERNAME: undefined,
      ELASTICSEARCH_PASSWORD: undefined,
      ELASTICSEARCH_CA_FILE: undefined,
      ELASTICSEARCH_INDEX_PREFIX: 'commission',
      FRESHNESS_MS: 25,
      ELASTICSEARCH_SHARDS: 1,
      ELASTICSEARCH_ROUTING_PARTITION_SIZE: 1,
      ELASTICSEARCH_REPLICAS: undefined,
      LOG_LEVEL: 'info',
      PROJECTOR_ADMIN_HOST: '127.0.0.1',
      PROJECTOR_ADMIN_PORT: 9465,
      RECEIPTS_HOST: '127.0.0.1',
      RECEIPTS_PORT: undefined,
    })
  })

  test('of the API are those of the contract', () => {
    expect(readSettings(apiSettings, enough)).toEqual({
      ELASTICSEARCH_URL: ['http://localhost:9200'],
      ELASTICSEARCH_API_KEY: undefined,
      ELASTICSEARCH_USERNAME: undefined,
      ELASTICSEARCH_PASSWORD: undefined,
      ELASTICSEARCH_CA_FILE: undefined,
      ELASTICSEARCH_INDEX_PREFIX: 'commission',
      LOG_LEVEL: 'info',
      API_HOST: '127.0.0.1',
      API_PORT: 8080,
      API_TLS_CERT_FILE: undefined,
      API_TLS_KEY_FILE: undefined,
      API_CACHE: 'private',
      API_PUBLIC_URL: undefined,
      API_CORS_ORIGINS: [],
      API_TRUSTED_PROXIES: [],
      API_ADMIN_HOST: '127.0.0.1',
      API_ADMIN_PORT: 9464,
      API_DRAIN_SECONDS: 3,
      RATE_LIMIT_REQUESTS: 600,
      RATE_LIMIT_WINDOW_SECONDS: 60,
      REDIS_URL: undefined,
      SEAL_KEYS_DIR: undefined,
      AUDIT_LOG: undefined,
      AUDIT_STRICT: 'false',
      SEAL_KEYS_VAULT_URL: undefined,
      SEAL_KEYS_VAULT_TOKEN: undefined,
      SEAL_KEYS_VAULT_MOUNT: 'transit',
      SEAL_KEYS_VAULT_CA_FILE: undefined,
    })
  })

  test('also replace an empty value', () => {
    expect(readSettings(projectorSettings, { ...enough, KAFKA_GROUP_ID: '' }).KAFKA_GROUP_ID).toBe(
      'commission-projector',
    )
  })
})

test('each index prefix has its own default group, and a given group wins', () => {
  const groupOf = (given: Record<string, string>) =>
    readSettings(projectorSettings, { ...enough, ...given }).KAFKA_GROUP_ID
  expect(groupOf({ ELASTICSEARCH_INDEX_PREFIX: 'staging' })).toBe('staging-projector')
  expect(groupOf({ ELASTICSEARCH_INDEX_PREFIX: 'staging', KAFKA_GROUP_ID: 'ours' })).toBe('ours')
})

test('lists are separated by commas, with or without spaces', () => {
  const environment = { KAFKA_BROKERS: 'one:1, two:2', ELASTICSEARCH_URL: 'http://one:9200,https://two' }
  const { KAFKA_BROKERS, ELASTICSEARCH_URL } = readSettings(projectorSettings, environment)
  expect(KAFKA_BROKERS).toEqual(['one:1', 'two:2'])
  expect(ELASTICSEARCH_URL).toEqual(['http://one:9200', 'https://two'])
})

test('trusted proxies are addresses and networks, of IPv4 and IPv6', () => {
  const API_TRUSTED_PROXIES = '10.0.0.0/8, 192.0.2.1,2001:db8::/32,::1,::/0,0.0.0.0/0,::ffff:10.0.0.1'
  const read = readSettings(apiSettings, { ...enough, API_TRUSTED_PROXIES }).API_TRUSTED_PROXIES
  expect(read).toEqual(API_TRUSTED_PROXIES.split(',').map(one => one.trim()))
  expect(problemsOf({ API_TRUSTED_PROXIES: '10.0.0.0/8, proxy' })).toEqual(['API_TRUSTED_PROXIES'])
})

test('one message lists every problem: name, expected, got', () => {
  const { message, problems } = refusal(
    { KAFKA_BROKERS: 'localhost', PROJECTOR_ADMIN_PORT: '99999', LOG_LEVEL: 'loud' },
    projectorSettings,
  )
  expect(message).toBe(
    [
      '4 settings are wrong:',
      '  KAFKA_BROKERS: expected host:port, or several separated by commas; got "localhost"',
      '  ELASTICSEARCH_URL: expected an address that begins with http:// or https://, with %25 for % in a name or password, or several separated by commas; got nothing',
      '  LOG_LEVEL: expected one of trace, debug, info, warn, error, fatal, silent; got "loud"',
      '  PROJECTOR_ADMIN_PORT: expected a whole number from 0 to 65535; got "99999"',
    ].join('\n'),
  )
  expect(problems.map(({ name }) => name)).toEqual([
    'KAFKA_BROKERS',
    'ELASTICSEARCH_URL',
    'LOG_LEVEL',
    'PROJECTOR_ADMIN_PORT',
  ])
})

test.each([
  ['KAFKA_BROKERS', 'localhost', 'localhost:', ':9092', 'http://localhost:9092', 'a:1,', ',a:1', 'a b:1'],
  ['KAFKA_EVENTS_TOPIC', 'a topic', 'a/b', 'x'.repeat(250)],
  ['KAFKA_GROUP_ID', 'a group', 'x'.repeat(201)],
  ['KAFKA_SSL', 'yes', 'TRUE', '1'],
  ['ELASTICSEARCH_URL', 'localhost:9200', 'ftp://localhost', 'http://', 'http://a,b'],
  ['ELASTICSEARCH_INDEX_PREFIX', 'Commission', '1commission', '-a', 'a_b', 'a*', 'a'.repeat(101), '.a'],
  ['API_PORT', '-1', '65536', '8080.5', '0x50', '1e3', ' 80', 'http'],
  ['RECEIPTS_PORT', '-1', '65536', 'http'],
  ['API_DRAIN_SECONDS', '-1', '5', '1.5', 'soon'],
  ['RATE_LIMIT_REQUESTS', '0', '100000001', '-1', 'many'],
  ['RATE_LIMIT_WINDOW_SECONDS', '0', '86401'],
  ['REDIS_URL', 'localhost:6379', 'http://localhost'],
  ['AUDIT_LOG', 'audit.ndjson', './audit', 'stderr', 'kafka:', 'kafka:a topic'],
  [
    'API_TRUSTED_PROXIES',
    'proxy',
    '10.0.0.0/33',
    '10.0.0/8',
    '256.0.0.1',
    '10.0.0.1/',
    '::/129',
    '1::2::3',
    '10.0.0.1,',
    '01.2.3.4.5',
  ],
  ['KAFKA_EVENTS_PARTITIONS', '0', '1001'],
  ['KAFKA_REPLICATION_FACTOR', '0', '101'],
  ['KAFKA_MAX_MESSAGE_BYTES', '65535', '9437185', '1MB'],
  ['FRESHNESS_MS', '-1', '10001', '1.5'],
  ['ELASTICSEARCH_SHARDS', '0', '1025', 'two'],
  ['ELASTICSEARCH_ROUTING_PARTITION_SIZE', '0', '1024', 'two'],
  ['ELASTICSEARCH_REPLICAS', '-1', '11', '0-1'],
])('%s is refused with an invalid value', (name, ...values) => {
  for (const value of values) expect(problemsOf({ [name]: value })).toEqual([name])
})

describe('a secret in a file', () => {
  test('is read again at each access; without a valid value in the file, the last one stays', () => {
    let content: string | undefined = 'first\n'
    const readFile = (): Buffer => {
      if (content === undefined) throw new Error('no such file')
      return Buffer.from(content)
    }
    const settings = readSettings(projectorSettings, { ...enough, ELASTICSEARCH_API_KEY_FILE: '/key' }, readFile)
    const seen = [undefined, '', 'second\n', '', undefined, 'third', 'two\nlines'].map(text => {
      content = text
      return settings.ELASTICSEARCH_API_KEY
    })
    expect(seen).toEqual(['first', 'first', 'second', 'second', 'second', 'third', 'third'])
  })
})

describe('credentials', () => {
  const secrets = ['KAFKA_SASL_PASSWORD', 'ELASTICSEARCH_API_KEY', 'ELASTICSEARCH_PASSWORD', 'REDIS_URL'].concat(
    'SEAL_KEYS_VAULT_TOKEN',
  )
  /** The settings that a secret needs. */
  const beside: Readonly<Record<string, Record<string, string>>> = {
    KAFKA_SASL_PASSWORD: { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'me' },
    ELASTICSEARCH_PASSWORD: { ELASTICSEARCH_USERNAME: 'me' },
    SEAL_KEYS_VAULT_TOKEN: { SEAL_KEYS_VAULT_URL: 'http://vault', SEAL_KEYS_DIR: '/keys' },
  }

  test.each(secrets)('the value of %s is never shown, not even in the message that refuses it', name => {
    const { message, problems } = refusal({ ...enough, ...beside[name], [name]: 'hunter2\nhunter2' }, names)
    expect(message).toContain(`  ${name}: expected`)
    expect(message + JSON.stringify(problems)).not.toContain('hunter2')
  })

  test.each(['https://me:hunter2@es1:9200, es2:9200', 'https://me:hunter2,@/hunter2@es1:9200, es2:9200'])(
    'credentials inside a URL are not shown either: %s',
    ELASTICSEARCH_URL => {
      const { message } = refusal({ ...enough, ELASTICSEARCH_URL }, projectorSettings)
      expect(message).toContain('got "https://…@es1:9200, es2:9200"')
    },
  )

  test('a mechanism requires a username and a password', () => {
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'plain' })).toEqual(['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'])
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'me' })).toEqual(['KAFKA_SASL_PASSWORD'])
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'nonsense', KAFKA_SASL_USERNAME: 'me' })).toEqual([
      'KAFKA_SASL_MECHANISM',
      'KAFKA_SASL_PASSWORD',
    ])
    expect(() => readSettings(apiSettings, { ...enough, KAFKA_SASL_MECHANISM: 'plain' })).not.toThrow()
  })

  test('OAUTHBEARER requires a file with tokens, and no other mechanism takes one', () => {
    const token = { KAFKA_SASL_TOKEN_FILE: '/token' }
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'oauthbearer' })).toEqual(['KAFKA_SASL_TOKEN_FILE'])
    expect(problemsOf(token)).toEqual(['KAFKA_SASL_MECHANISM'])
    const named = { KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD: 'x' }
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'plain', ...named, ...token })).toEqual(['KAFKA_SASL_TOKEN_FILE'])
    expect(problemsOf({ KAFKA_SASL_MECHANISM: 'oauthbearer', ...named, ...token })).toEqual([
      'KAFKA_SASL_USERNAME',
      'KAFKA_SASL_PASSWORD',
    ])
    const environment = { ...enough, KAFKA_SASL_MECHANISM: 'oauthbearer', ...token }
    expect(readSettings(projectorSettings, environment).KAFKA_SASL_TOKEN_FILE).toBe('/token')
  })

  test('a client certificate requires its key, a key its certificate, and both a setting for SSL', () => {
    expect(problemsOf({ KAFKA_SSL: 'true', KAFKA_SSL_CERT_FILE: '/c' })).toEqual(['KAFKA_SSL_KEY_FILE'])
    expect(problemsOf({ KAFKA_SSL: 'true', KAFKA_SSL_KEY_FILE: '/k' })).toEqual(['KAFKA_SSL_CERT_FILE'])
    expect(problemsOf({ KAFKA_SSL_CERT_FILE: '/c', KAFKA_SSL_KEY_FILE: '/k' })).toEqual(['KAFKA_SSL'])
  })

  test.each(secrets)('%s may be in a file', name => {
    const path = name === 'REDIS_URL' ? '/redis' : '/secret'
    const environment = { ...enough, ...beside[name], [`${name}_FILE`]: path }
    expect(readSettings(names, environment, readFile)).toMatchObject({ [name]: files[path]?.trimEnd() })
  })

  test('a setting that is not secret is never read from a file', () => {
    const asked = Object.keys(names).flatMap(name => (secrets.includes(name) ? [] : [`${name}_FILE`]))
    expect(asked.length).toBeGreaterThan(30)
    const environment = { ...enough, ...Object.fromEntries(asked.map(name => [name, '/secret'])) }
    const opened: string[] = []
    const read = (path: string): Buffer => {
      opened.push(path)
      return readFile(path)
    }
    expect(readSettings(names, environment, read)).toEqual(readSettings(names, enough))
    expect(opened).toEqual([])
  })

  test.each([
    [
      'both forms',
      { ELASTICSEARCH_API_KEY: 'x' },
      '/secret',
      'no value, because ELASTICSEARCH_API_KEY is set; got a value',
    ],
    ['a missing file', {}, '/missing', 'a file that can be read; got "/missing"'],
    ['an empty file', {}, '/empty', 'a file that is not empty; got "/empty"'],
  ])('%s of a secret are refused', (_, others, path, says) => {
    const { message, problems } = refusal({ ...enough, ...others, ELASTICSEARCH_API_KEY_FILE: path }, projectorSettings)
    expect(problems).toHaveLength(1)
    expect(message).toContain(`ELASTICSEARCH_API_KEY_FILE: expected ${says}`)
  })

  test('a file whose secret is wrong or missing is one problem among others', () => {
    const file = { KAFKA_SASL_MECHANISM: 'plain', KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD_FILE: '/missing' }
    expect(problemsOf({ ...file, LOG_LEVEL: 'loud' })).toEqual(['KAFKA_SASL_PASSWORD_FILE', 'LOG_LEVEL'])
    const { message } = refusal({ ...enough, ELASTICSEARCH_API_KEY_FILE: '/lines' }, projectorSettings)
    expect(message).toContain('ELASTICSEARCH_API_KEY: expected a text that is not empty; got a value that is not shown')
    expect(message).not.toContain('hunter2')
  })

  test('a username and a password require a mechanism, and a CA file requires a setting for SSL', () => {
    expect(problemsOf({ KAFKA_SASL_USERNAME: 'me', KAFKA_SASL_PASSWORD: 'x' })).toEqual(['KAFKA_SASL_MECHANISM'])
    expect(problemsOf({ KAFKA_SSL_CA_FILE: '/ca.pem' })).toEqual(['KAFKA_SSL'])
  })

  test('a CA file or a client certificate beside KAFKA_SSL=false is refused: passwords would go in clear text', () => {
    expect(readSettings(projectorSettings, { ...enough, KAFKA_SSL: 'false' }).KAFKA_SSL).toBe('false')
    for (const given of [{ KAFKA_SSL_CA_FILE: '/ca' }, { KAFKA_SSL_CERT_FILE: '/c', KAFKA_SSL_KEY_FILE: '/k' }]) {
      expect(problemsOf({ KAFKA_SSL: 'false', ...given })).toEqual(['KAFKA_SSL'])
    }
  })
})

test('a host of the port of receipts requires the port: without it nothing would listen there', () => {
  expect(problemsOf({ RECEIPTS_HOST: '0.0.0.0' })).toEqual(['RECEIPTS_PORT'])
  const environment = { ...enough, RECEIPTS_HOST: '0.0.0.0', RECEIPTS_PORT: '9466' }
  expect(readSettings(projectorSettings, environment)).toMatchObject({ RECEIPTS_HOST: '0.0.0.0', RECEIPTS_PORT: 9466 })
})

test('a start is refused with a variable that makes a package print lines of its own, or Node accept every certificate', () => {
  for (const value of ['*', 'koa,elastic*', 'elasticsearch', '-koa *search'])
    expect(problemsOf({ DEBUG: value })).toEqual(['DEBUG'])
  for (const value of ['ERROR', 'info', 'Debug'])
    expect(problemsOf({ KAFKAJS_LOG_LEVEL: value })).toEqual(['KAFKAJS_LOG_LEVEL'])
  const anyCertificate = { NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  for (const tls of [{ KAFKA_SSL: 'true' }, { ELASTICSEARCH_URL: 'https://a:9200' }])
    expect(problemsOf({ ...anyCertificate, ...tls })).toEqual(['NODE_TLS_REJECT_UNAUTHORIZED'])
  const harmless = { DEBUG: 'koa:* -elasticsearch,testcontainers*', KAFKAJS_LOG_LEVEL: 'nothing', ...anyCertificate }
  expect(readSettings(names, { ...enough, ...harmless })).toEqual(readSettings(names, enough))
})

test('one topic for both streams is refused: a publisher of payouts must not be able to create a key', () => {
  const both = { KAFKA_BROKERS: 'a:1', KAFKA_EVENTS_TOPIC: 'one', KAFKA_API_KEYS_TOPIC: 'one' }
  expect(() => readSettings(topicNames, both)).toThrow(/KAFKA_API_KEYS_TOPIC: expected a topic other than.*got "one"/)
  expect(() => readSettings(topicNames, { ...both, KAFKA_API_KEYS_TOPIC: 'two' })).not.toThrow()
})
