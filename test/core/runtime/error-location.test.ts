import { expect, test } from 'vitest'
import { errorLocation } from '../../../core/runtime/error-location.ts'

test('the place of an error has its class and stack frames, and nothing of its message', () => {
  const error = new RangeError('first\n    at second (payout_1)\nthird')
  const { error: name, at } = errorLocation(error)
  expect(name).toBe('RangeError')
  expect(at.length).toBeGreaterThan(0)
  expect(at.join()).toContain('error-location.test.ts')
  expect(at.join()).not.toMatch(/second|payout_1/)
})

test.each([undefined, null, 'payout_1', { message: 'payout_1' }])(
  'for %j, which is not an error, only the type is given',
  thrown => {
    expect(errorLocation(thrown)).toEqual({ error: typeof thrown, at: [] })
  },
)

test('frames name files from the folder of the installation on, with and without parentheses', () => {
  const error = new Error('payout_1')
  const file = 'file:///srv/commission/projector/main.ts'
  error.stack = `Error: payout_1\n    at main (${file}:24:9)\n    at async ${file}:82:20`
  expect(errorLocation(error).at).toEqual(['at main (projector/main.ts:24:9)', 'at async projector/main.ts:82:20'])
})

test.each([
  ['file:///srv/tools/app/core/store/write.ts', 'core/store/write.ts'],
  ['file:///srv/app/tools/commands/main.ts', 'tools/commands/main.ts'],
  ['/srv/app/node_modules/kafkajs/src/api/admin.js', 'node_modules/kafkajs/src/api/admin.js'],
])('a frame of %s names %s', (file, named) => {
  const error = new Error('payout_1')
  error.stack = `Error: payout_1\n    at main (${file}:24:9)`
  expect(errorLocation(error).at).toEqual([`at main (${named}:24:9)`])
})

test('an error without a stack has no frames', () => {
  const error = new Error('payout_1')
  delete error.stack
  expect(errorLocation(error)).toEqual({ error: 'Error', at: [] })
})

test('an error whose message was changed later has no stack frame from its old message', () => {
  const error = new Error('payout_1\n    at payout_2')
  error.message = 'other'
  expect(errorLocation(error).at.join()).not.toMatch(/payout/)
})
