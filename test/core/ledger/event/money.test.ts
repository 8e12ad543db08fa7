import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addUpTo } from '../../../../core/ledger/event/money.ts'

/** Units of 10^-40. Exact, because decimal.js is what the test checks. */
const toUnits = (amount: string): bigint => {
  const [whole = '', fraction = ''] = amount.replace('-', '').split('.')
  const units = BigInt(whole + fraction.padEnd(40, '0'))
  return amount.startsWith('-') ? -units : units
}
const fromUnits = (units: bigint): string => {
  const digits = (units < 0n ? -units : units).toString().padStart(41, '0')
  return `${units < 0n ? '-' : ''}${digits.slice(0, -40)}.${digits.slice(-40)}`
}

test.each([
  [[], '0', true],
  [[], '0.00', true],
  [[], '0.01', false],
  [['1'], '1.000', true],
  [['0.1', '0.2'], '0.3', true],
  [['0.1', '0.2'], '0.30000000000000004', false],
  [['1.10', '-0.10'], '1', true],
  [['-5', '2'], '-3', true],
  [['9007199254740993', '1'], '9007199254740994', true],
  [['9007199254740993', '0'], '9007199254740992', false],
  [['9'.repeat(40), '1'], '9'.repeat(40), false],
  [['-100', '9007199254740993'], '9007199254740893', true],
  [['-100', '9007199254740993'], '9007199254740892', false],
  [['-1.00', '90071992547409.93', '1.00'], '90071992547409.93', true],
  [['-1.00', '90071992547409.93', '1.00'], '90071992547409.92', false],
  [['90071992547409.91'], '90071992547409.92', false],
  [['0.00', '-0.00'], '0.00', true],
  [['-0.00'], '0.00', true],
])('%j adds up to %s: %s', (amounts, total, expected) => {
  expect(addUpTo(amounts, total)).toBe(expected)
})

describe('sums are exact for the largest amounts', () => {
  const largest = `${'9'.repeat(40)}.${'9'.repeat(40)}`
  const smallest = `0.${'0'.repeat(39)}1`

  test('of 10,000 lines with 40 digits on each side of the point', () => {
    const lines = Array.from({ length: 10_000 }, () => largest)
    const total = fromUnits(10_000n * toUnits(largest))
    expect(addUpTo(lines, total)).toBe(true)
    expect(addUpTo(lines, fromUnits(toUnits(total) + 1n))).toBe(false)
    expect(addUpTo([...lines.slice(1), fromUnits(toUnits(largest) - 1n)], total)).toBe(false)
  })

  test('with one unit of the last place beside the largest amount', () => {
    expect(addUpTo([largest, smallest, `-${largest}`], smallest)).toBe(true)
    expect(addUpTo([largest, smallest, `-${largest}`], '0')).toBe(false)
    expect(addUpTo([largest, smallest], `1${'0'.repeat(40)}`)).toBe(true)
    expect(addUpTo([largest], `1${'0'.repeat(40)}`)).toBe(false)
  })
})

test('lines in cents, also beyond the precision of a double, add up to their exact sum and to no other', () => {
  const cent = 10n ** 38n
  const amount = fc.oneof(
    fc.bigInt({ min: -(10n ** 9n), max: 10n ** 9n }),
    fc.bigInt({ min: 2n ** 53n - 5n, max: 2n ** 53n + 5n }),
    fc.bigInt({ min: -(2n ** 53n) - 5n, max: -(2n ** 53n) + 5n }),
  )
  const inCents = (cents: bigint): string => fromUnits(cents * cent).slice(0, -38)
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 8 }), fc.bigInt({ min: -2n, max: 2n }), (lines, off) => {
      const sum = lines.reduce((total, line) => total + line, 0n)
      expect(addUpTo(lines.map(inCents), inCents(sum + off))).toBe(off === 0n)
    }),
    { numRuns: 2_000 },
  )
})

test('any lines add up to their exact sum and to no other', () => {
  const limit = 10n ** 80n - 1n
  const amount = fc.bigInt({ min: -limit, max: limit })
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 50 }), fc.bigInt({ min: -2n, max: 2n }), (lines, off) => {
      const sum = lines.reduce((total, line) => total + line, 0n)
      expect(addUpTo(lines.map(fromUnits), fromUnits(sum + off))).toBe(off === 0n)
    }),
  )
})
