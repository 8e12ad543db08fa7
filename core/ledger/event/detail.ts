/**
 * Says in one sentence why a record is parked, for receipts, `parked` and `validate`. In: its code, and
 * the record. Out: the field or the rule, what was expected and what was given.
 * Promises: pure; never without a sentence; nothing of the content: names of fields of the schema, positions, sizes,
 *   types and the values that a schema allows, because the texts go to terminals, logs and tickets.
 * It is made each time somebody asks, and not stored: `verify` compares documents, and versions say the same in other
 * words.
 */
import type { ParkCode } from '../../../schemas/errors.ts'
import { eventSchemas, type Stream } from '../../../schemas/events.ts'
import { CHAIN_LENGTH_MAX } from '../../../schemas/limits.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { firstMismatch } from '../../../schemas/validate.ts'
import { canonical } from './canonical.ts'
import { decode, type Envelope, type RawRecord, sayUndecodable, undecodableBatchOf, whyUndecodable } from './decode.ts'
import { brokenValueRule, hasFirstKeyRules, type PartitionSource } from './validate.ts'

/** A parked record. */
export type ToExplain = {
  readonly code: ParkCode
  /** Undefined if its bytes are not known: it was too large to be kept, or cannot be read now. */
  readonly record: RawRecord | undefined
  readonly source: PartitionSource
}

/** Whether the bytes of a record tell more than its code. */
export const needsRecord = (code: ParkCode): boolean => explanations[code] !== undefined

export const detailOf = ({ code, record, source }: ToExplain): string => {
  const ofRecord = record && explanations[code]?.(record, source)
  return ofRecord ?? rules[code]
}

/** The rule of each code: the sentence of a record about which nothing more is known. */
const rules: Readonly<Record<ParkCode, string>> = {
  batch_undecodable: 'expected a batch that can be decompressed and decoded, got one that cannot',
  record_undecodable: 'expected a CloudEvents event as strict JSON in UTF-8, got something else',
  type_unknown: 'type: expected a type of this topic, got another one',
  data_invalid: 'data: expected the fields that the JSON Schema of its type has, got others',
  org_mismatch: 'record key: expected the organization of data.org_id, got another key',
  partition_mismatch: 'partition: expected that of murmur2 of the record key, got another one',
  lines_do_not_sum: '/net_amount: expected the sum of the amounts of all lines, got another amount',
  id_reused: '/id: expected a new id, or the same event again, got other data under an id that exists',
  period_changed:
    'expected /kind, /timezone, /starts_at and /ends_at as they were recorded before, got another value: only /name may change',
  rep_unknown: '/rep_id: expected a rep that an earlier record of this partition has recorded, got one that none has',
  period_unknown:
    '/period_id: expected a period that an earlier record of this partition has recorded, got one that none has',
  supersedes_mismatch:
    '/supersedes_id: expected the current payout of this rep and period, or null if there is none, got another id',
  payout_mismatch: '/payout_id: expected null or a payout of the same rep and period, got another id',
  payroll_already_recorded:
    'expected no payment of this rep and period that is not voided, got a second one: void the first one before',
  payroll_reversal_invalid:
    '/reverses_id: expected a payment that is not voided, with the same currency and exactly the opposite amount, got none',
  key_unknown: '/id: expected a key that this organization created, got another id',
  chain_too_long: `expected at most ${CHAIN_LENGTH_MAX} payouts, and as many payroll records, of a rep and period, and versions of a rep or period, got one more`,
}

type Explain = (record: RawRecord, source: PartitionSource) => string | undefined

/** The codes about which the record itself tells more. The other codes depend on earlier records. */
const explanations: Readonly<Partial<Record<ParkCode, Explain>>> = {
  batch_undecodable: record => {
    const batch = undecodableBatchOf(record)
    return batch && sayUndecodable(batch)
  },
  record_undecodable: record => whyUndecodable(record),
  type_unknown: (record, { stream }) => ofEnvelope(record, ({ type }) => explainType(type, stream)),
  data_invalid: (record, source) => ofEnvelope(record, envelope => explainInvalid(envelope, record, source)),
  org_mismatch: record => ofEnvelope(record, ({ data }) => explainKey(record.key, fieldOf(data, 'org_id'))),
  partition_mismatch: ({ key }, { partition, partitions }) =>
    key === null
      ? undefined
      : `partition: expected ${partitionOf(key, partitions)} of ${partitions} (murmur2 of the record key), got ${partition}`,
  lines_do_not_sum: record =>
    ofEnvelope(record, ({ data, plain }) => {
      const lines = plain?.amounts ?? fieldOf(data, 'line_items')
      if (!Array.isArray(lines)) return undefined
      return `/net_amount: expected the sum of the amounts of all lines (${lines.length}), got another amount`
    }),
  supersedes_mismatch: record =>
    ofEnvelope(record, ({ data }) =>
      fieldOf(data, 'supersedes_id') === null
        ? '/supersedes_id: expected the current payout of this rep and period, got null'
        : undefined,
    ),
}

const ofEnvelope = (record: RawRecord, explain: (envelope: Envelope) => string | undefined): string | undefined => {
  const envelope = decode(record)
  return typeof envelope === 'string' ? undefined : explain(envelope)
}

const fieldOf = (data: unknown, name: string): unknown =>
  typeof data === 'object' && data !== null && Object.hasOwn(data, name)
    ? (data as Readonly<Record<string, unknown>>)[name]
    : undefined

const otherStream: Readonly<Record<Stream, Stream>> = { events: 'api-keys', 'api-keys': 'events' }

const explainType = (type: string, stream: Stream): string => {
  const expected = `type: expected ${Object.keys(eventSchemas[stream]).join(' or ')}`
  if (Object.hasOwn(eventSchemas[otherStream[stream]], type)) return `${expected}, got ${type}, which has another topic`
  const name = Object.keys(eventSchemas[stream]).find(known => type.replace(/\.v[0-9]+$/, '.v1') === known)
  return `${expected}, got ${name === undefined ? 'another type' : `another version of ${name}`}`
}

const explainKey = (key: Buffer | null, org: unknown): string | undefined => {
  if (typeof org !== 'string') return undefined
  const expected = 'record key: expected the text of data.org_id'
  if (key === null) return `${expected}, got no key`
  const text = key.toString('utf8')
  if (text === JSON.stringify(org)) return `${expected}, got it in quotation marks: the producer writes keys as JSON`
  if (text.trim() === org) return `${expected}, got it with white space around it`
  return `${expected} (${org.length} bytes), got another key of ${key.length} bytes`
}

/** Undefined if the data breaks no rule of this version: other rules have parked it. */
const explainInvalid = (envelope: Envelope, record: RawRecord, source: PartitionSource): string | undefined => {
  if (hasFirstKeyRules(source, record)) return undefined
  const mismatch = firstMismatch(source.stream, envelope)
  if (mismatch.broken !== undefined) return mismatch.broken
  return mismatch.event && brokenValueRule(canonical(mismatch.event))
}
