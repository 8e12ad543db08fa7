/**
 * In: the records of an archive, in order. Out: for a record with personal texts of one rep that were published in the
 *   open, the record with other texts in their place.
 * Promises: a text becomes a sealed text that nobody can open, because nothing is in it: its bytes follow from the
 *   record, the field, and a number. Equal texts in a field of a record id stay equal, and different ones different, so
 *   every event is applied, a duplicate or parked as before. Sealed texts stay: to destroy their own key erases them.
 *   Of a record about the rep, everything that no decision reads is removed. A record that cannot be decoded and names
 *   the rep is replaced whole. One that may name the rep is told, unless the caller has named it: then it is replaced.
 * Can go wrong: a record would be decided differently, or becomes too large → RedactionRefused, nothing is written.
 */
import { hash } from 'node:crypto'
import {
  decode,
  type PartitionSource,
  type RawRecord,
  UNDECODABLE_BATCH_HEADER,
  validate,
} from '../../../core/ledger/index.ts'
import { encodeHeaders } from '../../../core/log/index.ts'
import { schemaOfType } from '../../../schemas/events.ts'
import { RECORD_VALUE_BYTES_MAX } from '../../../schemas/limits.ts'
import {
  isReserved,
  parseSealedText,
  SEAL_NONCE_BYTES,
  SEAL_TAG_BYTES,
  SEALED_PREFIX,
} from '../../../schemas/sealed/sealed-text.ts'
import { isId } from '../../../schemas/values.ts'
import { CommandError } from '../../failures.ts'
import { concernOf, REDACTED } from '../../subjects/person-in-bytes.ts'
import { type Range, rangeOf, replaceRanges } from './json-ranges.ts'
import { knownHeaders, type Replacement, unknownAttributes, unknownMembers, withoutNames } from './unknown-content.ts'

/** This archive cannot be redacted as asked. An archive that cannot be read is another error. */
export class RedactionRefused extends CommandError {}

export type RedactedSubject = { readonly org: string; readonly rep: string; readonly keyId: string }
/** The fields that differ, `value` if the whole value does, and the record with the other texts. */
export type RedactedRecord = {
  readonly fields: readonly string[]
  readonly redacted: <Record extends RawRecord>(record: Record) => Record
}

export type Redactor = {
  /**
   * Undefined if the record stays as it is; `unclear` if it may concern the rep, and nobody can tell.
   * @param isNamed whether the operator wants it replaced
   */
  readonly redact: (
    record: RawRecord,
    source: PartitionSource,
    isNamed?: boolean,
  ) => RedactedRecord | 'unclear' | undefined
  /** The sealed texts that were put in, each once. */
  readonly sealed: () => readonly string[]
  /** The names and e-mail addresses that were replaced. */
  readonly replaced: () => readonly string[]
}

type Found = Range & { readonly field: string; readonly value: unknown }
type Ids = {
  readonly id?: unknown
  readonly rep_id?: unknown
  readonly org_id?: unknown
  readonly reverses_id?: unknown
}

/** Replaces a value that is invalid in its field. This value is invalid there, too. */
const INVALID = '0'

