/**
 * Lets the records of a topic keep their times while they are restored, and puts the settings of the topic back.
 * In: a topic. Out: `CreateTime`, and no limit of how far a time is from the clock of the broker: a log can have any
 *   times. Then `LogAppendTime`, and the limits that the topic had before.
 * Promises: what was there before is found again by any later process, also after a kill: the settings of the topic
 *   themselves hold it. A limit that was set is stored as its distance from the highest number, which is no limit.
 */
import kafkajs, { type Admin } from 'kafkajs'
import { withRight } from '../../core/log/index.ts'

const TYPE = 'message.timestamp.type'
/** Kafka has the first two since 3.6, and the last one before 4.0. */
const LIMITS = [
  'message.timestamp.after.max.ms',
  'message.timestamp.before.max.ms',
  'message.timestamp.difference.max.ms',
]

/** Kafka's default before 4.0: any time. */
const HIGHEST = 2n ** 63n - 1n
/** Stands for a limit that the topic did not set itself. */
const NOT_SET = HIGHEST - 1n
/** A higher value is no limit, or one that stands for another one. */
const LIMIT_MAX = 2n ** 62n

type Settings = { readonly own: Map<string, string>; readonly all: ReadonlyMap<string, string> }

export const keepTimes = async (admin: Admin, topic: string): Promise<void> => {
  const { own, all } = await settingsOf(admin, topic)
  const before = new Map(own)
  own.set(TYPE, 'CreateTime')
  for (const name of LIMITS) {
    const effective = all.get(name)
    if (effective === undefined || BigInt(effective) >= LIMIT_MAX) continue
    const set = own.get(name)
    own.set(name, String(set === undefined ? NOT_SET : NOT_SET - 1n - BigInt(set)))
  }
  await store(admin, topic, before, own)
}

/** Puts back what any earlier restore has changed. Without a change it only reads. */
export const putTimesBack = async (admin: Admin, topic: string): Promise<void> => {
  const { own } = await settingsOf(admin, topic)
  const before = new Map(own)
  own.set(TYPE, 'LogAppendTime')
  for (const name of LIMITS) {
    const value = BigInt(own.get(name) ?? HIGHEST)
    if (value === NOT_SET) own.delete(name)
    else if (value >= LIMIT_MAX && value < NOT_SET) own.set(name, String(NOT_SET - 1n - value))
  }
  await store(admin, topic, before, own)
}

const settingsOf = async (admin: Admin, topic: string): Promise<Settings> => {
  const asked = { includeSynonyms: false, resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }] }
  const { resources } = await withRight('DescribeConfigs', `topic ${topic}`, admin.describeConfigs(asked))
  const entries = resources[0]?.configEntries ?? []
  const named = (found: typeof entries) =>
    new Map(found.map(({ configName, configValue }) => [configName, configValue]))
  return { own: named(entries.filter(({ configSource }) => configSource === OF_TOPIC)), all: named(entries) }
}

/** Kafka replaces all settings of a topic at once: those that stay are sent along. */
const store = async (
  admin: Admin,
  topic: string,
  before: ReadonlyMap<string, string>,
  wanted: ReadonlyMap<string, string>,
): Promise<void> => {
  if (before.size === wanted.size && [...wanted].every(([name, value]) => before.get(name) === value)) return
  const configEntries = [...wanted].map(([name, value]) => ({ name, value }))
  const resource = { type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configEntries }
  const altered = admin.alterConfigs({ validateOnly: false, resources: [resource] })
  await withRight('AlterConfigs', `topic ${topic}`, altered)
}

/** Kafka's number for a setting that the topic itself has. */
const OF_TOPIC = 1
