/**
 * Every setting of both processes: its name in the environment, its valid values and its default. One message lists
 * every wrong or missing setting, and stops the start.
 */

import { TOPIC_MESSAGE_BYTES_MAX, TOPIC_MESSAGE_BYTES_MIN } from '../../schemas/limits.ts'
import { checkTogether } from './environment/check-together.ts'
import { checkReadByOthers } from './environment/read-by-others.ts'
import {
  accessKey,
  anything,
  auditLog,
  broker,
  integer,
  listOf,
  network,
  oneOf,
  optional,
  origin,
  type Problem,
  port,
  required,
  type Setting,
  secret,
  text,
  topic,
  url,
  withDefault,
  withDefaultFrom,
} from './environment/setting-values.ts'

export const kafkaSettings = {
  KAFKA_BROKERS: required(listOf(broker)),
  KAFKA_EVENTS_TOPIC: withDefault(topic, 'commission.events'),
  KAFKA_API_KEYS_TOPIC: withDefault(topic, 'commission.api-keys'),
  KAFKA_SSL: withDefault(oneOf(['true', 'false']), 'false'),
  KAFKA_SSL_CA_FILE: optional(anything),
  KAFKA_SSL_CERT_FILE: optional(anything),
  KAFKA_SSL_KEY_FILE: optional(anything),
  KAFKA_SASL_MECHANISM: optional(oneOf(['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'])),
  KAFKA_SASL_USERNAME: optional(anything),
  KAFKA_SASL_PASSWORD: secret(optional(anything)),
  // Only in a file: a token expires, and another program writes the next one to the file.
  KAFKA_SASL_TOKEN_FILE: optional(anything),
  KAFKA_MAX_MESSAGE_BYTES: withDefault(
    integer(TOPIC_MESSAGE_BYTES_MIN, TOPIC_MESSAGE_BYTES_MAX),
    TOPIC_MESSAGE_BYTES_MAX,
  ),
}

export const elasticsearchSettings = {
  ELASTICSEARCH_URL: required(listOf(url(['http:', 'https:']))),
  ELASTICSEARCH_API_KEY: secret(optional(anything)),
  // No colon: it ends the name in the header.
  ELASTICSEARCH_USERNAME: optional(text('a name without a colon', /^[^:]+$/)),
  ELASTICSEARCH_PASSWORD: secret(optional(anything)),
  ELASTICSEARCH_CA_FILE: optional(anything),
  ELASTICSEARCH_INDEX_PREFIX: withDefault(
    text('1 to 100 of a-z 0-9 -, beginning with a letter', /^[a-z][a-z0-9-]{0,99}$/),
    'commission',
  ),
}

