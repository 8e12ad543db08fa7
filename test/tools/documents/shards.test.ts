import { expect, test } from 'vitest'
import type { Coverage } from '../../../core/store/elasticsearch/answers.ts'
import { assertRefreshed, wholeAnswer } from '../../../tools/documents/shards.ts'

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
])('an answer is whole (%s) if all shards took part in time: %d %j', (expected, status, body) => {
  const read = () => wholeAnswer('payouts', { status, body })
  if (expected) expect(read()).toBe(body)
  else expect(read).toThrow(/^payouts cannot be read whole: /)
})

test.each([
  [true, 200, { _shards: { total: 1, successful: 1, failed: 0 } }],
  // The replica is on no node.
  [true, 200, { _shards: { total: 2, successful: 1, failed: 0 } }],
  [false, 200, { _shards: { total: 2, successful: 1, failed: 1 } }],
  [false, 400, { _shards: { failed: 0 } }],
  [false, 200, {}],
])('an index is refreshed (%s) if no copy of a shard failed: %d %j', (expected, status, body) => {
  const assertion = () => assertRefreshed('payouts', { status, body })
  if (expected) assertion()
  else expect(assertion).toThrow(/^payouts cannot be read whole: /)
})

test('the error of an answer that is not whole tells a refusal from a shard that is away', () => {
  const errorOf = (status: number) => () => wholeAnswer('payouts', { status, body: { _shards: { failed: 1 } } })
  expect(errorOf(200)).toThrow('payouts cannot be read whole: a shard is away, or the time was up')
  expect(errorOf(503)).toThrow('payouts cannot be read whole: Elasticsearch answers 503')
})

test.each([
  { caused_by: { type: 'too_many_buckets_exception' }, root_cause: [] },
  { root_cause: [{ type: 'too_many_buckets_exception' }] },
])('the error of a refused search names the cause, and quotes nothing: %j', inner => {
  const error = { type: 'search_phase_execution_exception', reason: 'canary', ...inner }
  const body: Coverage & { readonly error: object } = { error }
  expect(() => wholeAnswer('payouts', { status: 400, body })).toThrow(
    /^payouts cannot be read whole: Elasticsearch answers 400, too_many_buckets_exception$/,
  )
})
