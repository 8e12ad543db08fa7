import { expect, test } from 'vitest'
import { indexIdsIn } from '../../../schemas/stored/index-ids.ts'

test('an index is known by its UUID, and after a restore over it also by its history', () => {
  const answer = {
    a: { settings: { index: { uuid: 'u' } } },
    b: { settings: { index: { uuid: 'u', history: { uuid: 'h' } } } },
    c: { settings: {} },
  }
  expect(indexIdsIn(answer)).toEqual(
    new Map([
      ['a', 'u'],
      ['b', 'u/h'],
    ]),
  )
})