const logSettings = {
  LOG_LEVEL: withDefault(oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']), 'info'),
}

export const topicSettings = {
  KAFKA_EVENTS_PARTITIONS: withDefault(integer(1, 1_000), 6),
  KAFKA_REPLICATION_FACTOR: optional(integer(1, 100)),
}

export const projectorSettings = {
  ...kafkaSettings,
  ...elasticsearchSettings,
  ...logSettings,
  // One group per index prefix: two installations in one group would take partitions from each other.
  KAFKA_GROUP_ID: withDefaultFrom(
    'ELASTICSEARCH_INDEX_PREFIX',
    prefix => `${prefix}-projector`,
    text('1 to 200 of a-z A-Z 0-9 . _ -', /^[a-zA-Z0-9._-]{1,200}$/),
  ),
  PROJECTOR_ADMIN_HOST: withDefault(anything, '127.0.0.1'),
  PROJECTOR_ADMIN_PORT: withDefault(port, 9465),
  RECEIPTS_HOST: withDefault(anything, '127.0.0.1'),
  RECEIPTS_PORT: optional(port),
  FRESHNESS_MS: withDefault(integer(0, 10_000), 25),
  ELASTICSEARCH_SHARDS: withDefault(integer(1, 1_024), 1),
  ELASTICSEARCH_ROUTING_PARTITION_SIZE: withDefault(integer(1, 1_023), 1),
  ELASTICSEARCH_REPLICAS: optional(integer(0, 10)),
}

/** The keys that open sealed texts. Without the directory, records with sealed texts are refused. */
export const sealSettings = {
  SEAL_KEYS_DIR: optional(anything),
  SEAL_KEYS_VAULT_URL: optional(url(['https:', 'http:'])),
  SEAL_KEYS_VAULT_TOKEN: secret(optional(text('a token without white space', /^[!-~]+$/))),
  SEAL_KEYS_VAULT_MOUNT: withDefault(
    text(
      'a path of 0-9 a-z A-Z . _ - with single / inside',
      /^[0-9a-zA-Z_][0-9a-zA-Z._-]*(?:\/[0-9a-zA-Z_][0-9a-zA-Z._-]*)*$/,
    ),
    'transit',
  ),
  SEAL_KEYS_VAULT_CA_FILE: optional(anything),
}

/** Of archives at an address `s3://BUCKET/PREFIX`. */
export const archiveS3Settings = {
  ARCHIVE_S3_ENDPOINT: optional(url(['https:', 'http:'])),
  ARCHIVE_S3_REGION: withDefault(text('a region such as eu-central-1', /^[a-z0-9-]{1,63}$/), 'us-east-1'),
  ARCHIVE_S3_ACCESS_KEY_ID: secret(required(accessKey)),
  ARCHIVE_S3_SECRET_ACCESS_KEY: secret(required(accessKey)),
  ARCHIVE_S3_SESSION_TOKEN: secret(optional(accessKey)),
  ARCHIVE_S3_CA_FILE: optional(anything),
}

export const apiSettings = {
  ...elasticsearchSettings,
  ...logSettings,
  ...sealSettings,
  AUDIT_LOG: optional(auditLog),
  AUDIT_STRICT: withDefault(oneOf(['true', 'false']), 'false'),
  API_HOST: withDefault(anything, '127.0.0.1'),
  API_PORT: withDefault(port, 8080),
  API_TLS_CERT_FILE: optional(anything),
  API_TLS_KEY_FILE: optional(anything),
  API_CACHE: withDefault(oneOf(['private', 'no-store']), 'private'),
  API_CHECKPOINT_KEY_FILE: optional(anything),
  API_PUBLIC_URL: optional(origin),
  API_CORS_ORIGINS: withDefault(listOf(origin), []),
  API_TRUSTED_PROXIES: withDefault(listOf(network), []),
  API_ADMIN_HOST: withDefault(anything, '127.0.0.1'),
  API_ADMIN_PORT: withDefault(port, 9464),
  API_DRAIN_SECONDS: withDefault(integer(0, 4), 3),
  RATE_LIMIT_REQUESTS: withDefault(integer(1, 100_000_000), 600),
  RATE_LIMIT_WINDOW_SECONDS: withDefault(integer(1, 86_400), 60),
  REDIS_URL: secret(optional(url(['redis:', 'rediss:']))),
}

/** Hides name and password in a URL: everything up to the last @, because both may contain any character. */
const withoutCredentials = (given: string): string => given.replace(/:\/\/.*@/s, '://…@')

type Settings = Record<string, Setting<unknown>>
export type Read<Names extends Settings> = {
  [Name in keyof Names]: Names[Name] extends Setting<infer Value> ? Value : never
}

/** Stops the start. The message has one line per problem and never the value of a secret. */
export class SettingsError extends Error {
  override name = 'SettingsError'
  readonly problems: readonly Problem[]
  constructor(problems: readonly Problem[]) {
    const lines = problems.map(({ name, expected, got }) => `  ${name}: expected ${expected}; got ${got}`)
    super(`${problems.length === 1 ? 'A setting is' : `${problems.length} settings are`} wrong:\n${lines.join('\n')}`)
    this.problems = problems
  }
}

/** Returns the content of a file. Throws if it cannot. */
export type ReadSettingFile = (path: string) => Buffer
type Environment = Readonly<Record<string, string | undefined>>

const readNoFile: ReadSettingFile = () => {
  throw new Error('no files here')
}

/**
 * Reads the named settings from an environment. An empty value counts as absent. A secret may be in a file instead: the
 * setting with `_FILE` at the end of its name has the path. Each access to such a secret reads the file again, and
 * returns the last valid value if the file has none.
 * @throws SettingsError that lists every problem
 */
export const readSettings = <Names extends Settings>(
  names: Names,
  environment: Environment,
  readFile: ReadSettingFile = readNoFile,
): Read<Names> => {
  const problems: Problem[] = []
  const values: [name: string, value: unknown][] = []
  const texts = { ...environment, ...secretsInFiles(names, environment, readFile, problems) }
  for (const [name, setting] of Object.entries(names)) {
    const given = texts[name]
    if (given === undefined || given === '') {
      if (setting.absent === 'required') problems.push({ name, expected: setting.expected, got: 'nothing' })
      values.push([
        name,
        setting.absent === 'required' ? undefined : whenAbsent(setting.absent, Object.fromEntries(values)),
      ])
      continue
    }
    const value = setting.read(given)
    if (value === undefined) {
      const got = setting.secret ? 'a value that is not shown' : JSON.stringify(withoutCredentials(given))
      problems.push({ name, expected: setting.expected, got })
    }
    values.push([name, value])
  }

  checkTogether({ names, texts, values: Object.fromEntries(values) }, problems)
  checkReadByOthers({ names, environment: texts }, problems)
  if (problems.length > 0) throw new SettingsError(problems)
  const settings = Object.fromEntries(values)
  for (const [name, { secret, read }] of Object.entries(names)) {
    const path = environment[`${name}_FILE`]
    if (secret && path) {
      const get = fileReader(path, read, readFile, settings[name])
      Object.defineProperty(settings, name, { enumerable: true, get })
    }
  }
  return settings as Read<Names>
}

/** Returns the secrets whose files are named. Adds problems to the list. */
const secretsInFiles = (
  names: Settings,
  environment: Environment,
  readFile: ReadSettingFile,
  problems: Problem[],
): Record<string, string> => {
  const secrets: Record<string, string> = {}
  for (const [setting, { secret }] of Object.entries(names)) {
    const name = `${setting}_FILE`
    const path = environment[name]
    if (!secret || !path) continue
    if (environment[setting]) {
      problems.push({ name, expected: `no value, because ${setting} is set`, got: 'a value' })
      continue
    }
    const content = readSecretFile(path, readFile)
    if (content === undefined) problems.push({ name, expected: readableFile, got: JSON.stringify(path) })
    else if (content === '') problems.push({ name, expected: 'a file that is not empty', got: JSON.stringify(path) })
    else secrets[setting] = content
  }
  return secrets
}

/** Returns a function that reads a secret from its file. @param first the value that `readSettings` has found in it */
const fileReader = (
  path: string,
  read: Setting<unknown>['read'],
  readFile: ReadSettingFile,
  first: unknown,
): (() => unknown) => {
  let latest = first
  return () => {
    const content = readSecretFile(path, readFile)
    latest = (content ? read(content) : undefined) ?? latest
    return latest
  }
}

/** Returns the text of a file without white space at its end; undefined if it cannot be read. */
export const readSecretFile = (path: string, readFile: ReadSettingFile): string | undefined => {
  try {
    return readFile(path).toString().trimEnd()
  } catch {
    return undefined
  }
}

/** The expected value of a setting that names a file. */
export const readableFile = 'a file that can be read'

const whenAbsent = (
  absent: Exclude<Setting<unknown>['absent'], 'required'>,
  others: Record<string, unknown>,
): unknown => (absent.from === undefined ? absent.value : absent.value(String(others[absent.from])))

/** Returns the content of the file that a setting names. @throws SettingsError if it cannot be read */
export const readSetting = (name: string, path: string, readFile: ReadSettingFile): Buffer => {
  try {
    return readFile(path)
  } catch {
    throw new SettingsError([{ name, expected: readableFile, got: JSON.stringify(path) }])
  }
}
