/**
 * The logs that a close is made of, and where it ends in each partition. In: the control index, at the beginning and at
 * the end. Out: an error if another projection was made live meanwhile: a file could have records of one topic, and
 * another file those of the next.
 */
import { CommandError } from '../failures.ts'
import type { Live } from '../live.ts'
import type { CloseManifest } from './close-manifest.ts'

const fields = ['cluster_id', 'topic', 'topic_id', 'partitions', 'rules_version'] as const

/** @throws CommandError that names the first field that differs */
export const assertSameProjection = (before: Live, after: Live): void => {
  for (const stream of ['events', 'api-keys'] as const) {
    const [was, is] = [before[stream].identity, after[stream].identity]
    const field = fields.find(name => was[name] !== is[name])
    if (field === undefined) continue
    const what = `${field} of ${stream} was ${was[field]}, and is ${is[field]}`
    throw new CommandError(`another projection was made live meanwhile: ${what}: close again. Nothing is written`)
  }
}

/** Without a partition: in all that are not named. */
export type ParkedUntil = { readonly partition: number | undefined; readonly offset: number }

/**
 * Returns the first offset of each partition whose parked record is in no file. The own partition ends at the change.
 * Other partitions have no order with it: they end where an earlier close says it, or else at their published position.
 * @param until what an earlier close says; it had no records of a partition that it does not name
 * @throws CommandError for a partition that is no other one, and for an offset that is not projected yet
 */
export const parkedEndsOf = (
  published: readonly number[],
  { topic, partition: own, offset: end }: CloseManifest['position'],
  until: readonly ParkedUntil[] | undefined,
): number[] => {
  const last = published.length - 1
  const wrong = until?.find(({ partition }) => partition === own || (partition ?? 0) > last)?.partition
  if (wrong !== undefined) {
    const expected = `expected a partition of ${topic} up to ${last}, but not ${own}, which ends at the change`
    throw new CommandError(`--parked-until: ${expected}: got ${wrong}`)
  }
  const others = until?.find(({ partition }) => partition === undefined)?.offset ?? 0
  return published.map((reached, partition) => {
    if (partition === own) return end
    if (until === undefined) return reached
    const asked = until.find(named => named.partition === partition)?.offset ?? others
    if (asked <= reached) return asked
    const where = `${topic} is projected to ${reached} in partition ${partition}`
    throw new CommandError(`--parked-until: ${where}: expected at most that, got ${asked}`)
  })
}
