import { describe, expect, test } from 'vitest'
import { midnight, spansOf } from '../../../demo/data/calendar.ts'

const zones = { month: 'Europe/Berlin', quarter: 'Asia/Kolkata', year: 'America/Chicago' }

describe('a boundary is midnight in its time zone, with the UTC offset at that instant', () => {
  test.for([
    ['Europe/Berlin', 2024, 3, '2024-03-01T00:00:00+01:00'],
    ['Europe/Berlin', 2024, 4, '2024-04-01T00:00:00+02:00'],
    ['Europe/London', 2024, 4, '2024-04-01T00:00:00+01:00'],
    ['Europe/London', 2024, 12, '2024-12-01T00:00:00Z'],
    ['America/Chicago', 2024, 3, '2024-03-01T00:00:00-06:00'],
    ['America/Chicago', 2024, 4, '2024-04-01T00:00:00-05:00'],
    ['Asia/Kolkata', 2024, 13, '2025-01-01T00:00:00+05:30'],
    // The clocks change two hours after this midnight.
    ['Australia/Lord_Howe', 2018, 4, '2018-04-01T00:00:00+11:00'],
  ] as const)('%s, month %i/%i', ([timezone, year, month, text]) => {
    expect(midnight(timezone, year, month)).toEqual({ text, at: Date.parse(text) })
  })
})

test('every period begins where the previous one of its kind ends', () => {
  const spans = spansOf({ zones, yearBegins: 4 }, 2020, 3)
  for (const kind of ['month', 'quarter', 'year'] as const) {
    const ofKind = spans.filter(span => span.kind === kind)
    expect(ofKind.slice(1).map(({ starts_at }) => starts_at)).toEqual(ofKind.slice(0, -1).map(({ ends_at }) => ends_at))
    expect(ofKind.every(({ from, to }) => from < to)).toBe(true)
  }
  expect(spans).toHaveLength(36 + 12 + 3)
})

test('periods have readable names', () => {
  const names = spansOf({ zones, yearBegins: 4 }, 2020, 1).map(({ name }) => name)
  expect(names).toContain('January 2020')
  expect(names).toContain('FY 2020/2021')
  const quarters = (yearBegins: number): string[] =>
    spansOf({ zones, yearBegins }, 2020, 1).flatMap(({ kind, name }) => (kind === 'quarter' ? [name] : []))
  // A quarter is one of its year, and that year can begin in April: its fourth quarter begins in January.
  expect(quarters(4)).toEqual(['Q1 FY 2020/2021', 'Q2 FY 2020/2021', 'Q3 FY 2020/2021', 'Q4 FY 2020/2021'])
  expect(quarters(1)).toEqual(['Q1 2020', 'Q2 2020', 'Q3 2020', 'Q4 2020'])
})
