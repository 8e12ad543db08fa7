import { expect, test } from 'vitest'
import { AS_OF_MARGIN } from '../../../core/reading/limits.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import {
  assertLogReaches,
  assertOver,
  assertTimeArchived,
  boundsOf,
  requestedUntil,
} from '../../../tools/analysis/replay-bounds.ts'
import { addUntilOffset, parseInstant } from '../../../tools/commands/arguments.ts'

/** Not in the order of the partitions, as from Kafka. */
const ends = [
  { partition: 2, low: 0, end: 30 },
  { partition: 0, low: 0, end: 10 },
  { partition: 1, low: 0, end: 20 },
]
const none = new Map<number, number>()
const org = 'org_1'
const ours = partitionOf(org, 3)
const onlyOurs = (bound: number): number[] => [0, 1, 2].map(partition => (partition === ours ? bound : 0))

test('without a bound a replay goes to the current end of every partition', () => {
  expect(requestedUntil(undefined, undefined, 3)).toBeNull()
  expect(boundsOf(null, undefined, ends, none)).toEqual([10, 20, 30])
})

test('an offset is the first one left out; partitions without an offset go to their ends', () => {
  const asked = requestedUntil({ offsets: [...addUntilOffset('2:30'), ...addUntilOffset('0:0')] }, undefined, 3)
  expect(asked).toEqual({
    offsets: [
      [0, 0],
      [2, 30],
    ],
  })
  expect(boundsOf(asked, undefined, ends, none)).toEqual([0, 20, 30])
})

test('an offset beyond the end, or in a partition that does not exist, is refused', () => {
  expect(() => boundsOf({ offsets: [[1, 21]] }, undefined, ends, none)).toThrow('partition 1 ends at 20')
  expect(() => requestedUntil({ offsets: [{ partition: 3, offset: 0 }] }, undefined, 3)).toThrow('no partition 3')
})

test('an offset of an organization belongs to its partition, and to no other', () => {
  const offset = 7
  expect(requestedUntil({ offsets: [{ partition: undefined, offset }] }, org, 3)).toEqual({ offsets: [[ours, offset]] })
  expect(() => requestedUntil({ offsets: [{ partition: (ours + 1) % 3, offset }] }, org, 3)).toThrow(
    `in partition ${ours}, not in`,
  )
  expect(boundsOf({ offsets: [[ours, offset]] }, org, ends, none)).toEqual(onlyOurs(offset))
  expect(boundsOf(null, org, ends, none)).toEqual(onlyOurs((ours + 1) * 10))
})

test('a partition has one offset, also if one of two names it and the other does not', () => {
  const offsets = [...addUntilOffset('7', [...addUntilOffset(`${ours}:5`)])]
  expect(offsets).toHaveLength(2)
  expect(() => requestedUntil({ offsets }, org, 3)).toThrow(`expected one offset for partition ${ours}`)
})

test('a time goes up to the first later record, or to the end of the partition', () => {
  const later = new Map([
    [0, 4],
    [1, 25],
  ])
  expect(boundsOf({ time: '2026-01-01T00:00:00.000Z' }, undefined, ends, later)).toEqual([4, 20, 30])
})

test('a time is truncated to the millisecond, like the times of records', () => {
  expect(parseInstant('2026-02-01T00:00:00.1239Z')).toBe(Date.UTC(2026, 1, 1, 0, 0, 0, 123))
  expect(parseInstant('2026-02-01T01:00:00+01:00')).toBe(Date.UTC(2026, 1, 1))
  expect(parseInstant('1969-12-31T23:59:59.9999Z')).toBe(-1)
  expect(requestedUntil({ time: parseInstant('2026-02-01T01:00:00.1239+01:00') }, undefined, 3)).toEqual({
    time: '2026-02-01T00:00:00.123Z',
  })
})

test('an instant is over if each replayed partition has a later record, or after AS_OF_MARGIN', () => {
  const now = 1_800_000_000_000
  const later = new Map([
    [0, 9],
    [1, 19],
    [2, 29],
  ])
  const isOver = (time: number, of: ReadonlyMap<number, number>, only?: string) => () =>
    assertOver(time, only, ends, of, now, { open: [], unknown: [] })
  expect(isOver(now - 1, later)).not.toThrow()
  for (const [partition, end] of [
    [0, 10],
    [1, 20],
    [2, 31],
  ] as const) {
    // Kafka returns the end, or an offset past it, if no record is later.
    const without = new Map([...later, [partition, end]])
    const last = new Date(now - AS_OF_MARGIN).toISOString()
    expect(isOver(now - AS_OF_MARGIN + 1, without)).toThrow(
      `partition ${partition} can still get records of that time: use ${last} or an earlier time`,
    )
    expect(isOver(now - AS_OF_MARGIN, without)).not.toThrow()
    if (partition === ours) expect(isOver(now - 1, without, org)).toThrow('can still get records of that time')
    else expect(isOver(now - 1, without, org)).not.toThrow()
  }
})

test('an instant is not over in a partition that may hide records of that time, unless a later one can be read', () => {
  const now = 1_800_000_000_000
  const later = new Map([[ours, 0]])
  const isOver = (open: readonly number[], unknown: readonly number[], only?: string) => () =>
    assertOver(now - AS_OF_MARGIN, only, ends, later, now, { open, unknown })
  const other = (ours + 1) % 3
  expect(isOver([other], [])).toThrow(
    `a transaction is open in partition ${other}, which may hide records of that time`,
  )
  expect(isOver([], [other])).toThrow(`it is not known whether a transaction is open in partition ${other}`)
  expect(isOver([other], [other], org)).not.toThrow()
  expect(isOver([ours], [])).not.toThrow()
})

test('a log that ends before the bounds of a sandbox cannot continue it', () => {
  expect(() => assertLogReaches([10, 20, 30], ends, 'sandbox:s1')).not.toThrow()
  expect(() => assertLogReaches([10, 21, 30], ends, 'sandbox:s1')).toThrow(
    'sandbox:s1 goes up to 21 in partition 1: the log that is read ends at 20',
  )
})

test('only a later record in each replayed partition proves that an archive has all of a time', () => {
  const later = new Map([[1, 5]])
  expect(() => assertTimeArchived([1], later)).not.toThrow()
  expect(() => assertTimeArchived([1, 2], later)).toThrow('no record after that time in partition 2')
})
