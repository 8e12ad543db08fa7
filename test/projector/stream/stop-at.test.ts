import { expect, test } from 'vitest'
import type { Consumption } from '../../../projector/stream/consume.ts'
import { endWithin, restingAt, upToBound } from '../../../projector/stream/stop-at.ts'
import { repsOf } from '../running-flow.ts'

test('of a batch only what lies before the bound is taken, and it ends exactly there', () => {
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

test('a batch of control records alone ends at a bound that lies among them', () => {
  expect(upToBound(0, { from: 10, end: 14, records: [] }, [12])).toEqual({ from: 10, end: 12, records: [] })
})

test('a batch from behind the bound is a gap for whoever is at the bound, not one that fits', () => {
  expect(upToBound(0, repsOf(14, 3), [12])).toEqual({ from: 14, end: 14, records: [] })
})

test('a hole counts before the bound only', () => {
  const missingIn = (bound: number) => upToBound(0, { ...repsOf(10, 5), missing: 12 }, [bound]).missing
  expect([11, 12, 13, 15].map(missingIn)).toEqual([undefined, undefined, 12, 12])
})

test('a partition ends at its bound, where that comes first', () => {
  expect([endWithin(1, 20, [0, 12]), endWithin(1, 8, [0, 12]), endWithin(1, 20, undefined)]).toEqual([12, 8, 20])
})

test('a partition rests at its bound, is read again from before it, and is left alone otherwise', () => {
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
