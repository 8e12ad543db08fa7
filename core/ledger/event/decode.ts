/**
 * In: a Kafka record. Out: its CloudEvents envelope (type, id, data), or the code under which it is parked.
 * Promises: accepts only strict UTF-8 and strict JSON, in binary and structured mode; ignores everything that is no
 *   CloudEvents attribute; never throws for wrong bytes; the cause has nothing of the content.
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  BATCH_BYTES_MAX,
  BATCH_RECORD_BYTES_MAX,
  DATA_DEPTH_MAX,
  RECORD_VALUE_BYTES_MAX,
} from '../../../schemas/limits.ts'
import { describeValue, typeNameOf } from '../../../schemas/objects.ts'
import { isCalendarDate } from '../../../schemas/values.ts'
import { type FastPayout, parseFastPayout } from './fast-payout.ts'
import { foreignForm } from './foreign-bytes.ts'
import { parseStrictJson, whyNotStrictJson } from './strict-json.ts'

/** `rawName` has the bytes of a name that is not UTF-8 (`name` then has replacement characters); absent otherwise. */
export type Header = readonly [name: string, value: Buffer | null, rawName?: Buffer]

/** Each iteration decodes the headers again. */
export type RecordHeaders = Iterable<Header> & {
  readonly bytes: Buffer
  /** Returns the text of each named header: undefined if absent, null if repeated, without value or not UTF-8. */
  readonly textsOf: (names: readonly Buffer[]) => (string | null | undefined)[]
}

/** `timestamp` is in milliseconds since 1970. */
export type RawRecord = {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: RecordHeaders
}

/** All records of one partition from offset `from` up to, not including, `end`. */
export type Batch = {
  readonly from: number
  readonly end: number
  readonly records: readonly RawRecord[]
  /** The first offset that the log lacks. Such a batch is never taken. */
  readonly missing?: number
  /**
   * The last record, if the broker set its time. `transaction`: a record is part of a transaction, so its time may be
   * long before readers see it.
   */
  readonly appended?: { readonly offset: number; readonly time: number } | 'transaction'
  /** The epoch of the leader that appended the records: it grows with each new leader. Absent in an archive. */
  readonly epoch?: number
}

/** Estimated bytes of a record in memory. */
export const bytesOf = ({ key, value, headers }: RawRecord): number =>
  (key?.length ?? 0) + (value?.length ?? 0) + headers.bytes.length + 100

/**
 * Returns the SHA-256 of a record as the log has it: time, key, value and headers. Names of headers that are not UTF-8
 * count with replacement characters. The formula must not change: hashes are stored.
 */
export const recordHash = ({ timestamp, key, value, headers }: RawRecord): string => {
  const hash = createHash('sha256')
  const add = (bytes: Buffer | null): void => {
    hash.update(`${bytes === null ? 'null' : bytes.length}\n`)
    if (bytes !== null) hash.update(bytes)
  }
  hash.update(`${timestamp}\n`)
  add(key)
  add(value)
  for (const [name, header] of headers) {
    add(Buffer.from(name))
    add(header)
  }
  return hash.digest('hex')
}

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

export type NotDecoded = 'record_undecodable' | 'batch_undecodable'

/** Returns the code under which the record is parked, if it is undecodable. */
export const decode = (record: RawRecord): Envelope | NotDecoded => {
  const read = readEnvelope(record)
  if (typeof read !== 'string') return read
  return undecodableBatchOf(record) ? 'batch_undecodable' : 'record_undecodable'
}

/** Says why a record is undecodable, in words that have nothing of its content. Undefined if it is decodable. */
export const whyUndecodable = (record: RawRecord): string | undefined => {
  const read = readEnvelope(record)
  return typeof read === 'string' ? read : undefined
}

/** Returns what is wrong instead, if the record is undecodable. */
const readEnvelope = (record: RawRecord): Envelope | string => {
  const { value } = record
  if (value === null) return 'value: expected JSON, got no value'
  if (value.length > RECORD_VALUE_BYTES_MAX) {
    return `value: expected at most ${RECORD_VALUE_BYTES_MAX} bytes, got ${value.length}`
  }
  if (!isUtf8(value))
    return `value: expected JSON in UTF-8, got ${foreignForm(value)?.name ?? 'bytes that are not UTF-8'}`
  const [contentType, ...attributes] = record.headers.textsOf(headerNames)
  if (contentType === null) return notOnce('content-type')
  if (contentType === undefined || isMediaType(contentType, 'application/json')) return decodeBinary(attributes, value)
  if (isMediaType(contentType, 'application/cloudevents+json')) return decodeStructured(value)
  const got = otherTypes.find(type => isMediaType(contentType, type)) ?? 'another content type'
  return `header content-type: expected application/json, application/cloudevents+json or none, got ${got}`
}

const attributeNames = ['specversion', 'id', 'type', 'source', 'time'] as const
type AttributeName = (typeof attributeNames)[number]
const headerNames = ['content-type', ...attributeNames.map(name => `ce_${name}`)].map(name => Buffer.from(name))

/** Content types that clients are known to write. Only these are named: any other text is content of the record. */
const otherTypes = [
  'application/cloudevents',
  'application/cloudevents-batch+json',
  'application/cloudevents+avro',
  'application/cloudevents+protobuf',
  'application/octet-stream',
  'application/avro',
  'application/protobuf',
  'application/x-protobuf',
  'application/xml',
  'text/plain',
  'text/json',
]

const notOnce = (header: string): string => `header ${header}: expected once, with a text in UTF-8`

