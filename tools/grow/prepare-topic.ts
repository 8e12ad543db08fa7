/** The new topic of `commission grow`: made if it is missing, and as safe as the one before. */
import type { Admin } from 'kafkajs'
import {
  checkTopicConfiguration,
  createEventsTopic,
  describeSource,
  readDurability,
  type Source,
  TIMES_OF_PUBLISHERS,
  weakerThan,
} from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import type { KafkaContext } from '../context.ts'
import { CommandError } from '../failures.ts'

type PrepareTopicSteps = Pick<KafkaContext, 'topics' | 'say' | 'sleep'> & {
  readonly topicSettings: Parameters<typeof createEventsTopic>[2]
}

/** Creates the topic if it is missing. @throws CommandError, StopError if it cannot be the new one */
export const prepareTopic = async (
  { to, partitions }: { readonly to: string; readonly partitions: number | undefined },
  { topic: from, partitions: before }: Source,
  admin: Admin,
  { topics, topicSettings, say, sleep }: PrepareTopicSteps,
): Promise<Source> => {
  if (to === topics['api-keys']) throw new CommandError(`${to} is the topic of API keys`)
  if (partitions !== undefined && partitions <= before) {
    throw new CommandError(`--partitions: expected more than ${before}, as ${from} has, got ${partitions}`)
  }
  const durability = await readDurability(admin, from)
  if (partitions !== undefined) {
    await createEventsTopic(to, partitions, topicSettings, durability, { admin, sleep, say })
  }
  const target = await describeSource(admin, to).catch((error: unknown) => {
    if (!(error instanceof StopError) || error.code !== 'topic_missing') throw error
    throw new CommandError(`${to} is not there: say how many --partitions it gets`)
  })
  if (target.partitions <= before || (partitions ?? target.partitions) !== target.partitions) {
    const expected = partitions === undefined ? `more than ${before}` : `${partitions}`
    throw new CommandError(`${to}: expected ${expected} partitions, got ${target.partitions}`)
  }
  const weaker = weakerThan(durability, await readDurability(admin, to))
  if (weaker.length > 0) {
    throw new CommandError(`${to} would keep the records less safely than ${from}: ${weaker.join('; ')}`)
  }
  const warnings = await checkTopicConfiguration(admin, to, topicSettings.KAFKA_MAX_MESSAGE_BYTES)
  for (const warning of warnings) if (warning !== TIMES_OF_PUBLISHERS) say(`${to}: ${warning}`)
  return target
}
