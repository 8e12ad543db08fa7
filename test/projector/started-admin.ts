/** A Kafka whose topics a projector accepts at its start, as an admin client of kafkajs tells it. */
import type { SourceAdmin } from '../../core/log/kafka/source.ts'

const configuration = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': '10000000',
}
export const startedAdmin = {
  connect: async () => undefined,
  describeCluster: async () => ({ clusterId: 'cluster-1' }),
  fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
  describeConfigs: async () => ({
    resources: [
      {
        configEntries: Object.entries(configuration).map(([configName, configValue]) => ({ configName, configValue })),
      },
    ],
  }),
  fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: '5' }],
} as unknown as SourceAdmin & { connect(): Promise<void> }
