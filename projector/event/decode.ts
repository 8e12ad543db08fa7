/**
 * In: a Kafka record. Out: its CloudEvents envelope (type, id, data) or `undecodable`.
 * Promises: accepts only strict UTF-8 and strict JSON, in binary and structured mode; ignores everything that is no
 *   CloudEvents attribute; never throws for wrong bytes.
 */
import { isUtf8 } from 'node:buffer'
import { DATA_DEPTH_MAX, RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'
import { isCalendarDate } from '../../schemas/values.ts'
import { type FastPayout, parseFastPayout } from './fast-payout.ts'
import type { RawRecord } from './raw-record.ts'
import { parseStrictJson } from './strict-json.ts'

/**
 * `type` and `id` match the CloudEvents grammar; `data` is any JSON; `plain` is set for a payout in the plain form
 * (`fast-payout.ts`).
 */
export type Envelope = {
  readonly type: string
  readonly id: string
  readonly data: unknown
  readonly plain?: FastPayout
}

export const decode = (record: RawRecord): Envelope | 'undecodable' => {
  const { value } = record
  if (value === null || value.length > RECORD_VALUE_BYTES_MAX || !isUtf8(value)) return 'undecodable'
  const [contentType, ...attributes] = record.headers.textsOf(headerNames)
  if (contentType === null) return 'undecodable'
  if (contentType === undefined || isMediaType(contentType, 'application/json')) return decodeBinary(attributes, value)
  if (isMediaType(contentType, 'application/cloudevents+json')) return decodeStructured(value)
  return 'undecodable'
}

const headerNames = ['content-type', 'ce_specversion', 'ce_id', 'ce_type', 'ce_source', 'ce_time'].map(name =>
  Buffer.from(name),
)

const decodeBinary = (attributes: readonly (string | null | undefined)[], value: Buffer): Envelope | 'undecodable' => {
  if (attributes.includes(null)) return 'undecodable'
  const [specversion, id, type, source, time] = attributes
  const plain = type ? parseFastPayout(type, value.toString('utf8')) : undefined
  const parsed = plain ? { value: plain.data } : parseStrictJson(value, DATA_DEPTH_MAX)
  const read = parsed && envelope({ specversion, id, type, source, time }, parsed.value)
  if (read === undefined || read === 'undecodable') return 'undecodable'
  return plain ? { ...read, plain } : read
}

/** The envelope is level 0 of nesting, so that its data object is level 1, as in binary mode. */
const decodeStructured = (value: Buffer): Envelope | 'undecodable' => {
  const parsed = parseStrictJson(value, DATA_DEPTH_MAX + 1)
  if (typeof parsed?.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) return 'undecodable'
  // In the CloudEvents JSON format, a null attribute is not set.
  const attributes: Record<string, unknown> = { __proto__: null }
  for (const [name, value] of Object.entries(parsed.value)) if (value !== null) attributes[name] = value
  const { datacontenttype } = attributes
  if (datacontenttype !== undefined) {
    if (typeof datacontenttype !== 'string' || !isMediaType(datacontenttype, 'application/json')) return 'undecodable'
  }
  return envelope(attributes, attributes.data)
}

const envelope = (attributes: Record<string, unknown>, data: unknown): Envelope | 'undecodable' => {
  const { specversion, id, type, source, time } = attributes
  if (specversion !== '1.0' || !isAttribute(id) || !isAttribute(type) || !isUriReference(source)) return 'undecodable'
  if (time !== undefined && !isTimestamp(time)) return 'undecodable'
  return { type, id, data }
}

/** A CloudEvents string: not empty, no control characters, no lone surrogates. */
const isAttribute = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.isWellFormed() && !/\p{Cc}/u.test(value)

/** Checks only the characters of a URI-reference (RFC 3986). */
const isUriReference = (value: unknown): boolean =>
  typeof value === 'string' && /^(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/.test(value)

const timeOfDay = /^T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i

/** RFC 3339 as in CloudEvents: T and Z in any case, any number of fraction digits, leap seconds allowed. */
const isTimestamp = (value: unknown): boolean =>
  typeof value === 'string' && isCalendarDate(value.slice(0, 10)) && timeOfDay.test(value.slice(10))

const isMediaType = (text: string, type: string): boolean =>
  text === type || text.split(';', 1)[0]?.trim().toLowerCase() === type
