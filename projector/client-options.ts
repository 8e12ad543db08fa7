/** Converts settings to client options. Sets explicitly each default that could surprise. */
import type { ClientOptions } from '@elastic/elasticsearch'
import kafkajs, { type KafkaConfig, type SASLOptions } from 'kafkajs'
import { type elasticsearchSettings, type kafkaSettings, type Read, SettingsError } from '../schemas/settings.ts'
import { AnswerReader } from './elasticsearch/bulk-responses.ts'
import { clearBufferOnReconnect } from './kafka/patch-connections.ts'
import { checkOnlyPendingRequests } from './kafka/patch-queue.ts'
import { ELASTICSEARCH_TIMEOUT_MS } from './limits.ts'

type ReadFile = (path: string) => Buffer

export const kafkaConfig = (
  settings: Read<typeof kafkaSettings>,
  clientId: string,
  readFile: ReadFile,
): KafkaConfig => {
  // Here, because every Kafka client is created with this function.
  clearBufferOnReconnect()
  checkOnlyPendingRequests()
  const mechanism = settings.KAFKA_SASL_MECHANISM
  const [username, password] = [settings.KAFKA_SASL_USERNAME ?? '', settings.KAFKA_SASL_PASSWORD ?? '']
  const sasl: SASLOptions | undefined = mechanism && { mechanism, username, password }
  return {
    clientId,
    brokers: settings.KAFKA_BROKERS,
    // The client's log lines quote addresses and errors in many forms. We log what matters, once.
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 3_000,
    requestTimeout: 30_000,
    retry: { initialRetryTime: 200, maxRetryTime: 2_000, retries: 5 },
    ...(settings.KAFKA_SSL === 'true' && {
      ssl:
        settings.KAFKA_SSL_CA_FILE === undefined
          ? true
          : { ca: [readSetting('KAFKA_SSL_CA_FILE', settings.KAFKA_SSL_CA_FILE, readFile)] },
    }),
    ...(sasl && { sasl }),
  }
}

export const elasticsearchConfig = (
  settings: Read<typeof elasticsearchSettings>,
  readFile: ReadFile,
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

const readSetting = (name: string, path: string, readFile: ReadFile): Buffer => {
  try {
    return readFile(path)
  } catch {
    throw new SettingsError([{ name, expected: 'a file that can be read', got: JSON.stringify(path) }])
  }
}
