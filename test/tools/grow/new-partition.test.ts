import fc from 'fast-check'
import { expect, test } from 'vitest'
import { partitionOf } from '../../../schemas/partition.ts'
import { formerPartitionOf, newPartitionOf } from '../../../tools/grow/new-partition.ts'

const keys = fc.option(fc.uint8Array({ maxLength: 12 }).map(bytes => Buffer.from(bytes)))
const growths = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }))
  .map(([before, more]) => ({ before, after: before + more }))

test('a record that was in the partition of its key is there again, one that was not stays parked, and one without a key stays where it was', () => {
  fc.assert(
    fc.property(keys, growths, fc.nat(), (key, growth, number) => {
      const was = number % growth.before
      const is = newPartitionOf({ key }, was, growth)
      expect(is).toBeLessThan(growth.after)
      if (key === null) expect(is).toBe(was)
      else expect(is === partitionOf(key, growth.after)).toBe(was === partitionOf(key, growth.before))
    }),
  )
})

test('where a record was is known from its key and where it is, and no record of another topic looks like one of them', () => {
  fc.assert(
    fc.property(keys, growths, fc.nat(), fc.nat(), (key, growth, number, other) => {
      const was = number % growth.before
      expect(formerPartitionOf({ key }, newPartitionOf({ key }, was, growth), growth)).toBe(was)
      const anywhere = other % growth.after
      const from = formerPartitionOf({ key }, anywhere, growth)
      const all = Array.from({ length: growth.before }, (_, partition) => partition)
      const possible = all.filter(partition => newPartitionOf({ key }, partition, growth) === anywhere)
      expect(from === undefined ? [] : [from]).toEqual(possible)
    }),
  )
})
