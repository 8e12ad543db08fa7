import { expect, test } from 'vitest'
import type { Period, Rep } from '../../../../client/src/index.ts'
import { marksOf, nameOfPeriod, nameOfRep, namesAmong, shownName } from '../../../../explorer/src/state/names.ts'

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

test('names that look the same get marks, whatever their characters are', () => {
  const looks = [
    'Zo\u00eb  A',
    'Zoe\u0308 A',
    ' Zo\u00eb\n\u00a0A',
    'Zo\u00eb\u200b A',
    'Zo\u00eb A\u200d',
    'Zo\u00eb A\u202e',
  ]
  const reps = looks.map((name, at) => rep(`rep_${at}`, name, at === 0 ? 'a@example.com' : null))
  const names = namesAmong({ reps, periods: [], refused: [] })
  expect(reps.map(({ id }) => nameOfRep(names, id).replace('\u200d', ''))).toEqual(
    reps.map(({ id, email }) => `Zo\u00eb A (${email ?? id})`),
  )
})

test('a name with a ligature looks as the one with its letters, and is shown as it is', () => {
  const reps = ['Steffi', 'Ste\ufb03'].map((name, at) => rep(`rep_${at}`, name, null))
  const names = namesAmong({ reps, periods: [], refused: [] })
  expect(reps.map(({ id }) => nameOfRep(names, id))).toEqual(['Steffi (rep_0)', 'Ste\ufb03 (rep_1)'])
})

test('a name that nobody sees is shown as its id, and gets no mark', () => {
  const reps = [' ', '\u200b', '\u202e', '\u200d', '\u2800', '\u3164', '\ufeff\u00a0'].map((name, at) =>
    rep(`rep_${at}`, name, null),
  )
  const names = namesAmong({ reps, periods: [], refused: [] })
  expect(reps.map(({ id }) => nameOfRep(names, id))).toEqual(reps.map(({ id }) => id))
})

test('a name has no character that turns the text beside it; letters and emoji stay joined', () => {
  for (const turned of '\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069')
    expect(shownName(`A${turned}da`)).toBe('Ada')
  for (const name of [
    '\ud83d\udc69\u200d\ud83d\udcbb',
    '\u2764\ufe0f',
    '\u0639\u0644\u06cc\u200c\u0631\u0636\u0627',
    '\u5f20\u4e09',
  ])
    expect(shownName(name)).toBe(name)
})
