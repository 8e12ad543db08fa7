/**
 * Reads the lines of a file of records or events. In: lines of JSON. Out: the Kafka record that each stands for.
 *
 * A line is one of these:
 * - a record, as in contract/records.ndjson: an object with `value`, and perhaps `key`, `headers`, `partition`,
 *   `timestamp` and `stream`. Bytes are a text, or `{"base64": ...}`;
 * - an event: an object with `type` and `data`; with `specversion` it is a CloudEvents event in the JSON format;
 * - with a type given for all lines: the data of an event.
 */
import { isDeepStrictEqual } from 'node:util'
import { type ForeignKind, foreignForm, type RawRecord, whyNotStrictJson } from '../../core/ledger/index.ts'
import { encodeHeaders } from '../../core/log/index.ts'
import { eventSchemas, type Stream } from '../../schemas/events.ts'
import { DATA_DEPTH_MAX } from '../../schemas/limits.ts'
import { typeNameOf } from '../../schemas/objects.ts'
import { KEYS_PARTITION, partitionOf } from '../../schemas/partition.ts'
import { rangeOf } from '../archive/redaction/json-ranges.ts'
import { CommandError } from '../failures.ts'

export type ReadRecord = {
  readonly stream: Stream
  readonly partition: number
  readonly record: RawRecord
}

type ReadOptions = {
  /** The event type of all lines, which are data alone. */
  readonly type: string | undefined
  /** Of the events topic. */
  readonly partitions: number
  /** Milliseconds since 1970, for lines without a timestamp. */
  readonly now: number
}

const CARRIAGE_RETURN = 0x0d

/** @param lineNumber for messages. @throws CommandError if the line is none of the three */
export const readLine = (text: Buffer, lineNumber: number, options: ReadOptions): ReadRecord => {
  const line = text.at(-1) === CARRIAGE_RETURN ? text.subarray(0, -1) : text
  const { type } = options
  assertOneJson(line, lineNumber)
  if (type !== undefined) return recordOf(eventParts(type, line, orgIn(parsed(line)), lineNumber), options)
  const given = parsed(line)
  if (isObject(given) && 'value' in given) return recordOf(givenParts(given, lineNumber), options)
  if (isObject(given) && typeof given.type === 'string' && 'data' in given) {
    const key = orgIn(given.data)
    if (!('specversion' in given)) {
      const data = dataIn(line)
      if (!isDeepStrictEqual(parsed(data), given.data)) throw wrong(lineNumber, 'data', 'there once')
      return recordOf(eventParts(given.type, data, key, lineNumber), options)
    }
    const headers: Parts['headers'] = [['content-type', Buffer.from('application/cloudevents+json')]]
    return recordOf({ type: given.type, key, headers, value: line }, options)
  }
  throw new CommandError(`line ${lineNumber}: expected ${LINE}, got ${describeLine(line, given)}`)
}

const LINE = 'an object with `value` (a record) or with `type` and `data` (an event); --type for data alone'

const describeLine = (line: Buffer, given: unknown): string => {
  if (Array.isArray(given)) return `a list of ${given.length} items: write each in a line of its own (jq -c '.[]' FILE)`
  if (given !== undefined) return isObject(given) ? 'an object without them' : typeNameOf(given)
  return whyNotStrictJson(line, DATA_DEPTH_MAX)
}

/** Files that are no lines of JSON in UTF-8, as tools write them. @throws CommandError that says which, and the mend */
const assertOneJson = (line: Buffer, lineNumber: number): void => {
  const expected = `line ${lineNumber}: expected JSON in UTF-8, one record in each line, got`
  const form = foreignForm(line)
  if (form !== undefined) throw new CommandError(`${expected} ${form.name}: ${mends[form.kind]}`)
  const text = line.toString('latin1').trim()
  if (text !== '{' && text !== '[') return
  const mend = text === '{' ? 'jq -c . FILE' : "jq -c '.[]' FILE"
  throw new CommandError(`${expected} ${text === '{' ? 'a record' : 'a list'} over several lines: ${mend} writes lines`)
}

