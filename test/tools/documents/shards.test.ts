import { expect, test } from 'vitest'
import { hasFailedShards, isComplete, isRefreshed } from '../../../tools/documents/shards.ts'

test.each([
  [true, 200, { _shards: { failed: 0 } }],
  [true, 200, { _shards: { failed: 0 }, timed_out: false }],
  [true, 200, { _shards: { total: 2, successful: 2, failed: 0 } }],
  [false, 200, { _shards: { failed: 1 } }],
  // Elasticsearch does not count a shard that no node has as failed.
  [false, 200, { _shards: { total: 2, successful: 1, failed: 0 } }],
  [false, 200, { _shards: { failed: 0 }, timed_out: true }],
  [false, 503, { _shards: { failed: 0 } }],
  // Not an answer of a search.
  [false, 200, {}],
])('an answer is complete (%s) if all shards took part in time: %d %j', (expected, status, body) => {
  expect(isComplete({ status, body })).toBe(expected)
})

test.each([
  [true, 200, { _shards: { total: 1, successful: 1, failed: 0 } }],
  // The replica is on no node.
  [true, 200, { _shards: { total: 2, successful: 1, failed: 0 } }],
  [false, 200, { _shards: { total: 2, successful: 1, failed: 1 } }],
  [false, 400, { _shards: { failed: 0 } }],
  [false, 200, {}],
])('an index is refreshed (%s) if no copy of a shard failed: %d %j', (expected, status, body) => {
  expect(isRefreshed({ status, body })).toBe(expected)
})

test('shards have failed only if the answer has their number, whatever its status', () => {
  expect(hasFailedShards({ status: 503, body: { _shards: { failed: 2 } } })).toBe(true)
  expect(hasFailedShards({ status: 200, body: { _shards: { failed: 0 } } })).toBe(false)
  const refused: object = { error: {} }
  expect(hasFailedShards({ status: 404, body: refused })).toBe(false)
})
