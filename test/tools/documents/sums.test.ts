import { expect, test } from 'vitest'
import { isSameAmount, subtract, total } from '../../../tools/documents/sums.ts'

test('sums are exact, and have the digits of the finest amount', () => {
  expect(total([])).toBe('0')
  expect(total(['0.10', '0.20'])).toBe('0.30')
  expect(total(['100.00', '-100'])).toBe('0.00')
  expect(total(['0.1', '0.2', '0.003'])).toBe('0.303')
  const large = `1${'0'.repeat(39)}.${'0'.repeat(39)}1`
  expect(total([large, large])).toBe(`2${'0'.repeat(39)}.${'0'.repeat(39)}2`)
})

test('a difference is the second amount minus the first', () => {
  expect([subtract('100.00', '110'), subtract('1.5', '1.25'), subtract('0', '-3')]).toEqual(['10.00', '-0.25', '-3'])
})

test('amounts are equal in any notation', () => {
  expect([isSameAmount('1.0', '1.00'), isSameAmount('1.0', '1.01')]).toEqual([true, false])
})
