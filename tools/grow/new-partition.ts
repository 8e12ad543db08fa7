/**
 * The partition of a record in a topic with more partitions, and the way back.
 * Promises: all records of an organization that were in its partition are in its partition again, so they keep their
 * order. A record that was in another partition is in another one again: it stays parked as `partition_mismatch`. A
 * record without a key stays in its partition. From where a record is, and its key, one can tell where it was.
 */
import { partitionOf } from '../../schemas/partition.ts'

/** The number of partitions before and after; after is more. */
export type PartitionNumbers = { readonly before: number; readonly after: number }

type Keyed = { readonly key: Buffer | null }

export const newPartitionOf = ({ key }: Keyed, partition: number, { before, after }: PartitionNumbers): number => {
  if (key === null) return partition
  const own = partitionOf(key, after)
  if (partitionOf(key, before) === partition) return own
  // The last partition is new: no record stays in it.
  return partition === own ? after - 1 : partition
}

/** Returns the partition in which a record was before; undefined if `newPartitionOf` puts no such record here. */
export const formerPartitionOf = ({ key }: Keyed, partition: number, growth: PartitionNumbers): number | undefined => {
  const was = mayHaveBeen({ key }, partition, growth)
  return was < growth.before && newPartitionOf({ key }, was, growth) === partition ? was : undefined
}

const mayHaveBeen = ({ key }: Keyed, partition: number, { before, after }: PartitionNumbers): number => {
  if (key === null) return partition
  const own = partitionOf(key, after)
  if (partition === own) return partitionOf(key, before)
  return partition === after - 1 ? own : partition
}
