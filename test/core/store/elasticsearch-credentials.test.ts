import { expect, test } from 'vitest'
import { elasticsearchSettings, readSettings, SettingsError } from '../../../core/runtime/settings.ts'
import { authOf, createCredentials } from '../../../core/store/elasticsearch-credentials.ts'

const read = (environment: Record<string, string>, readFile?: (path: string) => Buffer) =>
  readSettings(elasticsearchSettings, { ELASTICSEARCH_URL: 'http://es:9200', ...environment }, readFile)
const named = { ELASTICSEARCH_USERNAME: 'me', ELASTICSEARCH_PASSWORD: 'x' }

test('an API key, or a name and a password, are the credentials', () => {
  expect(authOf(read({}))).toBeUndefined()
  expect(authOf(read({ ELASTICSEARCH_API_KEY: 'key' }))).toEqual({ apiKey: 'key' })
  expect(authOf(read(named))).toEqual({ username: 'me', password: 'x' })
  const noNames = 'http://es:9200/a@b'
  expect(authOf(read({ ...named, ELASTICSEARCH_URL: noNames }))).toEqual({ username: 'me', password: 'x' })
})

test.for([
  [{ ELASTICSEARCH_USERNAME: 'me' }, 'ELASTICSEARCH_PASSWORD: expected a value'],
  [{ ELASTICSEARCH_PASSWORD: 'x' }, 'ELASTICSEARCH_USERNAME: expected a value'],
  [{ ...named, ELASTICSEARCH_API_KEY: 'key' }, 'ELASTICSEARCH_USERNAME: expected no value'],
  [
    { ...named, ELASTICSEARCH_URL: 'http://es:9200, http://you:y@es2:9200' },
    'ELASTICSEARCH_USERNAME: expected no value, because ELASTICSEARCH_URL has a name; got a value',
  ],
  [{ ...named, ELASTICSEARCH_USERNAME: 'a:b' }, 'ELASTICSEARCH_USERNAME: expected a name without a colon'],
] as const)(
  'a name needs a password, a password a name, and neither stands beside an API key or a name in the URL: %#',
  ([given, says]) => {
    expect(() => read(given)).toThrow(SettingsError)
    expect(() => read(given)).toThrow(says)
  },
)

test('after a refusal the file is read again', () => {
  let content = 'first\n'
  const { ELASTICSEARCH_USERNAME } = named
  const environment = { ELASTICSEARCH_USERNAME, ELASTICSEARCH_PASSWORD_FILE: '/password' }
  const settings = read(environment, () => Buffer.from(content))
  const credentials = createCredentials(() => authOf(settings))
  const refused = credentials.header()
  expect(refused).toEqual({ authorization: 'Basic bWU6Zmlyc3Q=' })
  expect(credentials.renew(refused)).toBe(false)
  content = 'second'
  expect(credentials.header()).toEqual(refused)
  expect(credentials.renew(refused)).toBe(true)
  expect(credentials.header()).toEqual({ authorization: 'Basic bWU6c2Vjb25k' })
})