export const createRedactor = (subject: RedactedSubject): Redactor => {
  const { org, rep, keyId } = subject
  const numbers = new Map<string, Map<string, number>>()
  const sealed = new Set<string>()
  const replaced = new Set<string>()
  /** Ids of payroll records of the rep: a void names no rep. */
  const payments = new Set<string>()

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

  /** The data says whom a record is about. If its organization is another one than the record key, either counts. */
  const isAbout = (data: Ids, { key }: RawRecord): boolean => {
    const isOfOrg = data.org_id === org || key?.toString('latin1') === org
    return isOfOrg && (data.id === rep || data.rep_id === rep || payments.has(String(data.reverses_id)))
  }

  const redactEvent = (record: RawRecord, source: PartitionSource, type: string, data: Ids, isNamed: boolean) => {
    const json = record.value?.toString('utf8') ?? ''
    const structured = isStructured(record)
    const path = structured ? ['data'] : []
    const schema = new Map(Object.entries(schemaOfType)).get(type)
    const unknown = [
      ...(schema === undefined ? [] : unknownMembers(json, path, schema)),
      ...(structured ? unknownAttributes(json) : []),
      ...(isNamed && structured ? invented(json) : []),
    ]
    const personal = isAbout(data, record) ? personalTexts(json, path, data, rep) : []
    // A field that the type of the event does not have is replaced with its name.
    const found = personal.filter(one => !unknown.some(({ start, end }) => start <= one.start && one.end <= end))
    const location = typeof data.id === 'string' ? data.id : `${rep} at ${source.partition}:${record.offset}`
    const texts = found.map(one => (typeof one.value === 'string' ? replacementOf(location, one) : undefined))
    // If the outcome differs, one of the replaced values was the reason why the record is parked. Then replace all of
    // them with an invalid value.
    const change = changeOf(record, structured, isNamed)
    const withTexts = (all: typeof texts) => [...unknown, ...found.map((one, at) => ({ ...one, by: jsonOf(all[at]) }))]
    const isAsBefore = outcomeOf(change(record, withTexts(texts)), source) === outcomeOf(record, source)
    const replacements = withTexts(isAsBefore ? texts : [])
    const fields = [...found.map(({ field }) => field), ...(unknown.length > 0 ? ['unknown'] : [])]
    const result = checked(record, source, [...fields, ...change.fields], one => change(one, replacements))
    for (const text of isAsBefore ? texts : []) if (text !== undefined && parseSealedText(text)) sealed.add(text)
    for (const { field, value } of personal) {
      if ((field === 'name' || field === 'email') && typeof value === 'string') replaced.add(value)
    }
    return result
  }

  const redact: Redactor['redact'] = (record, source, isNamed = false) => {
    const envelope = decode(record)
    if (typeof envelope === 'string') {
      const concern = isNamed ? 'named' : concernOf(record, subject)
      // The bytes of a batch may be those of others, too: the operator says what becomes of them.
      const isBatch = batchHeaders(record).length > 0
      if (concern === 'unread' || (concern === 'named' && isBatch && !isNamed)) return 'unclear'
      return concern === 'named' ? checked(record, source, ['record'], blankRecord) : undefined
    }
    const data: Ids = typeof envelope.data === 'object' && envelope.data !== null ? envelope.data : {}
    const { id } = data
    if (typeof id === 'string' && data.rep_id === rep && isAbout(data, record)) payments.add(id)
    const isKnown = Object.hasOwn(schemaOfType, envelope.type)
    if (isKnown && (isAbout(data, record) || (isNamed && !isParkedAlone(record, source)))) {
      return redactEvent(record, source, envelope.type, data, isNamed)
    }
    if (!isNamed && !mayConcern(record, subject)) return undefined
    if (!isParkedAlone(record, source)) return undefined
    if (!isNamed && isAboutOther(data, rep)) return undefined
    const concern = isNamed ? 'named' : concernOf(record, subject)
    if (concern === 'named') return checked(record, source, ['data'], one => blankData(one, data, isNamed))
    return concern === 'unread' && hasBinaryData(record) ? 'unclear' : undefined
  }
  return { redact, sealed: () => [...sealed].sort(), replaced: () => [...replaced].sort() }
}

/** A value without a text becomes invalid. */
const jsonOf = (text: string | undefined): string => (text === undefined ? INVALID : JSON.stringify(text))

/** Changes key, headers and value of a record; nothing of them that a decision reads, except the given ranges. */
const changeOf = (given: RawRecord, structured: boolean, isNamed: boolean) => {
  const key = otherKey(given)
  const known = knownHeaders(given, structured)
  const headers = isNamed && !structured ? withoutNames(known ?? given.headers) : known
  const change = <Record extends RawRecord>(record: Record, replacements: readonly Replacement[]): Record => ({
    ...record,
    ...(key !== undefined && { key }),
    ...(headers !== undefined && { headers }),
    ...(replacements.length > 0 && {
      value: Buffer.from(replaceRanges(record.value?.toString('utf8') ?? '', replacements)),
    }),
  })
  return Object.assign(change, {
    fields: [...(key === undefined ? [] : ['key']), ...(headers === undefined ? [] : ['headers'])],
  })
}

/** A record key that is no organization may be anything. @returns undefined if the key stays */
const otherKey = ({ key }: RawRecord): Buffer | undefined =>
  key === null || key.equals(REDACTED) || isId('org', key.toString('latin1')) ? undefined : REDACTED

/** The value is no JSON: the record is parked as before. */
const blankRecord = <Record extends RawRecord>(record: Record): Record => ({
  ...record,
  key: otherKey(record) ?? record.key,
  value: REDACTED,
  headers: encodeHeaders(batchHeaders(record)),
})
/** They decide the park code. */
const batchHeaders = ({ headers }: RawRecord) =>
  Array.from(headers).filter(([name]) => name === UNDECODABLE_BATCH_HEADER)

