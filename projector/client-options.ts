/** Converts settings to client options. Sets explicitly each default that could surprise. */
import { createSecureContext } from 'node:tls'
import type { ClientOptions } from '@elastic/elasticsearch'
import kafkajs, { type Kafka, type KafkaConfig } from 'kafkajs'
import { credentialsOf, readSetting } from '../schemas/kafka/credentials.ts'
import type { elasticsearchSettings, kafkaSettings, Read, ReadSettingFile } from '../schemas/settings.ts'
import { authOf } from '../schemas/stored/credentials.ts'
import { AnswerReader } from './elasticsearch/bulk-responses.ts'
import { clearBufferOnReconnect, createNotifyingSocketFactory } from './kafka/patch-connections.ts'
import { checkOnlyPendingRequests } from './kafka/patch-queue.ts'
import { passOnRefusedRights } from './kafka/patch-refusals.ts'
import { closeAfterTimeout } from './kafka/patch-timeouts.ts'
import { askForTopicIds } from './kafka/patch-topic-ids.ts'
import { ELASTICSEARCH_TIMEOUT_MS, KAFKA_TIMEOUT_MS } from './limits.ts'
import { openCluster } from './log/open-cluster.ts'
import type { KafkaAccess } from './stream/kafka-log.ts'

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
  askForTopicIds()
  return {
    clientId,
    brokers: settings.KAFKA_BROKERS,
    // The client's log lines quote addresses and errors in many forms. We log what matters, once.
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 3_000,
    requestTimeout: KAFKA_TIMEOUT_MS,
    retry: { initialRetryTime: 200, maxRetryTime: 2_000, retries: 5 },
    ...credentialsOf(settings, { readFile, requirePair: createSecureContext, noToken: retriable }),
  }
}

/** Returns the clients of a process that reads a topic. */
export const kafkaAccess = (
  config: KafkaConfig,
  create: (config: KafkaConfig) => Kafka,
): Omit<KafkaAccess, 'admin'> & { readonly kafka: Kafka } => {
  const kafka = create(config)
  return {
    kafka,
    kafkaWithConnectHook: onConnected =>
      create({ ...config, socketFactory: createNotifyingSocketFactory(onConnected) }),
    openLog: (topic, signal) => openCluster({ config, logger: kafka.logger() }, topic, signal),
  }
}

const retriable = (message: string): Error => new kafkajs.KafkaJSError(message, { retriable: true })

export const elasticsearchConfig = (
  settings: Read<typeof elasticsearchSettings>,
  readFile: ReadSettingFile,
): ClientOptions => {
  const auth = authOf(settings)
  return {
    nodes: settings.ELASTICSEARCH_URL,
    // `keepTrying` and `flow/write.ts` retry: the client would retry silently, and treat a timeout as final.
    maxRetries: 0,
    requestTimeout: ELASTICSEARCH_TIMEOUT_MS,
    compression: false,
    Serializer: AnswerReader,
    sniffOnStart: false,
    ...(auth !== undefined && { auth }),
    ...(settings.ELASTICSEARCH_CA_FILE !== undefined && {
      tls: { ca: readSetting('ELASTICSEARCH_CA_FILE', settings.ELASTICSEARCH_CA_FILE, readFile) },
    }),
  }
}
