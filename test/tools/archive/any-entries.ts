/** Entries of any log: consecutive offsets, with any bytes that Kafka stores. */
import fc from 'fast-check'
import { encodeHeaders } from '../../../core/log/kafka/encoded-headers.ts'
import type { LogEntry } from '../../../core/log/records/read-log.ts'

const bytes = fc.uint8Array({ maxLength: 40 }).map(array => Buffer.from(array))
const orNull = fc.option(bytes)
const name = fc.oneof(
  fc.constantFrom('ce_type', '', '__proto__', 'ce_type'),
  bytes.map(raw => raw.toString('latin1')),
)
const rawName = fc.constant(Buffer.from([0xff, 0xfe]))
const header = fc.oneof(fc.tuple(name, orNull), fc.tuple(fc.constant('\ufffd'), orNull, rawName))

export const anyEntry: fc.Arbitrary<Omit<LogEntry, 'offset'>> = fc.record({
  kind: fc.constantFrom('record', 'record', 'aborted', 'control'),
  timestamp: fc.oneof(
    fc.integer({ min: -1, max: 2 ** 42 }),
    fc.maxSafeInteger(),
    fc.constantFrom(1_795_690_000_000_000_000, 2 ** 63),
  ),
  key: orNull,
  value: orNull,
  headers: fc.array(header, { maxLength: 4 }).map(encodeHeaders),
})

export const entriesFrom = (from: number, entries: readonly Omit<LogEntry, 'offset'>[]): LogEntry[] =>
  entries.map((entry, index) => ({ ...entry, offset: from + index }))

/** A comparable form: every byte, and the order of headers. */
export const contentOf = ({ kind, offset, timestamp, key, value, headers }: LogEntry): unknown => [
  kind,
  offset,
  timestamp,
  key?.toString('hex'),
  value?.toString('hex'),
  headers.bytes.toString('hex'),
]
