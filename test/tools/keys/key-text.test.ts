import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hasWrongChecksum } from '../../../schemas/key-text.ts'
import { isId } from '../../../schemas/values.ts'
import { newKeyId, newKeyText, publishedOf } from '../../../tools/keys/key-text.ts'

const BYTES = 32

test('the text of a key is ck_, 43 characters that encode every bit of its bytes, and a checksum', () => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  fc.assert(
    fc.property(fc.uint8Array({ minLength: BYTES, maxLength: BYTES }), bytes => {
      const text = newKeyText(Buffer.from(bytes))
      expect(text).toMatch(/^ck_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/)
      expect(hasWrongChecksum(text)).toBe(false)
      const number = [...text.slice(3, 46)].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n)
      expect(number.toString(16).padStart(2 * BYTES, '0')).toBe(Buffer.from(bytes).toString('hex'))
    }),
  )
  expect(newKeyText(Buffer.alloc(BYTES))).toMatch(new RegExp(`^ck_${'0'.repeat(43)}_`))
  expect(newKeyText(Buffer.alloc(BYTES, 0xff))).toHaveLength(53)
})

test('each key is different, and each id is a valid key id', () => {
  const texts = new Set(Array.from({ length: 1_000 }, () => newKeyText()))
  const ids = new Set(Array.from({ length: 1_000 }, () => newKeyId()))
  expect([texts.size, ids.size]).toEqual([1_000, 1_000])
  for (const id of ids) expect(isId('key', id)).toBe(true)
})

test('only the SHA-256 and the last four characters of a key are published', () => {
  const text = newKeyText()
  const secret_sha256 = createHash('sha256').update(text).digest('hex')
  expect(publishedOf(text)).toEqual({ secret_sha256, last4: text.slice(-4) })
})
