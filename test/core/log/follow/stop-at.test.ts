import { expect, test } from 'vitest'
import type { Consumption } from '../../../../core/log/follow/consume.ts'
import { endWithin, restingAt, upToBound } from '../../../../core/log/follow/stop-at.ts'
import { repsOf } from '../../../projector/running-flow.ts'

test('only the records of a batch before the bound are taken, and the batch ends at the bound', () => {
  const batch = repsOf(10, 5)
  const offsets = (bound: number) => {
    const { from, end, records } = upToBound(1, batch, [0, bound])
    return { from, end, offsets: records.map(({ offset }) => offset) }
  }
  expect(offsets(12)).toEqual({ from: 10, end: 12, offsets: [10, 11] })
  expect(offsets(10)).toEqual({ from: 10, end: 10, offsets: [] })
  expect(upToBound(1, batch, [0, 15])).toBe(batch)
  expect(upToBound(1, batch, undefined)).toBe(batch)
})

test('a batch with only control records ends at a bound between them', () => {
  expect(upToBound(0, { from: 10, end: 14, records: [] }, [12])).toEqual({ from: 10, end: 12, records: [] })
})

test('a batch from behind the bound is a gap for a reader at the bound', () => {
  expect(upToBound(0, repsOf(14, 3), [12])).toEqual({ from: 14, end: 14, records: [] })
})

test('a missing offset counts only before the bound', () => {
  const missingIn = (bound: number) => upToBound(0, { ...repsOf(10, 5), missing: 12 }, [bound]).missing
  expect([11, 12, 13, 15].map(missingIn)).toEqual([undefined, undefined, 12, 12])
})

test('a partition ends at its bound, if that comes first', () => {
  expect([endWithin(1, 20, [0, 12]), endWithin(1, 8, [0, 12]), endWithin(1, 20, undefined)]).toEqual([12, 8, 20])
})

test('a partition pauses at its bound, resumes before it, and is not touched otherwise', () => {
  const told: unknown[] = []
  const tell =
    (name: string) =>
    (...parameters: unknown[]): void =>
      void told.push([name, ...parameters])
  const consumption = { seek: tell('seek'), pause: tell('pause'), resume: tell('resume') } as unknown as Consumption
  const { seek } = restingAt([5, 12], consumption)
  const seeking = (partition: number, offset: number): unknown[] => {
    told.length = 0
    seek(partition, offset)
    return told.slice(1)
  }
  expect(seeking(1, 3)).toEqual([])
  expect(seeking(1, 12)).toEqual([['pause', 1]])
  expect(seeking(0, 0)).toEqual([])
  expect(seeking(1, 11)).toEqual([['resume', 1]])
  expect(seeking(1, 4)).toEqual([])
  expect(restingAt(undefined, consumption)).toBe(consumption)
})
