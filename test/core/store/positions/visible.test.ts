/** Which records a reader at a published position sees: core/store/positions/position.ts. */
import { expect, test } from 'vitest'
import { isReplaced, isVisible } from '../../../../core/store/positions/position.ts'

const position = { publishedTo: 10 }

test('everything before the published position is visible', () => {
  expect([8, 9, 10, 11].map(seq => isVisible(seq, position))).toEqual([true, true, false, false])
})

test('a record is replaced only by a visible one', () => {
  expect([9, 10, Number.MAX_SAFE_INTEGER].map(until => isReplaced(until, position))).toEqual([true, false, false])
})
