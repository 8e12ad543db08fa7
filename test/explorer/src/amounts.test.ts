import { Decimal } from 'decimal.js'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  addAmounts,
  drawnPositions,
  drawnShare,
  groupDigits,
  groupSigned,
  paddingFor,
  runningSums,
  subtractAmount,
  withEqualDecimals,
  withPlainMinus,
} from '../../../explorer/src/amounts.ts'
import { find, within } from '../../support/sources.ts'

/** Amounts as the contract allows them: up to 40 digits before the point and 40 after it. */
const digits = (most: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: most })
const anyAmount = fc.tuple(fc.boolean(), digits(40), fc.option(digits(40))).map(([isNegative, whole, fraction]) => {
  const text = `${whole.replace(/^0+(?=\d)/, '')}${fraction === null ? '' : `.${fraction}`}`
  return isNegative && /[1-9]/.test(text) ? `-${text}` : text
})

test.for([
  ['0', '0'],
  ['999', '999'],
  ['1000', '1,000'],
  ['-1000', '−1,000'],
  ['-999999.50', '−999,999.50'],
  ['1234567.5000', '1,234,567.5000'],
  ['0.123456789', '0.123456789'],
  ['99999999999999999999999999.01', '99,999,999,999,999,999,999,999,999.01'],
])('%s is shown as %s', ([amount = '', shown]) => {
  expect(groupDigits(amount)).toBe(shown)
})

test('groups have three digits, only commas are added to any amount, and a minus sign is one of print', () => {
  fc.assert(
    fc.property(anyAmount, amount => {
      const shown = groupDigits(amount)
      expect(withPlainMinus(shown).replaceAll(',', '')).toBe(amount)
      expect(shown).toMatch(/^−?\d{1,3}(?:,\d{3})*(?:\.\d+)?$/)
    }),
  )
})

test('a difference above zero has a plus sign, and zero has none', () => {
  expect(['1000.5', '-1000.5', '0', '0.00'].map(groupSigned)).toEqual(['+1,000.5', '−1,000.5', '0', '0.00'])
})

test('with its padding, each amount of a column ends as far behind its decimal point as the others', () => {
  expect(['5', '1.5', '1.500'].map((amount, _, all) => paddingFor(amount, all))).toEqual(['.000', '00', ''])
  fc.assert(
    fc.property(fc.array(anyAmount, { minLength: 1 }), column => {
      const behind = column.map(amount => `${amount}${paddingFor(amount, column)}`.replace(/^[^.]*/, '').length)
      expect(new Set(behind).size).toBe(1)
    }),
  )
})

test('sums have as many decimals as the longest, two at least, and none if all are whole', () => {
  expect(withEqualDecimals(['1034.6', '-2'])).toEqual(['1034.60', '-2.00'])
  expect(withEqualDecimals(['0.125', '1'])).toEqual(['0.125', '1.000'])
  expect(withEqualDecimals(['3', '0'])).toEqual(['3', '0'])
})

test('sums and differences are exact, and never in scientific notation', () => {
  expect(addAmounts(['0.1', '0.2'])).toBe('0.3')
  expect(addAmounts([])).toBe('0')
  expect(subtractAmount('99999999999999999999999999.01', '0.02')).toBe('99999999999999999999999998.99')
  expect(runningSums(['1.10', '-2.20', '0.0000000000000000000000000000000000000001'])).toEqual([
    '1.1',
    '-1.1',
    '-1.0999999999999999999999999999999999999999',
  ])
  const Exact = Decimal.clone({ precision: 200 })
  fc.assert(
    fc.property(anyAmount, anyAmount, (one, other) => {
      expect(addAmounts([subtractAmount(one, other), other])).toBe(new Exact(one).toFixed())
    }),
  )
})

test('a length in a picture keeps the sign, and nothing is a part of nothing', () => {
  expect([drawnShare('5', '10'), drawnShare('-5', '-10'), drawnShare('5', '0')]).toEqual([0.5, -0.5, 0])
})

test('no other code of the page makes a number of a text, or formats one', () => {
  const page = within('explorer/src')
  expect(page.length).toBeGreaterThan(10)
  const numbers = /\b(?:Number|parseFloat|parseInt)\b|\.toNumber\(|\.toLocaleString\(|\bIntl\b|[(=,:] *\+[a-z]/
  expect(find(page, 'code', numbers).map(found => found.replace(/:\d+:.*/, ''))).toEqual(['explorer/src/amounts.ts'])
})

test('no code of the page stores anything in the browser', () => {
  const stores = /\b(?:localStorage|sessionStorage|indexedDB|caches|cookie|cookieStore|serviceWorker|pushState)\b/
  expect(find(within('explorer/src'), 'code', stores)).toEqual([])
})

test('positions of a picture go from the lowest amount to the highest, and nothing alone is at the beginning', () => {
  expect(drawnPositions(['0', '10', '-10', '5'])).toEqual([0.5, 1, 0, 0.75])
  expect(drawnPositions(['0', '-4'])).toEqual([1, 0])
  expect(drawnPositions(['0', '0.00'])).toEqual([0, 0])
  expect(drawnPositions([])).toEqual([])
})
