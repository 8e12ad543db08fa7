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
import { RECORD_VALUE_BYTES_MAX } from '../../schemas/limits.ts'
import {
  isReserved,
  parseSealedText,
  SEAL_NONCE_BYTES,
  SEAL_TAG_BYTES,
  SEALED_PREFIX,
} from '../../schemas/sealed/sealed-text.ts'
import { CommandError } from '../failures.ts'
import { decode, type PartitionSource, type RawRecord, validate } from '../projector.ts'
import { type Range, rangeOf, replaceRanges } from './json-ranges.ts'

export type RedactedSubject = { readonly org: string; readonly rep: string; readonly keyId: string }
/** The value of a record in place of another one, and the fields that differ; `value` if the whole value does. */
export type RedactedValue = { readonly value: Buffer; readonly fields: readonly string[] }

export type Redactor = {
  /** Undefined if the record has no personal text of the subject in the open. */
  readonly redact: (record: RawRecord, source: PartitionSource) => RedactedValue | undefined
  /** The sealed texts that were put in, each once. */
  readonly sealed: () => readonly string[]
}

type Found = Range & { readonly field: string; readonly value: unknown }

/** A value that is no JSON, in place of one that cannot be decoded: it is parked as before. */
const UNDECODABLE = Buffer.from('redacted')
/** In place of a value that its field may not have: it may not have this one, either. */
const INVALID = '0'

export const createRedactor = (subject: RedactedSubject): Redactor => {
  const { rep, keyId } = subject
  const numbers = new Map<string, Map<string, number>>()
  const sealed = new Set<string>()

  /** Counts the different texts of a field of a record id. */
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
    // A broken sealed text is parked, and this one is broken, too.
    if (isReserved(String(value))) return `${SEALED_PREFIX}${number}`
    const bytes = hash('sha256', `${keyId}\n${location}\n${number}`, 'buffer')
    return `${SEALED_PREFIX}${keyId}:${bytes.subarray(0, SEAL_NONCE_BYTES + SEAL_TAG_BYTES).toString('base64url')}`
  }

  const redact: Redactor['redact'] = (record, source) => {
    const { value } = record
    if (value === null || !mayName(value, rep)) return undefined
    const envelope = decode(record)
    if (envelope === 'undecodable') return mentions(record, subject) ? checked(UNDECODABLE, ['value']) : undefined
    const json = value.toString('utf8')
    const found = personalTexts(json, isStructured(record) ? ['data'] : [], envelope.data, record, subject)
    if (found.length === 0) return undefined
    const { id } = envelope.data as { id?: unknown }
    const location = typeof id === 'string' ? id : `${rep} at ${source.partition}:${record.offset}`
    const fields = found.map(({ field }) => field)
    const texts = found.map(one => (typeof one.value === 'string' ? replacementOf(location, one) : undefined))
    const redacted = replaced(texts)
    // Else one of the values is the reason why the record is parked.
    const isAsBefore = verdictOf(redacted) === verdictOf(value)
    const result = checked(isAsBefore ? redacted : replaced([]), fields)
    if (isAsBefore) for (const text of texts) if (text !== undefined && parseSealedText(text)) sealed.add(text)
    return result

    function replaced(by: readonly (string | undefined)[]): Buffer {
      const text = (index: number): string => (by[index] === undefined ? INVALID : JSON.stringify(by[index]))
      return Buffer.from(
        replaceRanges(
          json,
          found.map((one, index) => ({ ...one, by: text(index) })),
        ),
      )
    }
    function verdictOf(bytes: Buffer): string {
      const changed = { ...record, value: bytes }
      const decoded = decode(changed)
      if (decoded === 'undecodable') return decoded
      const event = validate(decoded, changed, source)
      return typeof event === 'string' ? event : event.type
    }
    function checked(bytes: Buffer, changed: readonly string[]): RedactedValue {
      const where = `offset ${record.offset} of partition ${source.partition}`
      if (bytes.length > RECORD_VALUE_BYTES_MAX) {
        throw new CommandError(
          `the record at ${where} would have ${bytes.length} bytes: it is too large to be redacted`,
        )
      }
      const [before, after] = [verdictOf(value ?? bytes), verdictOf(bytes)]
      if (before === after) return { value: bytes, fields: changed }
      throw new CommandError(`the record at ${where} would be decided differently: ${before} became ${after}`)
    }
  }
  return { redact, sealed: () => [...sealed].sort() }
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
