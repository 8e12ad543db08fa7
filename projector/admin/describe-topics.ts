/** `/asyncapi.json`: the AsyncAPI document with the topics and brokers of the running projector. */

import type { kafkaSettings, Read } from '../../core/runtime/index.ts'
import { asyncapiOf } from '../../schemas/reference/asyncapi.ts'
import type { ReceiptSteps } from './answer-receipt.ts'

/** Returns the document; undefined until both topics are known. Names no user and no secret. */
export const describeTopics = (
  settings: Pick<
    Read<typeof kafkaSettings>,
    'KAFKA_BROKERS' | 'KAFKA_SSL' | 'KAFKA_SASL_MECHANISM' | 'KAFKA_MAX_MESSAGE_BYTES'
  >,
  sources: ReturnType<ReceiptSteps['sources']>,
) => {
  const [events, apiKeys] = (['events', 'api-keys'] as const).map(stream =>
    sources.find(source => source.stream === stream),
  )
  if (events === undefined || apiKeys === undefined) return undefined
  return asyncapiOf({
    topics: {
      events: { address: events.topic, partitions: events.partitions },
      'api-keys': { address: apiKeys.topic, partitions: apiKeys.partitions },
    },
    brokers: settings.KAFKA_BROKERS,
    tls: settings.KAFKA_SSL === 'true',
    saslMechanism: settings.KAFKA_SASL_MECHANISM,
    messageBytes: settings.KAFKA_MAX_MESSAGE_BYTES,
  })
}
