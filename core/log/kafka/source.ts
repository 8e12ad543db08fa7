/**
 * Checks the source of a projection: the topic is the one that the projection was made from, and keeps its records.
 * Runs before the first record, at every assignment and periodically. A mismatch stops the projector before it writes.
 * `records/last-records.ts` and `stream/assign.ts` read the last known records for `assertLastRecord`.
 */
import kafkajs, { type Admin } from 'kafkajs'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { KEYS_PARTITIONS } from '../../../schemas/partition.ts'
import type { GenerationDocument, PositionDocument } from '../../../schemas/stored/documents.ts'
import { type RawRecord, recordHash } from '../../ledger/index.ts'
import { StopError } from '../../runtime/index.ts'
import { withRight } from './access-refusal.ts'
import { topicIdAmong } from './patch-topic-ids.ts'

export type SourceAdmin = Pick<
  Admin,
  'describeCluster' | 'fetchTopicMetadata' | 'fetchTopicOffsets' | 'describeConfigs' | 'describeGroups'
>

/** A generation as stored: its source, the version of its rules, and more. */
export type GenerationBody = GenerationDocument['body']

/**
 * `end` is the stable end: records from there on may still be aborted. `logEnd`: the log end, with all records that the
 * leader has. Nobody can read those of open transactions, those behind them, and those that too few replicas have.
 * Absent in a log without such records; infinite if it is not known now.
 */
export type Ends = readonly {
  readonly partition: number
  readonly low: number
  readonly end: number
  readonly logEnd?: number
}[]

/** The log of a projection. Another topic of the same name has another id; absent if the brokers have no topic ids. */
export type Source = Pick<GenerationBody, 'topic' | 'cluster_id' | 'partitions' | 'topic_id'>

/** Returns the cluster id, the topic id and the number of partitions. @throws StopError `topic_missing` */
export const describeSource = async (admin: SourceAdmin, topic: string): Promise<Source> => {
  const { clusterId } = await admin.describeCluster()
  try {
    const { topics } = await withRight('Describe', `topic ${topic}`, admin.fetchTopicMetadata({ topics: [topic] }))
    const partitions = topics[0]?.partitions ?? []
    const topic_id = topicIdAmong(partitions)
    return { topic, cluster_id: clusterId, partitions: partitions.length, ...(topic_id !== undefined && { topic_id }) }
  } catch (error) {
    if (isUnknownTopic(error)) {
      throw new StopError('topic_missing', `${topic} is not on this cluster; create it with: npx commission topics`, {
        topic,
      })
    }
    throw error
  }
}

export const isUnknownTopic = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSError && 'type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION'

/** Advice for `source_changed`, if the topics were restored on purpose. */
export const ADVICE_IF_RESTORED = 'restored topics: npx commission projection adopt --archive DIR'

/** Fields of a source. Two topic ids are compared if both are known. */
const sourceFields = ['topic', 'cluster_id', 'partitions', 'topic_id'] as const
/** Fields that a restore of the topics changes. */
const restoredFields: ReadonlySet<string> = new Set(['cluster_id', 'topic_id'])

/** Returns the first field in which two sources differ. */
export const differingField = (expected: Source, got: Source): (typeof sourceFields)[number] | undefined =>
  sourceFields.find(field => {
    if (field === 'topic_id' && (expected[field] === undefined || got[field] === undefined)) return false
    return expected[field] !== got[field]
  })

/** @throws StopError `source_changed`, with the field that differs */
export const assertSameSource = (expected: Source & Pick<GenerationBody, 'generation'>, got: Source): void => {
  const field = differingField(expected, got)
  if (field !== undefined) {
    const next = restoredFields.has(field) ? `; ${ADVICE_IF_RESTORED}` : ''
    throw new StopError('source_changed', `${field}: expected ${expected[field]}, got ${got[field]}${next}`, {
      topic: expected.topic,
      generation: expected.generation,
    })
  }
}

/** As `fetchEnds`, also of a topic that has deleted records. */
export const fetchRanges = async (admin: Pick<SourceAdmin, 'fetchTopicOffsets'>, topic: string): Promise<Ends> => {
  const offsets = await withRight('Describe', `topic ${topic}`, admin.fetchTopicOffsets(topic))
  return offsets
    .map(({ partition, low, high }) => ({ partition, low: Number(low), end: Number(high) }))
    .sort((a, b) => a.partition - b.partition)
}

/**
 * Returns the lowest offset and the stable end of each partition, in order. Kafka may have acknowledged records behind
 * these ends: `endsWithWritten` has the ends that include them.
 * @throws StopError `records_deleted`
 */
export const fetchEnds = async (admin: SourceAdmin, topic: string): Promise<Ends> => {
  const ends = await fetchRanges(admin, topic)
  for (const { partition, low } of ends) {
    if (low === 0) continue
    throw new StopError('records_deleted', `partition ${partition} of ${topic} no longer begins at offset 0`, {
      topic,
      partition,
      low,
    })
  }
  return ends
}

