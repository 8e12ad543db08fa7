/** The end of a replay: the first offset of each partition that is not included. */

import type { Bounds, Ends, OpenThen } from '../../core/log/index.ts'
import { AS_OF_MARGIN } from '../../core/reading/index.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { SandboxBody } from '../../schemas/stored/sandboxes.ts'
import { CommandError } from '../failures.ts'

/** Without a partition: in the partition of the organization that is replayed. */
export type UntilOffset = { readonly partition: number | undefined; readonly offset: number }

export type Until = { readonly offsets: readonly UntilOffset[] } | { readonly time: number } | undefined

/** Returns the requested end in the form that is stored. A replay that continues must request the same end. */
export const requestedUntil = (until: Until, org: string | undefined, partitions: number): SandboxBody['until'] => {
  if (until === undefined) return null
  if ('time' in until) return { time: new Date(until.time).toISOString() }
  const ours = org === undefined ? undefined : partitionOf(org, partitions)
  const offsets = until.offsets.map(({ partition = ours, offset }): [number, number] => {
    if (partition === undefined) throw new CommandError('an offset without a partition needs --org')
    if (partition >= partitions)
      throw new CommandError(`there is no partition ${partition}: the topic has ${partitions}`)
    if (ours === undefined || partition === ours) return [partition, offset]
    throw new CommandError(`the records of ${org} are in partition ${ours}, not in ${partition}`)
  })
  const twice = offsets.find(([partition], index) => offsets.findIndex(([other]) => other === partition) < index)
  if (twice) throw new CommandError(`expected one offset for partition ${twice[0]}`)
  return { offsets: offsets.sort(([a], [b]) => a - b) }
}

/**
 * An instant is over in a partition that has a later record: the times of brokers never go back. Without a later record
 * the instant must be so old that no new record can get that time: `AS_OF_MARGIN`, as for `as_of` in the API. Records
 * that nobody can read yet may have an older time.
 * @param hidden the partitions that have such records, or may have some
 * @throws CommandError if the instant is not over in every replayed partition: the same replay could give another
 * result a moment later
 */
export const assertOver = (
  time: number,
  org: string | undefined,
  ends: Ends,
  firstLater: ReadonlyMap<number, number>,
  now: number,
  hidden: OpenThen,
): void => {
  const latestOver = now - AS_OF_MARGIN
  const ours = org === undefined ? undefined : partitionOf(org, ends.length)
  for (const { partition, end } of ends) {
    if (ours !== undefined && partition !== ours) continue
    if ((firstLater.get(partition) ?? end) < end) continue
    const last = new Date(latestOver).toISOString()
    if (time > latestOver)
      throw new CommandError(
        `partition ${partition} can still get records of that time: use ${last} or an earlier time`,
      )
    const which = `partition ${partition}, which may hide records of that time`
    if (hidden.open.includes(partition))
      throw new CommandError(`a transaction is open in ${which}: end it, and run the same again`)
    if (hidden.unknown.includes(partition))
      throw new CommandError(`it is not known whether a transaction is open in ${which}: run the same again later`)
  }
}

/**
 * An archive does not say when it was made, so only a later record in it proves that an instant is over.
 * @param replayed the partitions that are replayed
 * @throws CommandError if one of them has no later record: Kafka may have more records of that time
 */
export const assertTimeArchived = (replayed: readonly number[], firstLater: ReadonlyMap<number, number>): void => {
  const open = replayed.find(partition => !firstLater.has(partition))
  if (open === undefined) return
  const what = `the archive has no record after that time in partition ${open}, and may lack some before it`
  throw new CommandError(`${what}: archive again later, or say --until-offset`)
}

/** @throws CommandError if the end of a sandbox that was begun is after the end of the log */
export const assertLogReaches = (bounds: Bounds, ends: Ends, label: string): void => {
  for (const { partition, end } of ends) {
    const bound = bounds[partition] ?? 0
    if (bound <= end) continue
    throw new CommandError(
      `${label} goes up to ${bound} in partition ${partition}: the log that is read ends at ${end}`,
    )
  }
}

/**
 * Returns the first offset of each partition that is not replayed. Without a requested end it is the present end.
 * @param firstLater first offset of each partition whose record is later than the requested instant
 * @throws CommandError for an offset beyond the end
 */
export const boundsOf = (
  asked: SandboxBody['until'],
  org: string | undefined,
  ends: Ends,
  firstLater: ReadonlyMap<number, number>,
): Bounds => {
  const bounds = ends.map(() => 0)
  const ours = org === undefined ? undefined : partitionOf(org, ends.length)
  for (const { partition, end } of ends) {
    if (ours !== undefined && partition !== ours) continue
    const wanted = asked && 'offsets' in asked ? asked.offsets.find(([of]) => of === partition)?.[1] : undefined
    if (wanted !== undefined && wanted > end) {
      throw new CommandError(`partition ${partition} ends at ${end}: there is nothing at ${wanted} yet`)
    }
    bounds[partition] = wanted ?? Math.min(end, firstLater.get(partition) ?? end)
  }
  return bounds
}
