/**
 * In: a generation with its positions, and an archive or a topic. Out: nothing, if it has what the generation has read.
 * Can go wrong: the first partition that has less, or another record at the position, is named. The topic, or that of
 *   the snapshot, is another one.
 */

import type { Admin } from 'kafkajs'
import { recordHash } from '../../core/ledger/index.ts'
import {
  describeSource,
  differingField,
  type Ends,
  endOfPartition,
  firstChanged,
  type KnownRecord,
  type LogReader,
  type Pause,
} from '../../core/log/index.ts'
import { formerTopicsIn, type Generations, readGeneration, readIndexIds } from '../../core/store/index.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  FIRST_GENERATION,
  type GenerationDocument,
  generationId,
  type PositionDocument,
} from '../../schemas/stored/documents.ts'
import type { CommandContext, KafkaContext } from '../context.ts'
import { CommandError } from '../failures.ts'
import { namesOf, readStored, recordedIdentityOf } from './generations.ts'

type HasRead = {
  readonly generation: { readonly _source: GenerationDocument }
  readonly positions: readonly { readonly _source: PositionDocument }[]
}

/**
 * @param redacted the hash of a record in the redacted log: the generation may have been adopted before
 * @throws CommandError unless the archive has what the generation has read, up to its position
 */
export const assertArchived = async (
  { generation, positions }: HasRead,
  archived: LogReader,
  redacted: (partition: number, offset: number) => string | undefined = () => undefined,
): Promise<void> => {
  const { generation: name, topic } = generation._source.body
  for (const [partition, { _source }] of positions.entries()) {
    const { position, last } = _source.body
    const { end } = await archived.read(partition, 0)
    if (position > end) {
      const what = `${name} has read partition ${partition} of ${topic} to offset ${position}, the archive ends at ${end}`
      throw new CommandError(`${what}. Nothing is changed`)
    }
    // After the last record come only holes.
    for (let offset = last?.offset ?? 0; offset < position; ) {
      const { entries } = await archived.read(partition, offset)
      for (const entry of entries.slice(0, position - offset)) {
        const expected = entry.offset === last?.offset ? last.sha256 : undefined
        const got = entry.kind === 'record' ? recordHash(entry) : undefined
        if (got === expected) continue
        if (expected !== undefined && redacted(partition, entry.offset) === expected) continue
        const what = `the archive has another record at offset ${entry.offset} of partition ${partition} of ${topic}`
        throw new CommandError(`${what} than ${name} has read. Nothing is changed`)
      }
      offset += entries.length
    }
  }
}

/** Whether a partition of a topic reaches a position, and has the last record before it, and none after that one. */
export const isInTopic = async (
  partition: number,
  known: KnownRecord,
  log: LogReader,
  ends: Ends,
  pause: Pause,
): Promise<boolean> =>
  known.position <= endOfPartition(partition, ends) && (await firstChanged(log, partition, known, pause)) === undefined

/**
 * Compares as a projector does before it goes on: the end of each partition, and the last record that was read.
 * @param ends read after the positions
 * @throws CommandError that says the next step
 */
export const assertInTopic = async (
  { generation, positions }: HasRead,
  log: LogReader,
  ends: Ends,
  pause: Pause,
): Promise<void> => {
  const name = generation._source.body.generation
  for (const [partition, { _source }] of positions.entries()) {
    if (await isInTopic(partition, _source.body, log, ends, pause)) continue
    const { position, last } = _source.body
    const end = endOfPartition(partition, ends)
    if (position > end) {
      const what = `${name} has read partition ${partition} of ${log.topic} to offset ${position}, the topic ends at ${end}`
      throw new CommandError(`${what}. ${MISSING}. Nothing is changed`)
    }
    const what = `partition ${partition} of ${log.topic} differs from offset ${last?.offset ?? 0} on from what`
    throw new CommandError(`${what} ${name} has read: was the log redacted? Add --redacted FILE. Nothing is changed`)
  }
}

const MISSING =
  'Restore an archive that reaches the position; if there is none, project again (docs/archive.md, "The archive ends before the projection")'

/** @throws CommandError if the topics are other ones: a projector would refuse them */
export const assertItsSource = async (
  name: string,
  topics: KafkaContext['topics'],
  admin: Admin,
  context: KafkaContext,
): Promise<void> => {
  const stored = await readStored<GenerationDocument>(generationId(name), context)
  const topic = topics[name === API_KEYS_GENERATION ? 'api-keys' : 'events']
  const source = await describeSource(admin, topic)
  const expected = stored?._source.body ?? source
  const field = differingField(expected, source)
  if (field !== 'cluster_id' && field !== 'topic_id') return
  const [had, has] = [`${name} was made from ${expected[field]}`, `${topic} has ${field} ${source[field]}`]
  const what = `no index was replaced, but ${has}, and ${had}`
  throw new CommandError(
    `${what}. For restored topics: npx commission projection adopt --archive DIR. Nothing is changed`,
  )
}

/**
 * A snapshot from before `grow --swap` has the old topic as the source of its live generation. Only the new topic has
 * the events since that swap, and only the operator knows whether there was one.
 * @throws CommandError if the control index was restored, and has a generation of a topic that nobody has swapped to
 */
export const refuseBeforeGrown = async (all: Generations, context: CommandContext): Promise<void> => {
  const steps = { request: context.send, prefix: context.prefix }
  const { topic, indices } = await recordedIdentityOf(all.live, context)
  const control = controlIndexOf(context.prefix)
  if ((await readIndexIds([], steps))[control] === indices?.[control]) return
  const known = new Map<string, GenerationDocument['body'] | undefined>()
  for (const name of namesOf(all)) known.set(name, await readGeneration(name, steps))
  // The one that grow makes was never live. It can have a lower number than the live one.
  const wasLive = (name: string) => name === all.live || name === FIRST_GENERATION || name in all.independentFrom
  // By id: a name can be used again, except that of the live topic, which is there.
  const swappedTo = [
    ...formerTopicsIn(all).map(({ topic_id }) => topic_id),
    ...[...known].map(([name, of]) => (wasLive(name) ? of?.topic_id : undefined)),
  ]
  const isKnown = ({ topic: other, topic_id: id }: GenerationDocument['body']) =>
    other === topic || (id !== undefined && swappedTo.includes(id))
  for (const [name, other] of known) {
    // One that was only begun can be of any topic.
    if (other === undefined ? name !== all.building : wasLive(name) || isKnown(other)) continue
    const [beside, where] = [other?.topic ?? 'an unknown topic', other?.topic ?? 'the new topic']
    const what = `this snapshot has ${all.live} of ${topic} live, and ${name} of ${beside} beside it. ${GROWN} ${where}`
    throw new CommandError(`${what}: never delete it, ${PROJECT_IT}. Else: npx commission projection drop ${name}`)
  }
}

const GROWN = 'If grow --swap has ended since, the events since then are only in'
const PROJECT_IT = 'and project it under another prefix (docs/generations.md, "A snapshot from before grow --swap")'
