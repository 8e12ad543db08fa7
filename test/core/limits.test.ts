/** The relations of limits, over all libraries and programs. */
import { describe, expect, test } from 'vitest'
import * as api from '../../api/limits.ts'
import * as ledger from '../../core/ledger/limits.ts'
import * as log from '../../core/log/limits.ts'
import * as projection from '../../core/projection/limits.ts'
import * as reading from '../../core/reading/limits.ts'
import * as runtime from '../../core/runtime/limits.ts'
import * as store from '../../core/store/limits.ts'
import * as projector from '../../projector/limits.ts'
import {
  API_KEY_LENGTH_MAX,
  CHAIN_LENGTH_MAX,
  IDS_MAX,
  LINE_ITEMS_MAX,
  PAGE_BYTES_MAX,
  RECORD_VALUE_BYTES_MAX,
  SEALED_TEXT_LENGTH_MAX,
  TEXT_LENGTH_MAX,
  TOPIC_MESSAGE_BYTES_MAX,
  WAIT_SECONDS_MAX,
} from '../../schemas/limits.ts'

const limits = { ...runtime, ...ledger, ...log, ...store, ...reading, ...projection, ...projector, ...api }

const {
  BATCH_BYTES,
  BATCH_RECORDS,
  BULK_BYTES,
  BULK_DOCUMENTS,
  BULKS_IN_FLIGHT,
  CACHE_HEAD_BYTES_PER_PARTITION,
  CACHE_LINE_BYTES_PER_PARTITION,
  DECIDED_BYTES,
  DISCONNECT_TIMEOUT_MS,
  DOCUMENTS_ASKED,
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
  PARTITIONS_OF_FULL_SIZE,
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

describe('the limits of the API', () => {
  test('leave Elasticsearch less time than the request has', () => {
    expect(limits.SEARCH_TIME_MAX).toBeLessThan(limits.READ_TIME_MAX)
    expect(limits.READ_TIME_MAX).toBeLessThanOrEqual(3_000)
  })

  test('answer silence within 10 s and a slow request within 15 s', () => {
    expect(limits.HEADERS_TIME_MAX + limits.TIMEOUT_CHECK_INTERVAL).toBeLessThan(10_000)
    expect(limits.REQUEST_TIME_MAX + limits.TIMEOUT_CHECK_INTERVAL).toBeLessThan(15_000)
    expect(limits.HEADERS_TIME_MAX).toBeLessThan(limits.REQUEST_TIME_MAX)
  })

  test('let the app see the requests that it must refuse itself', () => {
    expect(limits.TARGET_LENGTH_MAX + limits.HEADERS_BYTES_MAX).toBeLessThan(limits.PARSER_BYTES_MAX)
  })

  test('let every meaningful request through', () => {
    const id = 'a'.repeat(64)
    const filters = `rep_id=rep_${id}&period_id=period_${id}`
    const target = `/api/v1/payroll_files?starting_after=payroll_${id}&limit=200&${filters}&as_of=payroll_${id}`
    expect(target.length).toBeLessThan(400)
    const ids = Array.from({ length: IDS_MAX }, () => `payroll_${id}`)
    const several = new URLSearchParams({ ids: ids.join(), as_of: `period_${id}.123456789` })
    expect(`/api/v1/payroll_files?${several}`.length).toBeLessThan(limits.TARGET_LENGTH_MAX)
    expect(API_KEY_LENGTH_MAX).toBeLessThan(limits.HEADERS_BYTES_MAX / 10)
  })

  test('collect any page, and any statement together with its payout', () => {
    expect(limits.ANSWER_BYTES_MAX).toBeGreaterThan(PAGE_BYTES_MAX + limits.BODY_STORED_MAX)
    expect(limits.ANSWER_BYTES_MAX).toBeGreaterThan(2 * limits.BODY_STORED_MAX)
    expect(limits.ANSWER_BYTES_MAX).toBeLessThan(limits.ANSWERS_HELD_OF_KEY)
    expect(limits.BODY_STORED_MAX).toBeGreaterThan(RECORD_VALUE_BYTES_MAX)
    expect(limits.RECORDS_SURE).toBeGreaterThanOrEqual(3)
  })

  test('bound the size of a record without lines: two texts of six-byte characters, and small fields', () => {
    expect(2 * TEXT_LENGTH_MAX * 6 + 1_000).toBeLessThan(limits.PLAIN_RECORD_BYTES_MAX)
    expect(2 * SEALED_TEXT_LENGTH_MAX + 1_000).toBeLessThan(limits.PLAIN_RECORD_BYTES_MAX)
    expect(201 * limits.PLAIN_RECORD_BYTES_MAX).toBeLessThan(PAGE_BYTES_MAX)
  })

  test('trust a cached key for less than 5 s, the time in which a revocation must take effect', () => {
    expect(limits.KEY_CACHE_TIME).toBeLessThanOrEqual(2_000)
  })

  test('let a wait whose filter was searched end without a read of its page', () => {
    expect(limits.FIND_INTERVAL + 4 * limits.LOOK_INTERVAL).toBeLessThan(limits.LOOK_AGE_MAX)
  })

  test('leave half of the connections to requests that do not wait, and most waits to other organizations', () => {
    expect(limits.WAITS.permits).toBeLessThanOrEqual(limits.CONNECTIONS_MAX / 2)
    expect(limits.ENCRYPTED_WAITS.permits).toBeLessThanOrEqual(limits.ENCRYPTED_CONNECTIONS_MAX / 2)
    const ofOrganization = limits.WAITS_OF_ORGANIZATION.permits
    expect(ofOrganization).toBeLessThanOrEqual(limits.ENCRYPTED_WAITS.permits / 5)
    // The other requests of a key, and of its organization, can read meanwhile.
    expect(ofOrganization).toBeLessThanOrEqual(limits.IN_FLIGHT_OF_KEY.permits / 2)
    // Nobody queues for a wait: a request without one is answered.
    for (const { queue } of [limits.WAITS_OF_ORGANIZATION, limits.WAITS, limits.ENCRYPTED_WAITS]) expect(queue).toBe(0)
  })

  test('allow fewer reads at once than the client has connections', () => {
    expect(limits.READS_IN_FLIGHT_MAX).toBeLessThan(256)
  })

  test('give each connection a place in the queue of key look-ups, and each look-up under way a try of its address', () => {
    expect(limits.KEY_LOOKUPS.queue).toBeGreaterThanOrEqual(limits.CONNECTIONS_MAX)
    expect(limits.KEY_LOOKUPS.permits).toBeLessThanOrEqual(limits.FAILURES_PER_ADDRESS / 5)
  })

  test('let every wait queue for its first search as long as it waits: none is refused', () => {
    for (const { queue, waitMax } of [limits.WAIT_SEARCHES, limits.WAIT_SEARCHES_OF_ORGANIZATION]) {
      expect(queue).toBeGreaterThanOrEqual(Math.max(limits.WAITS.permits, limits.ENCRYPTED_WAITS.permits))
      expect(waitMax).toBeGreaterThanOrEqual(WAIT_SECONDS_MAX * 1_000)
    }
  })

  test('leave four fifths of reads, key look-ups and totals to other organizations', () => {
    for (const { permits } of [limits.READS_OF_ORGANIZATION, limits.KEY_LOOKUPS]) {
      expect(permits).toBeLessThanOrEqual(limits.READS_IN_FLIGHT_MAX / 5)
    }
    expect(limits.KEY_LOOKUPS_EXHAUSTED.permits).toBeLessThan(limits.KEY_LOOKUPS.permits)
    expect(limits.TOTALS_OF_ORGANIZATION).toBeLessThanOrEqual(limits.TOTALS_AT_ONCE / 5)
    expect(limits.READS_OF_ORGANIZATION.waitMax).toBeLessThan(limits.READ_TIME_MAX)
    expect(limits.READS_OF_ORGANIZATION.queue).toBeGreaterThanOrEqual(
      limits.IN_FLIGHT_OF_ORGANIZATION.permits - limits.READS_OF_ORGANIZATION.permits,
    )
  })

  test('leave room for an answer, however many requests hold reads that need no turn', () => {
    const reads = limits.READS_OF_ORGANIZATION.permits * limits.SMALL_ANSWER_BYTES
    expect(reads + 3 * limits.SMALL_ANSWER_BYTES).toBeLessThan(limits.ANSWERS_HELD_OF_KEY)
    expect(limits.LARGE_ANSWERS_OF_ORGANIZATION.waitMax).toBeLessThan(limits.READ_TIME_MAX)
  })

  test('keep answers and connections together under 500 MiB', () => {
    const MiB = 1024 * 1024
    // 120 MiB for the process, answers twice (garbage not yet collected), and 90 MiB more under attack.
    const left = 500 * MiB - 120 * MiB - 2 * limits.ANSWERS_HELD_MAX - 90 * MiB
    expect(limits.CONNECTIONS_MAX * limits.CONNECTION_BYTES).toBeLessThan(left)
    expect(limits.ENCRYPTED_CONNECTIONS_MAX * limits.ENCRYPTED_CONNECTION_BYTES).toBeLessThan(left)
  })

  test('stop within 10 s', () => {
    expect(limits.STOP_TIME_MAX + limits.ADMIN_STOP_TIME).toBeLessThan(limits.AUDIT_END_TIME)
    expect(limits.AUDIT_END_TIME).toBeLessThan(limits.STOP_TIMEOUT)
    expect(limits.STOP_TIMEOUT).toBeLessThan(10_000)
    expect(limits.READ_TIME_MAX).toBeLessThan(limits.STOP_TIME_MAX)
  })
})

test('every limit is a positive whole number, and has one place', () => {
  const modules = [runtime, ledger, log, store, reading, projection, projector, api]
  expect(modules.flatMap(Object.keys).toSorted()).toEqual(Object.keys(limits).toSorted())
  for (const [name, value] of Object.entries(limits))
    if (typeof value === 'number') expect([name, Number.isInteger(value) && value > 0]).toEqual([name, true])
})

test('a record fits into its topic with its key and headers', () => {
  expect(TOPIC_MESSAGE_BYTES_MAX - RECORD_VALUE_BYTES_MAX).toBeGreaterThanOrEqual(2 ** 20)
})

test('a partition is not paused before a whole batch is in flight', () => {
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(FETCH_BYTES)
  expect(FETCH_PARTITION_BYTES).toBeLessThanOrEqual(BATCH_BYTES)
  expect(BATCH_BYTES).toBeLessThanOrEqual(DECIDED_BYTES)
  expect(Math.max(BATCH_RECORDS, DOCUMENTS_ASKED)).toBeLessThanOrEqual(MGET_IDS)
  // Four whole batches; many more small ones.
  expect(4 * BATCH_BYTES).toBeLessThanOrEqual(PARTITION_BYTES_IN_FLIGHT)
  expect(WRITES_IN_FLIGHT_PER_PARTITION).toBeGreaterThanOrEqual(4)
})

test('at least two bulk requests are in flight, each far below the limit of Elasticsearch', () => {
  expect(Math.min(BULKS_IN_FLIGHT, WRITES_IN_FLIGHT_PER_PARTITION)).toBeGreaterThanOrEqual(2)
  // A document larger than BULK_BYTES goes alone. The default of http.max_content_length is 100 MB.
  expect(BULK_BYTES + 4 * RECORD_VALUE_BYTES_MAX).toBeLessThan(100_000_000)
  expect(MGET_IDS).toBeLessThanOrEqual(10_000)
  expect(MGET_BYTES).toBeGreaterThan(RECORD_VALUE_BYTES_MAX)
  expect(BULK_DOCUMENTS).toBeLessThanOrEqual(10_000)
})

test('the partitions of a process keep at most 48 MiB of documents, and read at most 24 MiB ahead', () => {
  const kept = CACHE_LINE_BYTES_PER_PARTITION + CACHE_HEAD_BYTES_PER_PARTITION
  expect(PARTITIONS_OF_FULL_SIZE * kept).toBeLessThanOrEqual(48 * 2 ** 20)
  expect(PARTITIONS_OF_FULL_SIZE * PARTITION_BYTES_IN_FLIGHT).toBeLessThanOrEqual(24 * 2 ** 20)
})

test('the cache has room for the longest chain, or for the largest payout that can be superseded', () => {
  expect(CACHE_LINE_BYTES_PER_PARTITION).toBeGreaterThan(300 + 2 * CHAIN_LENGTH_MAX * 150)
  expect(CACHE_LINE_BYTES_PER_PARTITION).toBeGreaterThan(300 + LINE_ITEMS_MAX * 300)
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
