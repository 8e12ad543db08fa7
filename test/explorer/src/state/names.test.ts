import { expect, test } from 'vitest'
import type { Period, Rep } from '../../../../client/src/index.ts'
import { marksOf, nameOfPeriod, namesAmong } from '../../../../explorer/src/state/names.ts'

const rep = (id: string, name: string, email: string | null) => ({ id, name, email }) as Rep

test('reps of one name are told apart by their addresses, and by their ids where an address tells nobody apart', () => {
  const reps = [
    rep('rep_1', 'Ada', 'ada@example.com'),
    rep('rep_2', 'Ada', null),
    rep('rep_3', 'Bo', 'bo@example.com'),
    rep('rep_4', 'Cy', 'team@example.com'),
    rep('rep_5', 'Cy', 'team@example.com'),
    // Of people who were forgotten: they have no name in common.
    rep('rep_6', '', null),
    rep('rep_7', '', null),
  ]
  expect(marksOf(reps, ({ email }) => email)).toEqual([
    ['rep_1', 'ada@example.com'],
    ['rep_2', 'rep_2'],
    ['rep_4', 'rep_4'],
    ['rep_5', 'rep_5'],
  ])
})

test('periods of one name are told apart by the dates of their begin, and by their ids if they begin on one day', () => {
  const period = (id: string, name: string, day: string) => ({ id, name, starts_at: `${day}T00:00:00+01:00` }) as Period
  const periods = [
    period('period_1', 'January', '2026-01-01'),
    period('period_2', 'January', '2025-01-01'),
    period('period_3', 'Year', '2026-01-01'),
    period('period_4', 'Start', '2026-01-01'),
    period('period_5', 'Start', '2026-01-01'),
  ]
  const names = namesAmong({ reps: [], periods, refused: [] })
  expect(periods.map(({ id }) => nameOfPeriod(names, id))).toEqual([
    'January (2026-01-01)',
    'January (2025-01-01)',
    'Year',
    'Start (period_4)',
    'Start (period_5)',
  ])
})