const AS_UTF8 = 'write it as UTF-8 without a byte-order mark (PowerShell 7: -Encoding utf8NoBOM)'
const mends: Readonly<Record<ForeignKind, string>> = {
  'byte-order mark': AS_UTF8,
  'utf-16': AS_UTF8,
  compressed: 'decompress it first',
  framed: 'write the JSON alone',
}

type Parts = {
  /** The event type, to find the stream. */
  readonly type: string | undefined
  readonly key: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
  readonly value: Buffer | null
  readonly stream?: Stream
  readonly partition?: number
  readonly timestamp?: number
}

const recordOf = (parts: Parts, { partitions, now }: ReadOptions): ReadRecord => {
  const { type, key, value, headers, timestamp = now } = parts
  const stream = parts.stream ?? (Object.hasOwn(eventSchemas['api-keys'], type ?? '') ? 'api-keys' : 'events')
  const ofEvents = key === null ? 0 : partitionOf(key.toString('utf8'), partitions)
  const chosen = stream === 'api-keys' ? KEYS_PARTITION : ofEvents
  const record = { offset: 0, timestamp, key, value, headers: encodeHeaders(headers) }
  return { stream, partition: parts.partition ?? chosen, record }
}

/** The parts of an event in binary mode. */
const eventParts = (type: string, data: Buffer, key: Buffer | null, lineNumber: number): Parts => ({
  type,
  key,
  headers: Object.entries({
    ce_specversion: '1.0',
    ce_id: `line-${lineNumber}`,
    ce_source: '/validate',
    ce_type: type,
    'content-type': 'application/json',
  }).map(([name, text]) => [name, Buffer.from(text)] as const),
  value: data,
})

const givenParts = (given: Readonly<Record<string, unknown>>, lineNumber: number): Parts => {
  const { key = null, value, headers = [], stream, partition, timestamp } = given
  const pairs = Array.isArray(headers) ? headers : Object.entries(isObject(headers) ? headers : {})
  const named = pairs.map((pair: unknown): Parts['headers'][number] => {
    if (!Array.isArray(pair) || typeof pair[0] !== 'string')
      throw wrong(lineNumber, 'headers', 'pairs of a name and a value')
    return [pair[0], bytesOf(pair[1], lineNumber, 'headers')]
  })
  if (stream !== undefined && stream !== 'events' && stream !== 'api-keys') {
    throw wrong(lineNumber, 'stream', 'events or api-keys')
  }
  for (const [name, number] of Object.entries({ partition, timestamp })) {
    if (number !== undefined && !(Number.isSafeInteger(number) && Number(number) >= 0)) {
      throw wrong(lineNumber, name, 'a whole number')
    }
  }
  const types = named.filter(([name]) => name === 'ce_type').map(([, type]) => type?.toString('utf8'))
  return {
    type: types[0],
    key: bytesOf(key, lineNumber, 'key'),
    headers: named,
    value: bytesOf(value, lineNumber, 'value'),
    ...(stream !== undefined && { stream }),
    ...(partition !== undefined && { partition: Number(partition) }),
    ...(timestamp !== undefined && { timestamp: Number(timestamp) }),
  }
}

const bytesOf = (given: unknown, lineNumber: number, field: string): Buffer | null => {
  if (given === null) return null
  if (typeof given === 'string') return Buffer.from(given)
  if (isObject(given) && typeof given.base64 === 'string') return Buffer.from(given.base64, 'base64')
  throw wrong(lineNumber, field, 'a text, {"base64": ...} or null')
}

const wrong = (lineNumber: number, field: string, expected: string): CommandError =>
  new CommandError(`line ${lineNumber}: \`${field}\` must be ${expected}`)

const orgIn = (data: unknown): Buffer | null =>
  isObject(data) && typeof data.org_id === 'string' ? Buffer.from(data.org_id) : null

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The bytes of `data` as they are, so that a name that occurs twice is found. */
const dataIn = (line: Buffer): Buffer => {
  // A character for each byte: positions in the text are positions in the line.
  const { start, end } = rangeOf(line.toString('latin1'), ['data']) ?? { start: 0, end: 0 }
  return line.subarray(start, end)
}

/** Undefined if the line is no JSON: the projector decides then. */
const parsed = (line: Buffer): unknown => {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined
  }
}
