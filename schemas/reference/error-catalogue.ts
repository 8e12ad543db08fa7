/**
 * The catalogue of errors: cause and action of each code that clients and publishers see. docs/errors.md and
 * the OpenAPI document are made from it.
 */
import type { ParkCode, RefusalCode } from '../errors.ts'

export type CatalogueEntry = {
  readonly cause: string
  readonly action: string
}

export const refusalCatalogue: Record<RefusalCode, CatalogueEntry> = {
  invalid_request: {
    cause:
      'A parameter is wrong, unknown or repeated. Or `as_of` is an instant that is not over, or that the times of the events do not decide. Or the bytes are not HTTP.',
    action: 'Correct the request. `message` names the parameter and the values that it can have.',
  },
  invalid_cursor: {
    cause:
      '`starting_after` does not name a record of this list that this key can read, or the record was published after `as_of`. Or `after` is above the number of changes, also of those up to `as_of`.',
    action:
      'Send an id that this list returned, or as `after` a `sequence`. Ids of a list stay valid, unless new rules park their record, with and without a filter. With other rules, changes have other numbers: begin at `after=0`.',
  },
  unauthorized: {
    cause: 'The Authorization header is missing, repeated or malformed, or names an unknown, revoked or expired key.',
    action: 'Check the key. The API accepts a new key at most 5 seconds after its event was published.',
  },
  forbidden: {
    cause: 'The key is valid but lacks the permission of this path; `message` names it.',
    action: 'Ask the operator for a key with this permission.',
  },
  not_found: {
    cause:
      'No such path, or no record with that id that this key can read. An id of another organization gets the same answer.',
    action: 'Check the path and the id.',
  },
  method_not_allowed: {
    cause: 'The method is neither GET nor HEAD.',
    action: 'Use GET. This API only reads.',
  },
  request_timeout: {
    cause: 'The headers took longer than 9.5 s, or the request longer than 14.5 s.',
    action: 'Send the request faster, on a new connection.',
  },
  request_too_large: {
    cause: 'The request body is above 64 KiB. The API reads no body.',
    action: 'Send no body.',
  },
  uri_too_long: {
    cause: 'The target of the request is above 7,680 characters.',
    action: 'Shorten it.',
  },
  expectation_failed: {
    cause: 'The request has an Expect header other than `100-continue`.',
    action: 'Remove the header.',
  },
  rate_limited: {
    cause: [
      'The key has used the units of its window.',
      'Or the key, or its organization, has too many requests under way.',
      'Or the client address tried many unknown keys, and too many look-ups for such addresses wait (then without',
      'RateLimit headers).',
    ].join(' '),
    action: 'Wait for the seconds in `Retry-After`. Read answers as they come, over fewer connections.',
  },
  headers_too_large: {
    cause: 'The headers are above 8 KiB, or more than 64.',
    action: 'Send fewer headers. A browser may send the cookies of other sites.',
  },
  internal: {
    cause: 'The program has a defect.',
    action: 'Report the `X-Request-Id` of the answer to the operator.',
  },
  unavailable: {
    cause: [
      'The records cannot be read now: Elasticsearch is away, slow or incomplete.',
      'Or a seal key cannot be read, or the audit log cannot be written.',
      'Or the process holds as many bytes of answers as it may.',
      'Or other requests of the same key or organization use its whole share of reads or bytes.',
      'The API never returns a page with missing records instead.',
    ].join(' '),
    action: 'Wait for the seconds in `Retry-After`, and send the same request again.',
  },
}