/** Of data that is parked, only ids stay. */
const blankData = <Record extends RawRecord>(record: Record, { org_id, id, rep_id }: Ids, isNamed: boolean): Record => {
  const structured = isStructured(record)
  const ids = {
    ...(isId('org', org_id) && { org_id }),
    ...(isId('rep', id) && { id }),
    ...(isId('rep', rep_id) && { rep_id }),
  }
  const { specversion, type, ...names } = structured ? JSON.parse(record.value?.toString('utf8') ?? '') : {}
  const [source, event] = isNamed ? ['redacted', 'redacted'] : [names.source, names.id]
  const value = structured ? { specversion, type, source, id: event, data: ids } : ids
  return changeOf(record, structured, isNamed)({ ...record, value: Buffer.from(JSON.stringify(value)) }, [])
}

/** An invented id and source of the envelope. */
const invented = (json: string): Replacement[] =>
  ['id', 'source'].flatMap(name => {
    const range = rangeOf(json, [name])
    return range === undefined ? [] : [{ ...range, by: '"redacted"' }]
  })

/** The type of the event that the record has, or the code that parks it. */
const outcomeOf = (record: RawRecord, source: PartitionSource): string => {
  const decoded = decode(record)
  if (typeof decoded === 'string') return decoded
  const event = validate(decoded, record, source)
  return typeof event === 'string' ? event : event.type
}

/** Whether the record is parked without a look at others, for its form. Then no decision reads its data. */
const isParkedAlone = (record: RawRecord, source: PartitionSource): boolean =>
  ['type_unknown', 'data_invalid'].includes(outcomeOf(record, source))

/**
 * Undefined if nothing differs.
 * @throws RedactionRefused if the record would be decided differently, or becomes too large
 */
const checked = (
  record: RawRecord,
  source: PartitionSource,
  fields: readonly string[],
  redacted: RedactedRecord['redacted'],
): RedactedRecord | undefined => {
  const after = redacted(record)
  if (isSame(record, after)) return undefined
  const where = `offset ${record.offset} of partition ${source.partition}`
  const { length = 0 } = after.value ?? {}
  if (length > RECORD_VALUE_BYTES_MAX) {
    throw new RedactionRefused(`the record at ${where} would have ${length} bytes: it is too large to be redacted`)
  }
  const [then, now] = [outcomeOf(record, source), outcomeOf(after, source)]
  if (then === now) return { fields, redacted }
  throw new RedactionRefused(`the record at ${where} would be decided differently: ${then} became ${now}`)
}

const isSame = (a: RawRecord, b: RawRecord): boolean =>
  areEqual(a.key, b.key) && areEqual(a.value, b.value) && a.headers.bytes.equals(b.headers.bytes)
const areEqual = (a: Buffer | null, b: Buffer | null): boolean => (a === null || b === null ? a === b : a.equals(b))

/** The personal fields of the rep whose value is neither null, nor empty, nor sealed. */
const personalTexts = (json: string, prefix: readonly string[], { id, rep_id }: Ids, rep: string): Found[] => {
  const fields = [
    ...(id === rep ? ['name', 'email'] : []),
    ...(rep_id === rep ? ['destination.label', 'destination'] : []),
  ]
  const found = fields.flatMap(field => {
    const range = rangeOf(json, [...prefix, ...field.split('.')])
    if (range === undefined) return []
    const value: unknown = JSON.parse(json.slice(range.start, range.end))
    const isEmpty = value === null || value === '' || value === 0
    const isSealed = typeof value === 'string' && parseSealedText(value) !== undefined
    return isEmpty || isSealed ? [] : [{ ...range, field, value }]
  })
  // A destination that is no object has its text at its own path.
  return found.filter(
    ({ field, value }) => field !== 'destination' || typeof value !== 'object' || Array.isArray(value),
  )
}

/** Data that names another rep in its own fields is about that one. */
const isAboutOther = ({ id, rep_id }: Ids, rep: string): boolean =>
  [id, rep_id].some(one => isId('rep', one) && one !== rep)

/** Nearly no record of another organization concerns the rep. An id may be written with escapes. */
const mayConcern = ({ key, value }: RawRecord, { org, rep }: RedactedSubject): boolean => {
  const owner = key?.toString('latin1')
  if (owner === org || !isId('org', owner)) return true
  return value !== null && [rep, '\\u', BINARY_DATA].some(text => value.includes(text))
}

const BINARY_DATA = 'data_base64'
const hasBinaryData = ({ value }: RawRecord): boolean => value?.includes(BINARY_DATA) === true

const isStructured = ({ headers }: RawRecord): boolean => {
  const [type] = headers.textsOf([Buffer.from('content-type')])
  return type?.split(';', 1)[0]?.trim().toLowerCase() === 'application/cloudevents+json'
}
