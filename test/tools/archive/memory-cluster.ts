/** A topic in memory whose first partition has one record, and an archive of it. */
import type { Admin } from 'kafkajs'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import type { ArchivedSource } from '../../../tools/archive/segment.ts'
import type { ArchiveTarget } from '../../../tools/archive/target.ts'
import { openTopicArchive } from '../../../tools/archive/topic-archive.ts'
import { fetchedOf } from '../../support/record-batches.ts'

const entryOf = (value: string) => {
  const kind = 'record' as const
  return { kind, offset: 0, timestamp: 1, key: null, value: Buffer.from(value), headers: encodeHeaders([]) }
}

export const archiveRecord = async (
  target: ArchiveTarget,
  source: ArchivedSource,
  partitions = 1,
  value = 'a',
): Promise<void> => {
  const topic = await openTopicArchive(target, source, partitions, async () => undefined)
  topic.add(0, [entryOf(value)], 0)
  await topic.cut(1)
}

/** @param value of the record: that of the archive, or another one */
export const clusterOfRecord = (value = 'a'): LogCluster => {
  const messages = [{ fetched: fetchedOf([entryOf(value)]) }]
  const broker = {
    fetch: async () => ({ responses: [{ partitions: [{ messages, lastStableOffset: '1' }] }] }),
    listOffsets: async () => ({ responses: [{ partitions: [{ offset: '1' }] }] }),
    initProducerId: async () => ({ producerId: '1', producerEpoch: 0 }),
  }
  return {
    onLeader: async (_: number, ask: (one: typeof broker) => unknown) => ask(broker),
    onCoordinator: async (_: string, ask: (one: typeof broker) => unknown) => ask(broker),
    disconnect: async () => undefined,
  } as unknown as LogCluster
}

export const adminOfRecord = (): Admin => {
  const configuration = { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' }
  const configEntries = Object.entries(configuration).map(([configName, configValue]) => ({ configName, configValue }))
  return {
    connect: async () => undefined,
    disconnect: async () => undefined,
    describeCluster: async () => ({ clusterId: 'another' }),
    describeConfigs: async () => ({ resources: [{ configEntries }] }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: '1' }],
  } as unknown as Admin
}