/** Returns the stable end of each partition, in the order of the partitions. @throws StopError as `fetchEnds` */
export const fetchEndOffsets = async (admin: SourceAdmin, topic: string): Promise<number[]> =>
  (await fetchEnds(admin, topic)).map(({ end }) => end)

/** Returns the end of a partition; 0 if the topic does not have it. */
export const endOfPartition = (partition: number, ends: Ends): number =>
  ends.find(candidate => candidate.partition === partition)?.end ?? 0

/** @throws StopError `records_deleted` if the partition ends before `position` */
export const assertNotTruncated = (topic: string, partition: number, position: number, ends: Ends): void => {
  const end = endOfPartition(partition, ends)
  if (end >= position) return
  throw new StopError('records_deleted', 'the partition ends before what was already read', {
    topic,
    partition,
    position,
    end,
  })
}

/** Whether a record of the log is the last known one. */
export const isLastRecord = ({ offset, sha256 }: LastRecord, record: RawRecord | undefined): boolean =>
  record?.offset === offset && recordHash(record) === sha256

/** @throws StopError `source_changed` unless the log has the last known record at its offset */
export const assertLastRecord = (
  topic: string,
  partition: number,
  last: LastRecord,
  record: RawRecord | undefined,
): void => {
  if (!isLastRecord(last, record)) throw sourceChanged(topic, partition, last, last.offset)
}

/**
 * Of records of the log from the last known one on, none may be another one before the position: when that was read,
 * only aborted and control records were there, and a transaction that ended stays as it ended.
 * @throws StopError `source_changed`
 */
export const assertNoOther = (
  topic: string,
  partition: number,
  { position, last }: KnownRecord,
  records: readonly RawRecord[],
): void => {
  const other = records.find(({ offset }) => offset < position && offset !== last?.offset)
  if (other !== undefined) throw sourceChanged(topic, partition, last, other.offset)
}

export const sourceChanged = (topic: string, partition: number, last: LastRecord | null, offset: number): StopError => {
  const what =
    offset === last?.offset
      ? 'the last record read differs from the one in the log now'
      : 'the log has a record now at an offset where it had none when it was read'
  return new StopError('source_changed', `${what}; ${ADVICE_IF_RESTORED}`, { topic, partition, offset })
}

/** How far a partition was read. */
export type KnownRecord = Pick<PositionDocument['body'], 'position' | 'last'>
export type LastRecord = NonNullable<PositionDocument['body']['last']>

/**
 * @param messageBytes `KAFKA_MAX_MESSAGE_BYTES`, which the topic must accept
 * @returns warnings about weaker guarantees
 * @throws StopError `topic_unsuitable` if a setting would lose records
 */
export const checkTopicConfiguration = async (
  admin: SourceAdmin,
  topic: string,
  messageBytes: number = TOPIC_MESSAGE_BYTES_MAX,
): Promise<string[]> => {
  const values = await readConfiguration(admin, topic, {
    ...uncompacted,
    'retention.ms': '-1',
    'retention.bytes': '-1',
  })
  const warnings: string[] = []
  if (values.get('message.timestamp.type') !== 'LogAppendTime') {
    warnings.push(TIMES_OF_PUBLISHERS)
  }
  const accepted = values.get('max.message.bytes')
  if (Number(accepted) < messageBytes) {
    warnings.push(
      `max.message.bytes: expected KAFKA_MAX_MESSAGE_BYTES (${messageBytes}) or more, got ${accepted}: larger records cannot be published`,
    )
  }
  return warnings
}

const uncompacted = { 'cleanup.policy': 'delete' }

/**
 * For a topic that may delete old records, but no others.
 * @throws StopError `topic_unsuitable` if the topic is compacted: only the last record of each key would stay
 */
export const assertNotCompacted = async (admin: Pick<Admin, 'describeConfigs'>, topic: string): Promise<void> => {
  await readConfiguration(admin, topic, uncompacted)
}

/** Returns the settings of a topic. @throws StopError `topic_unsuitable` unless they are as demanded */
const readConfiguration = async (
  admin: Pick<Admin, 'describeConfigs'>,
  topic: string,
  demands: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, string>> => {
  const asked = { includeSynonyms: false, resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }] }
  const { resources } = await withRight('DescribeConfigs', `topic ${topic}`, admin.describeConfigs(asked))
  const values = new Map(resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]))
  const wrong = Object.entries(demands).flatMap(([name, expected]) =>
    values.get(name) === expected ? [] : [`${name}: expected ${expected}, got ${values.get(name) ?? 'nothing'}`],
  )
  if (wrong.length > 0) throw new StopError('topic_unsuitable', `${topic}: ${wrong.join('; ')}`, { topic })
  return values
}

/** @throws StopError if the topic of API keys has more than one partition */
export const assertOnePartition = (topic: string, partitions: number): void => {
  if (partitions === KEYS_PARTITIONS) return
  throw new StopError('topic_unsuitable', `${topic}: expected ${KEYS_PARTITIONS} partition, got ${partitions}`)
}

/** The warning about times that publishers set. */
export const TIMES_OF_PUBLISHERS =
  'message.timestamp.type is not LogAppendTime: reads as of a time depend on the clocks of the publishers'
