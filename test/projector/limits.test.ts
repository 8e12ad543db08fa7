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
  CACHE_BYTES_PER_PARTITION,
  CACHE_HEAD_BYTES_PER_PARTITION,
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
  RECEIPTS_LOOK_INTERVAL_MS,
  RECEIPTS_LOOK_TIMEOUT_MS,
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

test('a record fits into its topic with key and headers', () => {
  expect(TOPIC_MESSAGE_BYTES_MAX - RECORD_VALUE_BYTES_MAX).toBeGreaterThanOrEqual(2 ** 20)
})

test('a partition is not paused before a whole batch is in flight', () => {
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(FETCH_BYTES)
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(BATCH_BYTES)
  expect(BATCH_BYTES).toBeLessThanOrEqual(DECIDED_BYTES)
  expect(BATCH_RECORDS).toBeLessThanOrEqual(MGET_IDS)
  expect(BATCH_BYTES).toBeLessThanOrEqual(PARTITION_BYTES_IN_FLIGHT / WRITES_IN_FLIGHT_PER_PARTITION)
})

test('at least two bulk requests are in flight, each far below what Elasticsearch refuses', () => {
  expect(Math.min(BULKS_IN_FLIGHT, WRITES_IN_FLIGHT_PER_PARTITION)).toBeGreaterThanOrEqual(2)
  // One document may be larger than the limit of a request: then it goes alone. The default of http.max_content_length
  // is 100 MB.
  expect(BULK_BYTES + 4 * RECORD_VALUE_BYTES_MAX).toBeLessThan(100_000_000)
  expect(MGET_IDS).toBeLessThanOrEqual(10_000)
  expect(MGET_BYTES).toBeGreaterThan(RECORD_VALUE_BYTES_MAX)
  expect(BULK_DOCUMENTS).toBeLessThanOrEqual(10_000)
})

test('the cache has room for the largest chain, and for the largest payout that can be replaced', () => {
  expect(CACHE_BYTES_PER_PARTITION).toBeGreaterThan(300 + 2 * CHAIN_LENGTH_MAX * 150)
  expect(CACHE_BYTES_PER_PARTITION).toBeGreaterThan(300 + LINE_ITEMS_MAX * 300)
  // Every event needs its rep and its period: some thousands of them, each with a few versions.
  expect(CACHE_HEAD_BYTES_PER_PARTITION).toBeGreaterThan(5_000 * (300 + 3 * 150))
})

test('a member of the group is not given up for one lost heartbeat', () => {
  expect(SESSION_TIMEOUT_MS).toBeGreaterThanOrEqual(3 * HEARTBEAT_INTERVAL_MS)
  expect(REBALANCE_TIMEOUT_MS).toBeGreaterThan(SESSION_TIMEOUT_MS)
  expect(FETCH_WAIT_MS).toBeLessThan(HEARTBEAT_INTERVAL_MS)
})

test('Projection-Time moves at least every second while caught up', () => {
  expect(ENDS_INTERVAL_MS * 2).toBeLessThan(1_000)
  expect(IDENTIFY_INTERVAL_MS).toBeLessThanOrEqual(10_000)
})

test('a stop drains, then leaves, then is cut, all within the ten seconds that operators are promised', () => {
  expect(DRAIN_TIMEOUT_MS).toBeLessThan(STREAMS_STOP_TIMEOUT_MS)
  // Clients of Kafka beside the streams: one for each of the two, and one for both.
  expect(STREAMS_STOP_TIMEOUT_MS + 3 * DISCONNECT_TIMEOUT_MS).toBeLessThan(STOP_TIMEOUT_MS)
  expect(STOP_TIMEOUT_MS).toBeLessThan(10_000)
})

test('what takes long is not taken for stuck: a request that is not answered is known to be before, a rebalance is over', () => {
  expect(STUCK_MS).toBeGreaterThanOrEqual(2 * ELASTICSEARCH_TIMEOUT_MS)
  // Operators are promised that much.
  expect(STUCK_MS).toBe(60_000)
  // A dead member is waited for, then a dead leader, then its going is shared out.
  expect(STUCK_MS).toBeGreaterThan(SESSION_TIMEOUT_MS + 2 * REBALANCE_TIMEOUT_MS)
  expect(WATCHDOG_INTERVAL_MS).toBeLessThan(WATCHDOG_GAP_MS)
  expect(ENDS_LATE_MS).toBeGreaterThan(5 * ENDS_INTERVAL_MS)
})

test('pauses before a retry grow to at most five seconds', () => {
  expect(RETRY_FIRST_MS).toBeLessThan(RETRY_LAST_MS)
  expect(RETRY_LAST_MS).toBeLessThanOrEqual(5_000)
  expect(ELASTICSEARCH_TIMEOUT_MS).toBeGreaterThan(RETRY_LAST_MS)
})

test('what was asked just before Elasticsearch is well again goes on within the 30 s that operators are promised', () => {
  expect(ELASTICSEARCH_TIMEOUT_MS + RETRY_LAST_MS).toBeLessThan(30_000)
  expect(ELASTICSEARCH_SLOW_MS).toBeLessThan(ELASTICSEARCH_TIMEOUT_MS)
})

test('one look is for all receipts that wait, and one that gets no answer is given up long before other requests are', () => {
  expect(RECEIPTS_WAITING_MAX).toBeLessThanOrEqual(MGET_IDS)
  expect(RECEIPTS_LOOK_INTERVAL_MS).toBeLessThan(1_000)
  expect(RECEIPTS_LOOK_TIMEOUT_MS).toBeLessThan(ELASTICSEARCH_TIMEOUT_MS)
  expect(RECEIPT_WAIT_SECONDS_MAX).toBeLessThanOrEqual(60)
})