/** An example is in Markdown. */
export const parkCatalogue: Record<ParkCode, CatalogueEntry & { readonly example: string }> = {
  batch_undecodable: {
    cause: [
      'The record is in a batch that cannot be decompressed or decoded, or that has more than 512 MiB when it is',
      'decompressed, or a record of more than 32 MiB. The whole batch is parked, each of its offsets.',
    ].join(' '),
    action: 'Publish the records of the batch again, in smaller batches, with another producer or another compression.',
    example: 'a batch of zstd that was cut off',
  },
  record_undecodable: {
    cause: [
      'The value is missing, above 8 MiB, or not strict UTF-8 and JSON; or it repeats a key in an object, or is nested',
      'deeper than 32. Or the content type is another one. Or a CloudEvents attribute is missing, repeated or not valid.',
    ].join(' '),
    action: 'Correct the producer.',
    example: 'a record without the header `ce_type`',
  },
  type_unknown: {
    cause: 'The topic does not carry events of this `ce_type`.',
    action: 'Correct the type, or the topic.',
    example: 'an API key in the topic of commission events',
  },
  data_invalid: {
    cause: 'The data lacks a field or breaks its rule, two lines have one id, or the steps are not 1, 2, 3 and so on.',
    action: 'Compare the data with the JSON Schema of its type.',
    example: '`"net_amount": 12.5` instead of `"net_amount": "12.5"`',
  },
  org_mismatch: {
    cause: 'The record key is missing, or is not `data.org_id`.',
    action: 'Use the organization as the record key.',
    example: 'key `rep_1`, `"org_id": "org_1"`',
  },
  partition_mismatch: {
    cause: 'The record is not in the partition of its organization.',
    action:
      'Use the partitioner that publishing.md describes, and check that the producer knows the number of partitions.',
    example: 'the default partitioner of librdkafka (CRC32) or Sarama (FNV-1a), which is not `murmur2`',
  },
  lines_do_not_sum: {
    cause: 'The amounts of the lines do not add up to `net_amount`.',
    action: 'Find the wrong amount, and publish the payout corrected.',
    example: 'lines of `"10.00"` and `"2.50"`, `"net_amount": "12.49"`',
  },
  id_reused: {
    cause: 'A record with this id exists with other data. For an API key: with another secret.',
    action: 'Use a new id, with `supersedes_id` if it replaces a payout.',
    example: 'a payout that was calculated again and published under its old id',
  },
  period_changed: {
    cause: 'The period exists with another kind, time zone or boundary.',
    action: 'Record a new period. Only the name of a period can change.',
    example: 'a month that is recorded again as a quarter',
  },
  rep_unknown: {
    cause: 'No record before this one has recorded the rep.',
    action: 'Publish the rep first, then this record again.',
    example: 'a payout that is published before its rep',
  },
  period_unknown: {
    cause: 'No record before this one has recorded the period.',
    action: 'Publish the period first, then this record again.',
    example: 'a payout that is published before its period',
  },
  supersedes_mismatch: {
    cause: '`supersedes_id` is not the current payout of the rep and period.',
    action:
      'Read the current payout, calculate again, and publish that. It may have the same id: a parked payout does not exist.',
    example: 'two calculations that replace the same payout',
  },
  payout_mismatch: {
    cause: 'The payroll record pays a payout that its rep and period do not have.',
    action: 'Correct `payout_id`, or make it `null`.',
    example: 'the payout of another rep in `payout_id`',
  },
  payroll_already_recorded: {
    cause: 'The rep and period have a payment that is not voided.',
    action: 'Check for a double payment first. Void the first payment if it was wrong.',
    example: 'a second payroll record for one rep and period',
  },
  payroll_reversal_invalid: {
    cause:
      '`reverses_id` names no payment, a void, or a payment that is voided already. Or the currency differs, or the amount is not the opposite.',
    action: 'Read the record that it should reverse.',
    example: 'a void of `"100.00"` for a payment of `"100.01"`',
  },
  key_unknown: {
    cause: 'The API key was never created.',
    action: 'Correct the id at once: the intended key is still valid.',
    example: 'a revocation with a mistyped id',
  },
  chain_too_long: {
    cause:
      'The rep and period have 10,000 payouts or payroll records already, or the rep or period has 10,000 versions.',
    action: 'Find the publisher that recalculates so often.',
    example: 'a calculation that publishes in an endless loop',
  },
}
