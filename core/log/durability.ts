/** How safely a topic keeps its records. A topic that takes over the log of another one must keep it as safely. */
import kafkajs, { type Admin } from 'kafkajs'
import { withRight } from './kafka/access-refusal.ts'

export type Durability = {
  /** Of the partition with the fewest copies. */
  readonly replicas: number
  /** The values in force of `carried`. */
  readonly inForce: ReadonlyMap<string, string>
  /** Those of the topic itself. The others are defaults of its cluster. */
  readonly own: readonly { readonly name: string; readonly value: string }[]
}

const MIN_IN_SYNC = 'min.insync.replicas'
const UNCLEAN = 'unclean.leader.election.enable'
const carried: readonly string[] = [MIN_IN_SYNC, UNCLEAN]

/** A setting of the topic itself, as Kafka numbers where a setting is from. */
const OF_TOPIC = kafkajs.ConfigSource.TOPIC_CONFIG

export const readDurability = async (
  admin: Pick<Admin, 'fetchTopicMetadata' | 'describeConfigs'>,
  topic: string,
): Promise<Durability> => {
  const { topics } = await withRight('Describe', `topic ${topic}`, admin.fetchTopicMetadata({ topics: [topic] }))
  const asked = { includeSynonyms: false, resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }] }
  const { resources } = await withRight('DescribeConfigs', `topic ${topic}`, admin.describeConfigs(asked))
  const found = (resources[0]?.configEntries ?? []).filter(({ configName }) => carried.includes(configName))
  return {
    replicas: Math.min(...(topics[0]?.partitions ?? []).map(({ replicas }) => replicas.length)),
    inForce: new Map(found.map(({ configName, configValue }) => [configName, configValue])),
    own: found
      .filter(({ configSource }) => configSource === OF_TOPIC)
      .map(({ configName, configValue }) => ({ name: configName, value: configValue })),
  }
}

/** Names each thing that would keep records less safely than expected, with both values. */
export const weakerThan = (expected: Durability, got: Durability): string[] => {
  const weaker: string[] = []
  if (got.replicas < expected.replicas) weaker.push(`replicas: expected ${expected.replicas}, got ${got.replicas}`)
  const [wanted, given] = [expected, got].map(({ inForce }) => inForce.get(MIN_IN_SYNC))
  if (Number(given) < Number(wanted)) weaker.push(`${MIN_IN_SYNC}: expected ${wanted} or more, got ${given}`)
  if (expected.inForce.get(UNCLEAN) === 'false' && got.inForce.get(UNCLEAN) === 'true') {
    weaker.push(`${UNCLEAN}: expected false, got true`)
  }
  return weaker
}
