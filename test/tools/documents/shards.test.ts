import { expect, test } from 'vitest'
import { hasFailedShards, isComplete } from '../../../tools/documents/shards.ts'

test.each([
  [true, 200, { _shards: { failed: 0 } }],
  [true, 200, { _shards: { failed: 0 }, timed_out: false }],
  [false, 200, { _shards: { failed: 1 } }],
  [false, 200, { _shards: { failed: 0 }, timed_out: true }],
  [false, 503, { _shards: { failed: 0 } }],
  // Not an answer of a search, a count or a refresh.
  [false, 200, {}],
])('an answer is complete (%s) if all shards took part in time: %d %j', (expected, status, body) => {
  expect(isComplete({ status, body })).toBe(expected)
})

test('shards have failed only if the answer has their number, whatever its status', () => {
  expect(hasFailedShards({ status: 503, body: { _shards: { failed: 2 } } })).toBe(true)
  expect(hasFailedShards({ status: 200, body: { _shards: { failed: 0 } } })).toBe(false)
  const refused: object = { error: {} }
  expect(hasFailedShards({ status: 404, body: refused })).toBe(false)
})