const decodeBinary = (attributes: readonly (string | null | undefined)[], value: Buffer): Envelope | string => {
  const notText = attributes.indexOf(null)
  if (notText >= 0) return notOnce(`ce_${attributeNames[notText]}`)
  const [specversion, id, type, source, time] = attributes
  // The same result as the full path, or undefined.
  const plain = type ? parseFastPayout(type, value.toString('utf8')) : undefined
  const parsed = plain ? { value: plain.data } : parseStrictJson(value, DATA_DEPTH_MAX)
  if (parsed === undefined) return notJson(value, DATA_DEPTH_MAX)
  const read = envelope({ specversion, id, type, source, time }, parsed.value, 'header ce_')
  if (typeof read === 'string' && specversion === undefined && isStructured(parsed.value))
    return `${read}; ${STRUCTURED}`
  return plain && typeof read !== 'string' ? { ...read, plain } : read
}

/** Some clients write an event in structured mode without its content type. */
const isStructured = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, 'specversion')
const STRUCTURED = 'the value is an event in structured mode, which needs content-type application/cloudevents+json'

const notJson = (value: Buffer, depthMax: number): string =>
  `value: expected strict JSON, got ${foreignForm(value)?.name ?? whyNotStrictJson(value, depthMax)}`

/** The envelope is level 0 of nesting, so that its data object is level 1, as in binary mode. */
const decodeStructured = (value: Buffer): Envelope | string => {
  const parsed = parseStrictJson(value, DATA_DEPTH_MAX + 1)
  if (parsed === undefined) return notJson(value, DATA_DEPTH_MAX + 1)
  if (typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    return `value: expected a CloudEvents event as a JSON object, got ${typeNameOf(parsed.value)}`
  }
  // In the CloudEvents JSON format, a null attribute is not set.
  const attributes: Record<string, unknown> = { __proto__: null }
  for (const [name, value] of Object.entries(parsed.value)) if (value !== null) attributes[name] = value
  const { datacontenttype } = attributes
  if (datacontenttype !== undefined) {
    if (typeof datacontenttype !== 'string' || !isMediaType(datacontenttype, 'application/json'))
      return 'attribute datacontenttype: expected application/json or none, got another one'
  }
  return envelope(attributes, attributes.data, 'attribute ')
}

/** @param where how the attributes are called in this mode, for messages */
const envelope = (attributes: Record<string, unknown>, data: unknown, where: string): Envelope | string => {
  const { specversion, id, type, source, time } = attributes
  const wrong = (name: AttributeName, expected: string): string => {
    const got = attributes[name]
    return `${where}${name}: expected ${expected}, got ${got === undefined ? 'nothing' : describeValue(got)}`
  }
  if (specversion !== '1.0') return wrong('specversion', '1.0')
  if (!isAttribute(id)) return wrong('id', ATTRIBUTE)
  if (!isAttribute(type)) return wrong('type', ATTRIBUTE)
  if (!isUriReference(source)) return wrong('source', 'a URI reference (RFC 3986)')
  if (time !== undefined && !isTimestamp(time)) return wrong('time', 'an instant (RFC 3339) or nothing')
  return { type, id, data }
}

const ATTRIBUTE = 'a text that is not empty, without control characters'

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

/** The reasons, which are stored, and what was expected and given. */
const unreadableReasons = {
  not_decompressed: ['bytes that can be decompressed', 'damaged ones'],
  too_large: [`at most ${BATCH_BYTES_MAX} bytes when it is decompressed`, 'more'],
  record_too_large: [`records of at most ${BATCH_RECORD_BYTES_MAX} bytes`, 'a larger one'],
  records_malformed: ['records as Kafka defines them', 'a malformed one'],
  count_wrong: ['as many records as it states', 'another number'],
  codec_unknown: ['a known compression', 'an unknown one'],
} as const
export type UnreadableReason = keyof typeof unreadableReasons

/**
 * A batch that cannot be read is in the log of a stream as records: one for each of its offsets. A header names the
 * batch and the reason. The first record has the bytes of the batch that stand for its records, compressed as they are
 * in the log.
 *
 * Each of them is parked with `batch_undecodable`. An archive keeps them, and a restore appends them, like any other
 * record: so the log has the same decisions afterwards, whatever a broker thinks of the batch. A publisher who sends
 * such a record has parked that record, and nothing else.
 */
export type UndecodableBatch = {
  /** The first and the last offset. */
  readonly first: number
  readonly last: number
  readonly codec: number
  readonly reason: UnreadableReason
}

export const UNDECODABLE_BATCH_HEADER = 'commission-undecodable-batch'
const batchHeader = [Buffer.from(UNDECODABLE_BATCH_HEADER)]

/** The text of the header. */
export const describeBatch = ({ first, last, codec, reason }: UndecodableBatch): string =>
  `${first} ${last} ${codec} ${reason}`

/** Returns the batch that a record stands for; undefined for any other record. */
export const undecodableBatchOf = ({
  offset,
  headers,
}: Pick<RawRecord, 'offset' | 'headers'>): UndecodableBatch | undefined => {
  const [text] = headers.textsOf(batchHeader)
  if (!text) return undefined
  const [, first, last, codec, reason] = /^(\d{1,16}) (\d{1,16}) (\d) ([a-z_]+)$/.exec(text) ?? []
  if (!reason || !isReason(reason)) return undefined
  const batch = { first: Number(first), last: Number(last), codec: Number(codec), reason }
  return batch.first <= offset && offset <= batch.last ? batch : undefined
}

const isReason = (text: string): text is UnreadableReason => Object.hasOwn(unreadableReasons, text)

/** Says what is wrong with a batch. */
export const sayUndecodable = ({ first, last, codec, reason }: UndecodableBatch): string => {
  const [expected, got] = unreadableReasons[reason]
  return `batch of offsets ${first} to ${last}, compression ${codecNames[codec] ?? codec}: expected ${expected}, got ${got}`
}

const codecNames = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
