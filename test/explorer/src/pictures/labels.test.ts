import { expect, test } from 'vitest'
import { labelsOf } from '../../../../explorer/src/pictures/labels.ts'

test('instants of different days are labelled with their days', () => {
  expect(labelsOf(['2026-02-01T08:30:00Z', '2026-03-01T08:30:00+01:00'])).toEqual([['2026-02-01'], ['2026-03-01']])
  expect(labelsOf([])).toEqual([])
})

test('where two have the same day, each has its time of day, as short as it can be', () => {
  expect(labelsOf(['2026-02-01T08:30:00Z', '2026-02-01T09:30:00Z', '2026-02-02T08:30:00Z'])).toEqual([
    ['2026-02-01', '08:30'],
    ['2026-02-01', '09:30'],
    ['2026-02-02', '08:30'],
  ])
  expect(labelsOf(['2026-02-01T08:30:01.5Z', '2026-02-01T08:30:02-05:00'])).toEqual([
    ['2026-02-01', '08:30:01.5'],
    ['2026-02-01', '08:30:02'],
  ])
})

test('the same instant twice has two labels', () => {
  expect(labelsOf(['2026-02-01T08:30:00Z', '2026-02-01T08:30:00Z'])).toEqual([
    ['2026-02-01', '08:30, 1.'],
    ['2026-02-01', '08:30, 2.'],
  ])
})
