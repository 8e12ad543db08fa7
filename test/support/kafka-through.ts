/** Creates a Kafka client with the projector's configuration. All its connections go through a proxy. */
import kafkajs, { type ISocketFactoryArgs, type Kafka } from 'kafkajs'
import { createNotifyingSocketFactory } from '../../core/log/kafka/patch-connections.ts'
import { kafkaConfig } from '../../core/log/kafka-config.ts'
import { projectorSettings, readSettings } from '../../core/runtime/settings.ts'
import type { FaultProxy } from './proxy.ts'

export const kafkaThrough = (proxy: FaultProxy, clientId: string): Kafka => {
  const settings = readSettings(projectorSettings, {
    KAFKA_BROKERS: proxy.address,
    ELASTICSEARCH_URL: 'http://localhost:1',
  })
  const connect = createNotifyingSocketFactory(() => undefined)
  // Kafka tells clients its own address. This sends all connections to the proxy instead.
  const socketFactory = (options: ISocketFactoryArgs) => connect({ ...options, host: '127.0.0.1', port: proxy.port })
  return new kafkajs.Kafka({ ...kafkaConfig(settings, clientId, () => Buffer.alloc(0), Date.now), socketFactory })
}
