/** Converts settings to options of Kafka clients. Sets explicitly each default that could surprise. */
import { createSecureContext } from 'node:tls'
import kafkajs, { type Kafka, type KafkaConfig } from 'kafkajs'
import type { kafkaSettings, Read, ReadSettingFile } from '../runtime/index.ts'
import { measureWithMonotonicClock } from './kafka/patch-clock.ts'
import { clearBufferOnReconnect, createNotifyingSocketFactory } from './kafka/patch-connections.ts'
import { namePartitionsOfErrors } from './kafka/patch-partition-errors.ts'
import { checkOnlyPendingRequests } from './kafka/patch-queue.ts'
import { passOnRefusedRights, refuseNoMetadata } from './kafka/patch-refusals.ts'
import { closeAfterTimeout } from './kafka/patch-timeouts.ts'
import { askForTopicIds } from './kafka/patch-topic-ids.ts'
import type { SourceAdmin } from './kafka/source.ts'
import { credentialsOf } from './kafka-credentials.ts'
import { KAFKA_TIMEOUT_MS } from './limits.ts'
import type { OpenLog } from './records/last-records.ts'
import { openCluster } from './records/open-cluster.ts'
import { askForLogEnds } from './records/patch-log-ends.ts'

/**
 * Returns the options of a Kafka client.
 * @param now milliseconds since 1970, by the clock of the machine
 * @throws SettingsError if a file cannot be read, a key does not fit its certificate, or there is no token
 */
export const kafkaConfig = (
  settings: Read<typeof kafkaSettings>,
  clientId: string,
  readFile: ReadSettingFile,
  now: () => number,
): KafkaConfig => {
  // Here, because every Kafka client is created with this function.
  clearBufferOnReconnect()
  checkOnlyPendingRequests()
  passOnRefusedRights()
  refuseNoMetadata()
  closeAfterTimeout()
  askForTopicIds()
  askForLogEnds()
  namePartitionsOfErrors()
  measureWithMonotonicClock(now)
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

/** The clients of a process that reads a topic. */
export type KafkaAccess = {
  /** Creates a client that calls back for each new connection, before its first use. */
  readonly kafkaWithConnectHook: (onConnected: () => void) => Kafka
  readonly admin: SourceAdmin
  /** Opens connections for reads without a group. */
  readonly openLog: OpenLog
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
