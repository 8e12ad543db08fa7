/**
 * The logs that a close is made of, and where it ends in each partition. In: the control index, at the beginning and at
 * the end. Out: an error if another projection was made live meanwhile: a file could have records of one topic, and
 * another file those of the next. The same if documents were missing for a time.
 */
import { isDeepStrictEqual } from 'node:util'
import { CommandError } from '../failures.ts'
import { copyIn, type LiveProjection } from '../live.ts'
import type { RecordPosition } from '../parked/find.ts'
import type { CloseManifest } from './close-manifest.ts'

const fields = ['cluster_id', 'topic', 'topic_id', 'partitions', 'rules_version'] as const

/** @throws CommandError that names the first difference */
export const assertSameProjection = (before: LiveProjection, after: LiveProjection): void => {
  for (const stream of ['events', 'api-keys'] as const) {
    const [was, is] = [before.live[stream].identity, after.live[stream].identity]
    const field = fields.find(name => was[name] !== is[name])
    if (field !== undefined) {
      const what = `${field} of ${stream} was ${was[field]}, and is ${is[field]}`
      throw new CommandError(`another projection was made live meanwhile: ${what}: close again. Nothing is written`)
    }
    if (isDeepStrictEqual(copyIn(before, stream), copyIn(after, stream))) continue
    const what = `${stream} was read again meanwhile, after adopt or rewind, or ids of its shards were recorded, or a wrong clock was corrected, or another generation was made live`
    throw new CommandError(`${what}: close again. Nothing is written`)
  }
}

/**
 * Returns the first offset of each partition whose parked record is in no file: where an earlier close says it, or else
 * the published position. A record that was parked after the last change may be of the period, and changed nothing.
 * @param until what an earlier close says; of a partition that it does not name it had no records, of the own partition
 *   those before the change
 * @throws CommandError if the topic lacks a partition, or an offset is before the change or not projected yet
 */
export const parkedEndsOf = (
  published: readonly number[],
  { topic, partition: own, offset: end }: CloseManifest['position'],
  until: readonly RecordPosition[] | undefined,
): number[] => {
  const last = published.length - 1
  const moved = until?.find(named => named.topic !== topic)
  if (moved !== undefined) {
    const advice = 'after commission grow records have other positions, and a close of before cannot be made again'
    throw new CommandError(`--parked-until: expected positions of ${topic}, got one of ${moved.topic}: ${advice}`)
  }
  const wrong = until?.find(({ partition }) => partition > last)?.partition
  if (wrong !== undefined) {
    throw new CommandError(`--parked-until: expected a partition of ${topic} up to ${last}: got ${wrong}`)
  }
  return published.map((reached, partition) => {
    const least = partition === own ? end : 0
    if (until === undefined) return Math.max(reached, least)
    const asked = until.find(named => named.partition === partition)?.offset ?? least
    if (asked < least) {
      throw new CommandError(`--parked-until: partition ${partition} has the change before ${least}: got ${asked}`)
    }
    if (asked <= Math.max(reached, least)) return asked
    const where = `${topic} is projected to ${reached} in partition ${partition}`
    throw new CommandError(`--parked-until: ${where}: expected at most that, got ${asked}`)
  })
}
