import { expect, test } from 'vitest'
import { indexIdsIn } from '../../../schemas/stored/index-ids.ts'

test('an index is identified by its UUID, and also by its history UUID, which a restore adds', () => {
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
