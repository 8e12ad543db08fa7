/**
 * In: the records of an archive, in order. Out: for a record with personal texts of one rep that were published in the
 *   open, its value with other texts in their place.
 * Promises: a text becomes a sealed text that nobody can open, because nothing is in it: its bytes follow from the
 *   record, the field, and a number. Equal texts in a field of a record id stay equal, and different ones different, so
 *   every event is applied, a duplicate or parked as before. All other characters stay. Sealed texts stay: to destroy
 *   their own key erases them.
 * Can go wrong: the record would be decided differently, or becomes too large → CommandError, nothing is written.
 */
import { hash } from 'node:crypto'
import { RECORD_VALUE_BYTES_MAX } from '../../../schemas/limits.ts'
import {
  isReserved,
  parseSealedText,
  SEAL_NONCE_BYTES,
  SEAL_TAG_BYTES,
  SEALED_PREFIX,
} from '../../../schemas/sealed/sealed-text.ts'
import { CommandError } from '../../failures.ts'
import { decode, type PartitionSource, type RawRecord, validate } from '../../projector.ts'
import { type Range, rangeOf, replaceRanges } from './json-ranges.ts'

export type RedactedSubject = { readonly org: string; readonly rep: string; readonly keyId: string }
/** The fields that differ, `value` if the whole value does, and the record with the other texts. */
export type RedactedRecord = {
  readonly fields: readonly string[]
  readonly redacted: <Record extends RawRecord>(record: Record) => Record
}

export type Redactor = {
  /** Undefined if the record has no personal text of the subject in the open. */
  readonly redact: (record: RawRecord, source: PartitionSource) => RedactedRecord | undefined
  /** The sealed texts that were put in, each once. */
  readonly sealed: () => readonly string[]
}

type Found = Range & { readonly field: string; readonly value: unknown }

/** A value that is no JSON, in place of one that cannot be decoded: it is parked as before. */
const UNDECODABLE = Buffer.from('redacted')
/** Replaces a value that is invalid in its field. This value is invalid there, too. */
const INVALID = '0'

export const createRedactor = (subject: RedactedSubject): Redactor => {
  const { rep, keyId } = subject
  const numbers = new Map<string, Map<string, number>>()
  const sealed = new Set<string>()

  /** Numbers the different texts of a field of a record id, from 1 on. */
  const numberOf = (location: string, text: string): number => {
    const texts = numbers.get(location) ?? new Map<string, number>()
    numbers.set(location, texts)
    const number = texts.get(text) ?? texts.size + 1
    texts.set(text, number)
    return number
  }
  const replacementOf = (id: string, { field, value }: Found): string => {
    const location = `${id}\n${field}`
    const number = numberOf(location, String(value))
    // A malformed sealed text is parked. Replace it with another malformed one.
    if (isReserved(String(value))) return `${SEALED_PREFIX}${number}`
    const bytes = hash('sha256', `${keyId}\n${location}\n${number}`, 'buffer')
    return `${SEALED_PREFIX}${keyId}:${bytes.subarray(0, SEAL_NONCE_BYTES + SEAL_TAG_BYTES).toString('base64url')}`
  }

  const redact: Redactor['redact'] = (record, source) => {
    const { value } = record
    if (value === null || !mayName(value, rep)) return undefined
    const envelope = decode(record)
    if (envelope === 'undecodable') {
      return mentions(record, subject) ? checked(record, source, UNDECODABLE, ['value']) : undefined
    }
    const json = value.toString('utf8')
    const found = personalTexts(json, isStructured(record) ? ['data'] : [], envelope.data, record, subject)
    if (found.length === 0) return undefined
    const { id } = envelope.data as { id?: unknown }
    const location = typeof id === 'string' ? id : `${rep} at ${source.partition}:${record.offset}`
    const fields = found.map(({ field }) => field)
    const texts = found.map(one => (typeof one.value === 'string' ? replacementOf(location, one) : undefined))
    const redacted = withTexts(json, found, texts)
    // If the outcome differs, one of the replaced values was the reason why the record is parked. Then replace all of
    // them with an invalid value.
    const isAsBefore = outcomeOf(record, source, redacted) === outcomeOf(record, source, value)
    const result = checked(record, source, isAsBefore ? redacted : withTexts(json, found, []), fields)
    if (isAsBefore) for (const text of texts) if (text !== undefined && parseSealedText(text)) sealed.add(text)
    return result
  }
  return { redact, sealed: () => [...sealed].sort() }
}

