import { Decimal } from 'decimal.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { eventSchemas } from '../../schemas/events.ts'
import { resources } from '../../schemas/resources.ts'
import { compile } from '../../schemas/validate.ts'
import { Currency, Id, idPrefixes, isId, Money, Nullable, Text } from '../../schemas/values.ts'
import { table } from './table.ts'

describe('money', () => {
  table(
    Money,
    [
      '0',
      '0.00',
      '-1',
      '-0.01',
      '1234.5000',
      '10',
      '-10.10',
      '9'.repeat(40),
      `-${'9'.repeat(40)}`,
      `0.${'0'.repeat(39)}1`,
      `${'9'.repeat(40)}.${'9'.repeat(40)}`,
    ],
    [
      '',
      '-',
      '-0',
      '-0.0',
      '-0.00',
      `-0.${'0'.repeat(40)}`,
      '+1',
      '01',
      '-01',
      '00',
      '00.1',
      '.5',
      '-.5',
      '5.',
      '1.2.3',
      '1e5',
      '1E5',
      '0x10',
      '0b1',
      '0o7',
      'NaN',
      'Infinity',
      '-Infinity',
      '1,000',
      '1_000',
      '1 000',
      ' 1',
      '1 ',
      '1\n',
      '\n1',
      '1\n2',
      '1\r',
      '1\u2028',
      '\u{feff}1',
      '--1',
      '−1',
      '٣',
      '１',
      '1٫5',
      '€1',
      '1\u0000',
      '9'.repeat(41),
      `1${'0'.repeat(40)}`,
      `0.${'0'.repeat(40)}1`,
      1,
      0,
      -0,
      1.5,
      null,
      true,
      ['1'],
      { amount: '1' },
    ],
  )

  const validate = compile(Money)

  test('every accepted text is a decimal that decimal.js reads as the same value', () => {
    const digits = (max: number) => fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: max })
    const decimalText = fc
      .tuple(fc.boolean(), digits(42), fc.option(digits(42)))
      .map(([minus, whole, fraction]) => `${minus ? '-' : ''}${whole}${fraction === null ? '' : `.${fraction}`}`)
    const anyText = fc.string({ unit: fc.constantFrom(...'0019-+.eE xN\n٣'), maxLength: 8 })
    const Exact = Decimal.clone({ precision: 200, toExpPos: 9e15, toExpNeg: -9e15 })

    fc.assert(
      fc.property(fc.oneof(decimalText, anyText), text => {
        if (!validate(text)) return
        const [whole = '', fraction = ''] = text.split('.')
        expect(new Exact(text).toFixed(fraction.length)).toBe(text)
        expect(whole.replace('-', '').length).toBeLessThanOrEqual(40)
        expect(fraction.length).toBeLessThanOrEqual(40)
      }),
      { numRuns: 2_000 },
    )
  })

  test('no pattern has a look-around: the regular expressions of Go and Rust have none', () => {
    const schemas = JSON.stringify([eventSchemas, resources])
    expect(schemas).toContain('"pattern":"^-?')
    expect(schemas).not.toMatch(/\(\?[=!<](?!:)/)
  })

  test('every decimal with at most 40 digits on each side is accepted, except minus zero', () => {
    const part = fc.bigInt({ min: 0n, max: 10n ** 40n - 1n })
    fc.assert(
      fc.property(fc.boolean(), part, part, fc.nat(40), (minus, whole, fraction, places) => {
        const decimals = places === 0 ? '' : `.${fraction.toString().padStart(40, '0').slice(0, places)}`
        const text = `${minus ? '-' : ''}${whole}${decimals}`
        expect(validate(text)).toBe(!(minus && new Decimal(text).isZero()))
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('ids', () => {
  table(
    Id('payout'),
    ['payout_1', 'payout_0aZ', `payout_${'a'.repeat(64)}`],
    [
      'payout_',
      `payout_${'a'.repeat(65)}`,
      'payroll_1',
      'Payout_1',
      'payout-1',
      'payout_a_b',
      'payout_a-b',
      'payout_é',
      'payout_1\n',
      ' payout_1',
      'xpayout_1',
      '',
      null,
      1,
    ],
  )

  test('every prefix has its own ids', () => {
    for (const prefix of idPrefixes) {
      for (const other of idPrefixes) expect(isId(prefix, `${other}_1`)).toBe(other === prefix)
    }
  })
})

describe('currency', () => {
  table(Currency, ['EUR', 'XXX'], ['eur', 'EURO', 'EU', '', 'EU1', 'EUR\n', 'ÄÖÜ', null])
})

describe('texts', () => {
  table(
    Text,
    ['', ' ', 'a\nb', '\u0000', 'x'.repeat(1_000), '😀'.repeat(1_000), 'é', '\u{feff}', 'e\u0301'],
    ['x'.repeat(1_001), '😀'.repeat(1_001), '\ud800', 'a\udc00b', '\udc00\ud800', `${'😀'.repeat(999)}\ud83d`, null, 1],
  )
})

describe('nullable values', () => {
  table(Nullable(Money), ['1', null], ['', 'null', 0, undefined])
})
