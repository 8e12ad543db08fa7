/**
 * Ends a stream at a bound although its topic continues. Promises: no record at or after a partition's bound is taken,
 * and every record before it is. The position ends exactly at the bound, also if a batch extends past it. A partition
 * at its bound is paused. The bound is decided at the start of a replay, and stored with its options.
 */

import type { Batch } from '../../ledger/index.ts'
import type { Consumption } from './consume.ts'

/** By partition, the first offset that is not taken. */
export type Bounds = readonly number[]

/** Returns the part of a batch before the bound: empty if the batch begins there or later. */
export const upToBound = (partition: number, batch: Batch, bounds: Bounds | undefined): Batch => {
  const bound = boundOf(partition, bounds)
  if (batch.end <= bound) return batch
  const records = batch.records.filter(({ offset }) => offset < bound)
  const { from, missing, epoch } = batch
  const hole = missing !== undefined && missing < bound ? { missing } : {}
  return { from, end: Math.max(from, bound), records, ...hole, ...(epoch !== undefined && { epoch }) }
}

/** Returns the end of a partition or its bound, whichever comes first. */
export const endWithin = (partition: number, end: number, bounds: Bounds | undefined): number =>
  Math.min(end, boundOf(partition, bounds))

/**
 * Pauses a partition that is sought at its bound, until it is sought before it. A batch fetched meanwhile may begin at
 * the bound: it is taken empty. A later one is a gap, which causes another seek.
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
