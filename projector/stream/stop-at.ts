/**
 * Where a stream ends although its topic goes on.
 * Promises: a record at the bound of a partition, or behind it, is never taken. Every record before the bound is taken,
 * and the position then ends exactly at the bound, also where a batch goes past it. A partition that has reached its
 * bound is not read on.
 */

import type { Batch } from '../flow/queue.ts'
import type { Consumption } from './consume.ts'

/** The first offset that is not taken any more, by partition, in order. */
export type Bounds = readonly number[]

/** The part of a batch that lies before the bound; of one that begins behind it there is nothing left. */
export const upToBound = (partition: number, batch: Batch, bounds: Bounds | undefined): Batch => {
  const bound = boundOf(partition, bounds)
  if (batch.end <= bound) return batch
  const records = batch.records.filter(({ offset }) => offset < bound)
  const { from, missing } = batch
  return { from, end: Math.max(from, bound), records, ...(missing !== undefined && missing < bound && { missing }) }
}

/** Where a partition ends, or its bound where that comes first. */
export const endWithin = (partition: number, end: number, bounds: Bounds | undefined): number =>
  Math.min(end, boundOf(partition, bounds))

/**
 * The same consumption, which rests where it is sought at a bound, until it is sought before it. What was fetched
 * meanwhile begins behind where the partition is: a gap, because of which it is sought again.
 */
export const restingAt = (bounds: Bounds | undefined, consumption: Consumption): Consumption => {
  if (bounds === undefined) return consumption
  const resting = new Set<number>()
  return {
    ...consumption,
    seek: (partition, offset) => {
      consumption.seek(partition, offset)
      if (offset >= boundOf(partition, bounds)) {
        resting.add(partition)
        consumption.pause(partition)
      } else if (resting.delete(partition)) consumption.resume(partition)
    },
  }
}

const boundOf = (partition: number, bounds: Bounds | undefined): number =>
  bounds?.[partition] ?? Number.POSITIVE_INFINITY
