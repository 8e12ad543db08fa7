import { expect, test } from 'vitest'
import type { Rep } from '../../../../client/src/index.ts'
import { marksOf } from '../../../../explorer/src/state/namesakes.ts'

const rep = (id: string, name: string, email: string | null) => ({ id, name, email }) as Rep

test('reps of one name are told apart by their addresses, and by their ids where an address tells nobody apart', () => {
  const marks = marksOf([
    rep('rep_1', 'Ada', 'ada@example.com'),
    rep('rep_2', 'Ada', null),
    rep('rep_3', 'Bo', 'bo@example.com'),
    rep('rep_4', 'Cy', 'team@example.com'),
    rep('rep_5', 'Cy', 'team@example.com'),
    // Of people who were forgotten: they have no name in common.
    rep('rep_6', '', null),
    rep('rep_7', '', null),
  ])
  expect([...marks]).toEqual([
    ['rep_1', 'ada@example.com'],
    ['rep_2', 'rep_2'],
    ['rep_4', 'rep_4'],
    ['rep_5', 'rep_5'],
  ])
})
