/** Converts settings to client options. Sets explicitly each default that could surprise. */
import { createSecureContext } from 'node:tls'
import type { ClientOptions } from '@elastic/elasticsearch'
import kafkajs, { type KafkaConfig, type SASLOptions } from 'kafkajs'
import {
  type elasticsearchSettings,
  type kafkaSettings,
  type Read,
  type ReadSettingFile,
  readableFile,
  readSecretFile,
  SettingsError,
} from '../schemas/settings.ts'
import { AnswerReader } from './elasticsearch/bulk-responses.ts'
import { clearBufferOnReconnect } from './kafka/patch-connections.ts'
import { checkOnlyPendingRequests } from './kafka/patch-queue.ts'
import { passOnRefusedRights } from './kafka/patch-refusals.ts'
import { closeAfterTimeout } from './kafka/patch-timeouts.ts'
import { ELASTICSEARCH_TIMEOUT_MS, KAFKA_TIMEOUT_MS } from './limits.ts'

/** A connection authenticates again this long before its session ends: with the token that the file has by then. */
const REAUTHENTICATE_BEFORE_MS = 10_000

/**
 * Returns the options of a Kafka client.
 * @throws SettingsError if a file cannot be read, a key does not fit its certificate, or there is no token
 */
export const kafkaConfig = (
  settings: Read<typeof kafkaSettings>,
  clientId: string,
  readFile: ReadSettingFile,
): KafkaConfig => {
  // Here, because every Kafka client is created with this function.
  clearBufferOnReconnect()
  checkOnlyPendingRequests()
  passOnRefusedRights()
  closeAfterTimeout()
  const sasl = saslOptions(settings, readFile)
  return {
    clientId,
    brokers: settings.KAFKA_BROKERS,
    // The client's log lines quote addresses and errors in many forms. We log what matters, once.
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 3_000,
    requestTimeout: KAFKA_TIMEOUT_MS,
    retry: { initialRetryTime: 200, maxRetryTime: 2_000, retries: 5 },
    reauthenticationThreshold: REAUTHENTICATE_BEFORE_MS,
    ...(settings.KAFKA_SSL === 'true' && { ssl: sslOptions(settings, readFile) }),
    ...(sasl && { sasl }),
  }
}

type KafkaSettings = Read<typeof kafkaSettings>

const sslOptions = (settings: KafkaSettings, readFile: ReadSettingFile): NonNullable<KafkaConfig['ssl']> => {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = settings
  const trusted = ca === undefined ? {} : { ca: [readSetting('KAFKA_SSL_CA_FILE', ca, readFile)] }
  if (cert === undefined || key === undefined) return ca === undefined ? true : trusted
  const readPair = () => {
    const pair = {
      cert: readSetting('KAFKA_SSL_CERT_FILE', cert, readFile),
      key: readSetting('KAFKA_SSL_KEY_FILE', key, readFile),
    }
    try {
      createSecureContext(pair)
    } catch {
      const expected = 'the key of the certificate in KAFKA_SSL_CERT_FILE, both as PEM'
      throw new SettingsError([{ name: 'KAFKA_SSL_KEY_FILE', expected, got: JSON.stringify(key) }])
    }
    return pair
  }
  let pair = readPair()
  // The client reads these properties, in this order, for each connection.
  return {
    ...trusted,
    get cert() {
      try {
        pair = readPair()
      } catch {
        // Another program writes the files at the moment: the previous pair stays in use.
      }
      return pair.cert
    },
    get key() {
      return pair.key
    },
  }
}

const saslOptions = (settings: KafkaSettings, readFile: ReadSettingFile): SASLOptions | undefined => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_TOKEN_FILE: tokenFile = '' } = settings
  if (mechanism !== 'oauthbearer') {
    return (
      mechanism && {
        mechanism,
        username: settings.KAFKA_SASL_USERNAME ?? '',
        // The client reads it for each authentication.
        get password() {
          return settings.KAFKA_SASL_PASSWORD ?? ''
        },
      }
    )
  }
  if (readToken(tokenFile, readFile) === undefined) {
    const expected = 'a file that can be read and has a token'
    throw new SettingsError([{ name: 'KAFKA_SASL_TOKEN_FILE', expected, got: JSON.stringify(tokenFile) }])
  }
  // Each authentication reads the file again: another program writes the next token before the present one ends.
  const oauthBearerProvider = async () => {
    const value = readToken(tokenFile, readFile)
    // Retriable: the file may be empty for the moment in which it is written.
    if (value === undefined) throw new kafkajs.KafkaJSError('KAFKA_SASL_TOKEN_FILE has no token', { retriable: true })
    return { value }
  }
  return { mechanism, oauthBearerProvider }
}

/** Returns undefined if the file cannot be read or has no token. */
const readToken = (path: string, readFile: ReadSettingFile): string | undefined =>
  readSecretFile(path, readFile) || undefined

export const elasticsearchConfig = (
  settings: Read<typeof elasticsearchSettings>,
  readFile: ReadSettingFile,
): ClientOptions => ({
  nodes: settings.ELASTICSEARCH_URL,
  // `keepTrying` retries: the client would retry silently, and treat a timeout as final.
  maxRetries: 0,
  requestTimeout: ELASTICSEARCH_TIMEOUT_MS,
  compression: false,
  Serializer: AnswerReader,
  sniffOnStart: false,
  ...(settings.ELASTICSEARCH_API_KEY !== undefined && { auth: { apiKey: settings.ELASTICSEARCH_API_KEY } }),
  ...(settings.ELASTICSEARCH_CA_FILE !== undefined && {
    tls: { ca: readSetting('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE, readFile) },
  }),
})

const readSetting = (name: string, path: string, readFile: ReadSettingFile): Buffer => {
  try {
    return readFile(path)
  } catch {
    throw new SettingsError([{ name, expected: readableFile, got: JSON.stringify(path) }])
  }
}