/** The JSON with these texts in place of the found values. A value without a text becomes invalid. */
const withTexts = (json: string, found: readonly Found[], texts: readonly (string | undefined)[]): Buffer => {
  const textAt = (index: number): string => (texts[index] === undefined ? INVALID : JSON.stringify(texts[index]))
  return Buffer.from(
    replaceRanges(
      json,
      found.map((one, index) => ({ ...one, by: textAt(index) })),
    ),
  )
}

/** The type of the event that the record has with this value, or the code that parks it. */
const outcomeOf = (record: RawRecord, source: PartitionSource, value: Buffer): string => {
  const changed = { ...record, value }
  const decoded = decode(changed)
  if (decoded === 'undecodable') return decoded
  const event = validate(decoded, changed, source)
  return typeof event === 'string' ? event : event.type
}

/** @throws CommandError if the record would be decided differently with this value, or becomes too large */
const checked = (
  record: RawRecord,
  source: PartitionSource,
  value: Buffer,
  fields: readonly string[],
): RedactedRecord => {
  const where = `offset ${record.offset} of partition ${source.partition}`
  if (value.length > RECORD_VALUE_BYTES_MAX) {
    throw new CommandError(`the record at ${where} would have ${value.length} bytes: it is too large to be redacted`)
  }
  const before = outcomeOf(record, source, record.value ?? value)
  const after = outcomeOf(record, source, value)
  if (before === after) return { fields, redacted: record => ({ ...record, value }) }
  throw new CommandError(`the record at ${where} would be decided differently: ${before} became ${after}`)
}

/** The personal fields of the subject whose value is neither null, nor empty, nor sealed. */
const personalTexts = (
  json: string,
  prefix: readonly string[],
  data: unknown,
  { key }: RawRecord,
  { org, rep }: RedactedSubject,
): Found[] => {
  if (typeof data !== 'object' || data === null) return []
  const { id, rep_id, org_id }: { id?: unknown; rep_id?: unknown; org_id?: unknown } = data
  const owner = typeof org_id === 'string' ? org_id : key?.toString('latin1')
  if (owner !== org) return []
  const fields = [
    ...(id === rep ? ['name', 'email'] : []),
    ...(rep_id === rep ? ['destination.label', 'destination'] : []),
  ]
  const found = fields.flatMap(field => {
    const range = rangeOf(json, [...prefix, ...field.split('.')])
    if (range === undefined) return []
    const value: unknown = JSON.parse(json.slice(range.start, range.end))
    const isEmpty = value === null || value === ''
    const isSealed = typeof value === 'string' && parseSealedText(value) !== undefined
    return isEmpty || isSealed ? [] : [{ ...range, field, value }]
  })
  // A destination that is no object has its text at its own path.
  return found.filter(
    ({ field, value }) => field !== 'destination' || typeof value !== 'object' || Array.isArray(value),
  )
}

/** Nearly no record is about the rep. An id may be written with escapes. */
const mayName = (value: Buffer, rep: string): boolean => value.includes(rep) || value.includes('\\u')

const isStructured = ({ headers }: RawRecord): boolean => {
  const [type] = headers.textsOf([Buffer.from('content-type')])
  return type?.split(';', 1)[0]?.trim().toLowerCase() === 'application/cloudevents+json'
}

/** Whether a record that cannot be decoded has the ids of the subject in its bytes. */
const mentions = ({ key, value }: RawRecord, { org, rep }: RedactedSubject): boolean => {
  const text = value?.toString('latin1') ?? ''
  return hasId(text, rep) && (key?.toString('latin1') === org || hasId(text, org))
}
const hasId = (text: string, id: string): boolean => new RegExp(`(?<![0-9A-Za-z_])${id}(?![0-9A-Za-z])`).test(text)
