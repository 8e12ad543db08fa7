import { Transform } from 'node:stream'
import { expect, test } from 'vitest'
import { inflate } from '../../../../core/log/batch/inflate.ts'
import { Undecodable } from '../../../../core/log/batch/record-batch.ts'

/** A stream that fails with this error at its first bytes. */
const failingWith = (error: Error): Transform => new Transform({ transform: (_bytes, _encoding, done) => done(error) })

const outcomeOf = (error: Error): Promise<unknown> =>
  Array.fromAsync(inflate(failingWith(error), [Buffer.from('bytes')])).catch((thrown: unknown) => thrown)

test('bytes that a codec refuses are undecodable', async () => {
  expect(await outcomeOf(Object.assign(new Error('incorrect data check'), { code: 'Z_DATA_ERROR' }))).toBeInstanceOf(
    Undecodable,
  )
})

test.each([
  Object.assign(new Error('zlib'), { code: 'Z_MEM_ERROR' }),
  Object.assign(new Error('zstd'), { code: 'ZSTD_error_memory_allocation' }),
  new RangeError('Array buffer allocation failed'),
])('without memory nothing is said of the bytes: $code $message', async error => {
  expect(await outcomeOf(error)).toBe(error)
})
