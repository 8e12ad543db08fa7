import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BASE62, hasWrongChecksum, withChecksum } from '../../schemas/key-text.ts'
import { API_KEY_LENGTH_MAX, API_KEY_LENGTH_MIN } from '../../schemas/limits.ts'

const secret = fc
  .array(fc.constantFrom(...BASE62), { minLength: 43, maxLength: 43 })
  .map(digits => `ck_${digits.join('')}`)

describe('the checksum of a key', () => {
  test('is the CRC-32 of the text before it, in six base62 digits', () => {
    fc.assert(
      fc.property(secret, text => {
        const whole = withChecksum(text)
        const number = [...whole.slice(-6)].reduce((sum, digit) => sum * 62 + BASE62.indexOf(digit), 0)
        expect([whole.slice(0, -6), number]).toEqual([`${text}_`, crc32(text)])
        expect(hasWrongChecksum(whole)).toBe(false)
        expect(whole).toMatch(new RegExp(`^[A-Za-z0-9_-]{${API_KEY_LENGTH_MIN},${API_KEY_LENGTH_MAX}}$`))
      }),
    )
  })

  test('is wrong if one character is changed, at any place', () => {
    fc.assert(
      fc.property(secret, fc.nat({ max: 48 }), fc.constantFrom(...BASE62), (text, place, other) => {
        const whole = withChecksum(text)
        const at = place < 43 ? 3 + place : 4 + place
        fc.pre(whole[at] !== other)
        expect(hasWrongChecksum(whole.slice(0, at) + other + whole.slice(at + 1))).toBe(true)
      }),
    )
  })

  test.each([
    ['an older key of the command', `ck_${'0'.repeat(43)}`],
    ['an older key of a different length', `ck_${randomBytes(24).toString('hex')}`],
    ['another publisher’s key', 'payroll-export_2026-01-01_x'],
    ['a key with an underscore elsewhere', `ck_${'0'.repeat(42)}_${'0'.repeat(6)}`],
    ['a key that is too long', `ck_${'0'.repeat(43)}_${'0'.repeat(7)}`],
    ['a key with a hyphen', `ck_${'0'.repeat(42)}-_${'0'.repeat(6)}`],
  ])('is not checked in %s', (_, text) => {
    expect(hasWrongChecksum(text)).toBe(false)
  })
})
