import { describe, expect, test } from 'vitest'
import * as limits from '../../api/limits.ts'
import {
  API_KEY_LENGTH_MAX,
  PAGE_BYTES_MAX,
  RECORD_VALUE_BYTES_MAX,
  SEALED_TEXT_LENGTH_MAX,
  TEXT_LENGTH_MAX,
} from '../../schemas/limits.ts'

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
    expect(target.length).toBeLessThan(limits.TARGET_LENGTH_MAX / 10)
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
    expect(limits.STOP_TIME_MAX).toBeLessThan(10_000)
    expect(limits.READ_TIME_MAX).toBeLessThan(limits.STOP_TIME_MAX)
  })
})
