/** Checks of the topics: whether they exist, keep every record, and survive the loss of a broker. */
import kafkajs, { type Admin } from 'kafkajs'
import { assertNotCompacted, checkTopicConfiguration, describeSource, fetchEnds } from '../../core/log/index.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

export type TopicOptions = {
  readonly admin: Admin
  readonly topic: string
  /** The number of partitions that it must have; undefined: any. */
  readonly partitions: number | undefined
  /** `KAFKA_MAX_MESSAGE_BYTES`. */
  readonly messageBytes: number
}

/** @throws StopError as the projector at its start: the topic is missing, or could lose records */
export const checkTopic = async (options: TopicOptions): Promise<Finding[]> => {
  const { admin, topic, partitions: expected, messageBytes } = options
  const check = `topic ${topic}`
  const { partitions, topic_id } = await describeSource(admin, topic)
  const findings: Finding[] = []
  if (expected !== undefined && partitions !== expected) {
    findings.push(
      failed(check, `expected ${expected} partition, got ${partitions}`, 'create it with: npx commission topics'),
    )
  }
  const warnings = await checkTopicConfiguration(admin, topic, messageBytes)
  await fetchEnds(admin, topic)
  findings.push(ok(check, `keeps every record, in ${partitions} partition${partitions === 1 ? '' : 's'}`))
  findings.push(...warnings.map(text => warning(check, text)))
  if (topic_id === undefined) findings.push(warning(check, NO_TOPIC_ID, NEW_BROKERS))
  findings.push(...(await checkCopies(admin, topic)))
  return findings
}

/** @throws StopError as the API at its start: the topic would not keep all lines */
export const checkAuditTopic = async (admin: Admin, topic: string): Promise<Finding[]> => {
  await assertNotCompacted(admin, topic)
  return [ok(`topic ${topic}`, 'is not compacted')]
}

const NO_TOPIC_ID =
  'the brokers tell no topic id: a topic that is deleted and created again is recognized only by its records and ends'
const NEW_BROKERS = 'Kafka 2.8 or newer, with the metadata version (inter.broker.protocol.version) of that release'

const oneCopy = 'only one copy exists: if it is lost, the records are lost'

const MIN_IN_SYNC = 'min.insync.replicas'
const UNCLEAN = 'unclean.leader.election.enable'
const LOOK = `look at it with the tools of the provider: ${MIN_IN_SYNC} at least 2, ${UNCLEAN} false`

const checkCopies = async (admin: Admin, topic: string): Promise<Finding[]> => {
  const check = `copies of topic ${topic}`
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [
      {
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: topic,
        configNames: [MIN_IN_SYNC, UNCLEAN],
      },
    ],
  })
  const values = new Map(resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]))
  const partitions = topics[0]?.partitions ?? []
  const copies = Math.min(...partitions.map(({ replicas }) => replicas.length))
  const inSync = values.get(MIN_IN_SYNC)
  const unclean = values.get(UNCLEAN)
  const behind = partitions.filter(({ replicas, isr }) => isr.length < replicas.length).length
  const alter = `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config`
  const findings: Finding[] = []
  if (copies < 2) findings.push(warning(check, `replication factor 1: ${oneCopy}`, 'kafka-reassign-partitions.sh'))
  for (const name of [MIN_IN_SYNC, UNCLEAN]) {
    if (!values.get(name)) findings.push(warning(check, `the brokers do not tell ${name}`, LOOK))
  }
  if (inSync && Number(inSync) < 2) {
    const detail = `min.insync.replicas is ${inSync}: Kafka acknowledges a record that has one copy`
    findings.push(warning(check, detail, `${alter} min.insync.replicas=2, with a replication factor of 3`))
  }
  if (unclean === 'true') {
    const detail = 'unclean.leader.election.enable is true: acknowledged records can be lost'
    findings.push(failed(check, detail, `${alter} unclean.leader.election.enable=false`))
  }
  if (behind > 0) findings.push(warning(check, `${behind} partitions have a replica that is not in sync`))
  const detail = `replication factor ${copies}, min.insync.replicas ${inSync}, no unclean leader election`
  return findings.length > 0 ? findings : [ok(check, detail)]
}

/** Milliseconds. A record that is later than now by more than this shows that the clock of a broker is ahead. */
const AHEAD_MS = 5_000

/** Kafka does not tell its clock. The times of records, which brokers set, show only one that is ahead. */
export const checkKafkaClock = async (admin: Admin, topic: string, now: () => number): Promise<Finding[]> => {
  const check = `clock of Kafka, by the records of ${topic}`
  // The ends first: neither a record that arrives later may look late, nor one that arrived while Kafka was slow.
  const ends = new Map((await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => [partition, Number(high)]))
  const later = await admin.fetchTopicOffsetsByTimestamp(topic, now() + AHEAD_MS)
  const ahead = later.filter(({ partition, offset }) => Number(offset) < (ends.get(partition) ?? 0))
  if (ahead.length === 0) return [ok(check, `no record is more than ${AHEAD_MS} ms after the clock of this machine`)]
  const detail = `records are more than ${AHEAD_MS} ms after the clock of this machine`
  return [
    warning(
      check,
      detail,
      'synchronize the clocks of the brokers and of this machine; with CreateTime, a publisher can have sent this time',
    ),
  ]
}
