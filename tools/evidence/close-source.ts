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
 * Returns the first offset of each partition whose parked record is in no file. The own partition ends at the change.
 * Other partitions have no order with it: they end where an earlier close says it, or else at their published position.
 * @param until what an earlier close says; it had no records of a partition that it does not name
 * @throws CommandError for a partition that is no other one of the topic, and for an offset that is not projected yet
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
  const wrong = until?.find(({ partition }) => partition === own || partition > last)?.partition
  if (wrong !== undefined) {
    const expected = `expected a partition of ${topic} up to ${last}, but not ${own}, which ends at the change`
    throw new CommandError(`--parked-until: ${expected}: got ${wrong}`)
  }
  return published.map((reached, partition) => {
    if (partition === own) return end
    if (until === undefined) return reached
    const asked = until.find(named => named.partition === partition)?.offset ?? 0
    if (asked <= reached) return asked
    const where = `${topic} is projected to ${reached} in partition ${partition}`
    throw new CommandError(`--parked-until: ${where}: expected at most that, got ${asked}`)
  })
}
