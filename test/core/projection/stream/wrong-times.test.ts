import { expect, test } from 'vitest'
import { WRONG_TIMES_LOGGED } from '../../../../core/projection/limits.ts'
import { createWrongTimes } from '../../../../core/projection/stream/wrong-times.ts'
import { record } from '../../../projector/records.ts'

const NOW = Date.UTC(2026, 0)

const given = () => {
  const lines: object[] = []
  const name = createWrongTimes('t', { now: () => NOW, warn: details => lines.push(details) })
  return {
    lines,
    take: (from: number, ...times: number[]) => {
      const records = times.map((timestamp, index) => record({ offset: from + index, timestamp }))
      name(3, { from, end: from + times.length, records })
    },
  }
}

test('a record with a time ahead of the clock, or with none, is named by topic, partition and offset', () => {
  const { lines, take } = given()
  take(0, NOW, NOW * 1000, NOW - 86_400_000, -1, NOW + 5_000, NOW + 5_001, 0, 1_700_000_000)
  expect(lines).toMatchObject([1, 3, 5, 6, 7].map(offset => ({ topic: 't', partition: 3, offset })))
})

test('a process names a few such records, and the last line says that no more come', () => {
  const { lines, take } = given()
  for (let batch = 0; batch < 5; batch++) take(batch * 9, ...Array<number>(9).fill(NOW * 1000))
  expect(lines).toHaveLength(WRONG_TIMES_LOGGED)
  expect(lines.at(-1)).toMatchObject({ more: 0 })
})

test('a batch that is read again names its records once', () => {
  const { lines, take } = given()
  for (let again = 0; again < 3; again++) take(0, NOW * 1000, NOW, -1)
  expect(lines).toMatchObject([{ offset: 0 }, { offset: 2 }])
})
