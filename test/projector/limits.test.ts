import { expect, test } from 'vitest'
import * as limits from '../../projector/limits.ts'
import {
  CHAIN_LENGTH_MAX,
  LINE_ITEMS_MAX,
  RECORD_VALUE_BYTES_MAX,
  TOPIC_MESSAGE_BYTES_MAX,
} from '../../schemas/limits.ts'

const {
  BATCH_BYTES,
  BATCH_RECORDS,
  BULK_BYTES,
  BULK_DOCUMENTS,
  BULKS_IN_FLIGHT,
  CACHE_CHAIN_BYTES_PER_PARTITION,
  CACHE_HEAD_BYTES_PER_PARTITION,
  CACHE_PAYOUT_BYTES_PER_PARTITION,
  DECIDED_BYTES,
  DISCONNECT_TIMEOUT_MS,
  DRAIN_TIMEOUT_MS,
  ELASTICSEARCH_SLOW_MS,
  ELASTICSEARCH_TIMEOUT_MS,
  ENDS_INTERVAL_MS,
  ENDS_LATE_MS,
  FETCH_BYTES,
  FETCH_PARTITION_BYTES,
  FETCH_WAIT_MS,
  HEARTBEAT_INTERVAL_MS,
  IDENTIFY_INTERVAL_MS,
  MGET_BYTES,
  MGET_IDS,
  PARTITION_BYTES_IN_FLIGHT,
  REBALANCE_TIMEOUT_MS,
  RECEIPT_WAIT_SECONDS_MAX,
  RECEIPTS_POLL_MS,
  RECEIPTS_POLL_TIMEOUT_MS,
  RECEIPTS_WAITING_MAX,
  RETRY_FIRST_MS,
  RETRY_LAST_MS,
  SESSION_TIMEOUT_MS,
  STOP_TIMEOUT_MS,
  STREAMS_STOP_TIMEOUT_MS,
  STUCK_MS,
  WATCHDOG_GAP_MS,
  WATCHDOG_INTERVAL_MS,
  WRITES_IN_FLIGHT_PER_PARTITION,
} = limits

test('every limit is a positive whole number', () => {
  for (const [name, value] of Object.entries(limits))
    expect([name, Number.isInteger(value) && value > 0]).toEqual([name, true])
})

test('a record fits into its topic with its key and headers', () => {
  expect(TOPIC_MESSAGE_BYTES_MAX - RECORD_VALUE_BYTES_MAX).toBeGreaterThanOrEqual(2 ** 20)
})

test('a partition is not paused before a whole batch is in flight', () => {
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(FETCH_BYTES)
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(BATCH_BYTES)
  expect(BATCH_BYTES).toBeLessThanOrEqual(DECIDED_BYTES)
  expect(BATCH_RECORDS).toBeLessThanOrEqual(MGET_IDS)
  expect(BATCH_BYTES).toBeLessThanOrEqual(PARTITION_BYTES_IN_FLIGHT / WRITES_IN_FLIGHT_PER_PARTITION)
})

test('at least two bulk requests are in flight, each far below the limit of Elasticsearch', () => {
  expect(Math.min(BULKS_IN_FLIGHT, WRITES_IN_FLIGHT_PER_PARTITION)).toBeGreaterThanOrEqual(2)
  // A document larger than BULK_BYTES goes alone. The default of http.max_content_length is 100 MB.
  expect(BULK_BYTES + 4 * RECORD_VALUE_BYTES_MAX).toBeLessThan(100_000_000)
  expect(MGET_IDS).toBeLessThanOrEqual(10_000)
  expect(MGET_BYTES).toBeGreaterThan(RECORD_VALUE_BYTES_MAX)
  expect(BULK_DOCUMENTS).toBeLessThanOrEqual(10_000)
})

test('the cache has room for the longest chain, and for the largest payout that can be superseded', () => {
  expect(CACHE_CHAIN_BYTES_PER_PARTITION).toBeGreaterThan(300 + 2 * CHAIN_LENGTH_MAX * 150)
  expect(CACHE_PAYOUT_BYTES_PER_PARTITION).toBeGreaterThan(300 + LINE_ITEMS_MAX * 300)
  // Every event needs its rep and its period: thousands of them, with a few versions each.
  expect(CACHE_HEAD_BYTES_PER_PARTITION).toBeGreaterThan(5_000 * (300 + 3 * 150))
})

test('a member stays in the group after one lost heartbeat', () => {
  expect(SESSION_TIMEOUT_MS).toBeGreaterThanOrEqual(3 * HEARTBEAT_INTERVAL_MS)
  expect(REBALANCE_TIMEOUT_MS).toBeGreaterThan(SESSION_TIMEOUT_MS)
  expect(FETCH_WAIT_MS).toBeLessThan(HEARTBEAT_INTERVAL_MS)
})

test('Projection-Time advances at least every second while caught up', () => {
  expect(ENDS_INTERVAL_MS * 2).toBeLessThan(1_000)
  expect(IDENTIFY_INTERVAL_MS).toBeLessThanOrEqual(10_000)
})

test('a stop drains, leaves the group and is then cut off, all within the promised ten seconds', () => {
  expect(DRAIN_TIMEOUT_MS).toBeLessThan(STREAMS_STOP_TIMEOUT_MS)
  // Kafka clients outside the streams: one for each of the two streams, and one for both.
  expect(STREAMS_STOP_TIMEOUT_MS + 3 * DISCONNECT_TIMEOUT_MS).toBeLessThan(STOP_TIMEOUT_MS)
  expect(STOP_TIMEOUT_MS).toBeLessThan(10_000)
})

test('a slow request or a rebalance is not taken for a stuck projector', () => {
  expect(STUCK_MS).toBeGreaterThanOrEqual(2 * ELASTICSEARCH_TIMEOUT_MS)
  // docs/operating.md promises 60 s.
  expect(STUCK_MS).toBe(60_000)
  // A rebalance can wait for a dead member, then for a dead leader, and then for the new assignment.
  expect(STUCK_MS).toBeGreaterThan(SESSION_TIMEOUT_MS + 2 * REBALANCE_TIMEOUT_MS)
  expect(WATCHDOG_INTERVAL_MS).toBeLessThan(WATCHDOG_GAP_MS)
  expect(ENDS_LATE_MS).toBeGreaterThan(5 * ENDS_INTERVAL_MS)
})

test('pauses before a retry grow to at most five seconds', () => {
  expect(RETRY_FIRST_MS).toBeLessThan(RETRY_LAST_MS)
  expect(RETRY_LAST_MS).toBeLessThanOrEqual(5_000)
  expect(ELASTICSEARCH_TIMEOUT_MS).toBeGreaterThan(RETRY_LAST_MS)
})

test('a request sent just before Elasticsearch recovers is retried within the promised 30 s', () => {
  expect(ELASTICSEARCH_TIMEOUT_MS + RETRY_LAST_MS).toBeLessThan(30_000)
  expect(ELASTICSEARCH_SLOW_MS).toBeLessThan(ELASTICSEARCH_TIMEOUT_MS)
})

test('one look-up serves all waiting receipts, and times out long before other requests', () => {
  expect(RECEIPTS_WAITING_MAX).toBeLessThanOrEqual(MGET_IDS)
  expect(RECEIPTS_POLL_MS).toBeLessThan(1_000)
  expect(RECEIPTS_POLL_TIMEOUT_MS).toBeLessThan(ELASTICSEARCH_TIMEOUT_MS)
  expect(RECEIPT_WAIT_SECONDS_MAX).toBeLessThanOrEqual(60)
})
