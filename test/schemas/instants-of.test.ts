import { expect, test } from 'vitest'
import { instantOf, instantToNanoseconds } from '../../schemas/values.ts'

test('every time of a clock becomes a valid instant, also a time far in the future', () => {
  for (const at of [0, 1_769_900_000_123, 253_402_300_799_999]) expect(instantOf(at)).toBe(new Date(at).toISOString())
  // Microseconds and nanoseconds mistaken for milliseconds.
  for (const at of [253_402_300_800_000, 1.7e15, Number.MAX_SAFE_INTEGER]) {
    expect(instantOf(at)).toBe('9999-12-31T23:59:59.999Z')
    expect(instantToNanoseconds(instantOf(at))).toBeDefined()
  }
})
