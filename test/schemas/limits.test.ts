import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as both from '../../schemas/limits.ts'
import { openapi } from '../../schemas/reference/openapi.ts'

test('the precision of sums is enough for every sum of lines', () => {
  const carried = String(both.LINE_ITEMS_MAX).length
  const digits = both.MONEY_INTEGER_DIGITS_MAX + both.MONEY_FRACTION_DIGITS_MAX + carried
  expect(both.MONEY_PRECISION).toBeGreaterThanOrEqual(digits)
})

test('the limits are those of the contract', () => {
  expect(both).toMatchObject({
    RECORD_VALUE_BYTES_MAX: 8 * 2 ** 20,
    TOPIC_MESSAGE_BYTES_MAX: 9 * 2 ** 20,
    DATA_DEPTH_MAX: 32,
    TEXT_LENGTH_MAX: 1_000,
    SEALED_TEXT_LENGTH_MAX: 8_000,
    LINE_ITEMS_MAX: 10_000,
    TRACE_STEPS_MAX: 100_000,
    CHAIN_LENGTH_MAX: 10_000,
    MONEY_INTEGER_DIGITS_MAX: 40,
    MONEY_FRACTION_DIGITS_MAX: 40,
    PAGE_LIMIT_MAX: 200,
    PAGE_LIMIT_DEFAULT: 50,
    PAGE_BYTES_MAX: 16 * 2 ** 20,
    WAIT_SECONDS_MAX: 60,
    API_KEY_LENGTH_MIN: 20,
    API_KEY_LENGTH_MAX: 200,
    UNTIL_FOREVER: 9_007_199_254_740_991,
  })
})

test('UNTIL_FOREVER is beyond every offset and survives JSON', () => {
  expect(JSON.parse(JSON.stringify(both.UNTIL_FOREVER))).toBe(both.UNTIL_FOREVER)
  expect(Number.isSafeInteger(both.UNTIL_FOREVER)).toBe(true)
})

test('the pages for readers name the longest wait as it is', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/reading.md'), 'utf8')
  for (const text of [page, JSON.stringify(openapi)]) expect(text).toMatch(`${both.WAIT_SECONDS_MAX} at most`)
})
