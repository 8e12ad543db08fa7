/**
 * Finds a person in the bytes of a record, also where no rule of this project can read them.
 * In: a record. Out: whether it concerns the person: it names them, it names others, or nobody can tell.
 * Promises: ids are found as they are, with JSON escapes or percent signs, in UTF-16, in base64 or hexadecimal digits,
 *   and in gzip, zlib or zstd, also in combination.
 * Can go wrong: other forms, such as encryption. Then the answer is `unread`, never `other`.
 */
import { isUtf8 } from 'node:buffer'
import { constants, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'
import { type RawRecord, UNDECODABLE_BATCH_HEADER } from '../../core/ledger/index.ts'
import { isId } from '../../schemas/values.ts'
import { READING_BYTES, READING_DEPTH, SEARCHED_CHARACTERS, WORD_CHARACTERS } from '../limits.ts'

/** A rep of an organization: the person that a text is about. */
export type Subject = { readonly org: string; readonly rep: string }

/** `unread`: the record names nobody whose id can be read, or a rep of this id without an organization. */
export type Concern = 'named' | 'unread' | 'other'

/** For a record that is parked. An event that is decided says whom it is about. */
export const concernOf = (record: Pick<RawRecord, 'key' | 'value' | 'headers'>, { org, rep }: Subject): Concern => {
  const key = record.key?.toString('latin1')
  const isOfOther = isId('org', key) && key !== org
  let [namesRep, namesOrg, namesOtherOrg, namesAnybody] = [false, key === org, isOfOther, false]
  for (const part of partsOf(record)) {
    for (const reading of readingsOf(part)) {
      const text = reading.toString('latin1')
      namesRep ||= hasId(text, rep)
      namesOrg ||= hasId(text, org)
      namesOtherOrg ||= ANY_ORG.test(text) && !hasId(text, org)
      namesAnybody ||= ANY_ID.test(text)
      if (namesRep && namesOrg) return 'named'
    }
  }
  if (namesRep) return namesOtherOrg ? 'other' : 'unread'
  return namesAnybody || isOfOther || !hasContent(record) ? 'other' : 'unread'
}

/** A redaction puts it in place of a value that cannot be decoded, and of a record key that is no organization. */
export const REDACTED = Buffer.from('redacted')

/** Whether there is more than the organization as key, attributes of an event, and what an earlier redaction put in. */
const hasContent = ({ key, value, headers }: Pick<RawRecord, 'key' | 'value' | 'headers'>): boolean =>
  isContent(value) ||
  (isContent(key) && !isId('org', key?.toString('latin1'))) ||
  Array.from(headers).some(([name]) => !own.test(name))
const isContent = (part: Buffer | null): boolean => part !== null && part.length > 0 && !part.equals(REDACTED)
/** Headers of events, and of records that stand for a batch that nobody can read. */
const own = new RegExp(`^(?:content-type|ce_(?:specversion|id|type|source|time)|${UNDECODABLE_BATCH_HEADER})$`)

export type TextSearch = {
  /** Whether one of the texts is in the bytes, in any of the readings. Of JSON, only as it is and with its escapes. */
  readonly isIn: (part: Buffer) => boolean
  readonly searched: number
  /** The number of texts that are too short to be searched for. */
  readonly unsearched: number
}

/** Searches for texts in any case, and however their letters are composed. A short one must be a word of its own. */
export const searchFor = (given: readonly string[]): TextSearch => {
  const texts = [...new Set(given.map(text => folded(text.trim())))].filter(text => text !== '')
  const searched = texts.filter(text => [...text].length >= SEARCHED_CHARACTERS)
  const pattern = new RegExp(searched.map(patternOf).join('|'), 'u')
  const isIn = (part: Buffer): boolean => {
    const isJson = part[0] === OPEN_BRACE && !part.includes('data_base64') && isUtf8(part)
    for (const reading of isJson ? [part, ...unescaped(part)] : readingsOf(part)) {
      if (pattern.test(folded(reading.toString('utf8')))) return true
    }
    return false
  }
  return {
    isIn: searched.length === 0 ? () => false : isIn,
    searched: searched.length,
    unsearched: texts.length - searched.length,
  }
}
const OPEN_BRACE = 0x7b

/**
 * Equal for texts that differ only in the case or the composition of their letters. A Turkish I is one with and without
 * its dot, and Greek capitals may lack their accents.
 */
const folded = (text: string): string =>
  text.normalize('NFKC').toLowerCase().toUpperCase().normalize('NFD').replace(UNWRITTEN, '').normalize('NFC')
const UNWRITTEN = /(?<=I)\u0307|(?<=\p{sc=Grek})\p{M}+/gu

/** The text as it is, and as JSON writes it. */
const patternOf = (text: string): string => {
  const forms = [text, folded(JSON.stringify(text).slice(1, -1))].map(form => form.replace(SYNTAX, '\\$&')).join('|')
  const isWord = [...text].length < WORD_CHARACTERS && !WITHOUT_SPACES.test(text)
  return isWord ? `${BEFORE_WORD}(?:${forms})(?![\\p{L}\\p{M}\\p{N}])` : forms
}
/** The letter of an escape of JSON, such as \n, belongs to no word. */
const BEFORE_WORD = '(?<=^|[^\\p{L}\\p{M}\\p{N}]|\\\\[BFNRT])'
const SYNTAX = /[\\^$.*+?()[\]{}|/]/g
/** Scripts that write words without spaces between them, or join particles to names. */
const WITHOUT_SPACES =
  /[\p{sc=Hani}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Hebr}\p{sc=Arab}]/u

/** All bytes that a publisher has chosen: key, value, names and values of headers. */
export const partsOf = ({ key, value, headers }: Pick<RawRecord, 'key' | 'value' | 'headers'>): Buffer[] => [
  ...(key === null ? [] : [key]),
  ...(value === null ? [] : [value]),
  ...Array.from(headers, ([name, header, rawName]) => [rawName ?? Buffer.from(name), header ?? NOTHING]).flat(),
]
const NOTHING = Buffer.alloc(0)

const hasId = (text: string, id: string): boolean => {
  for (let at = text.indexOf(id); at !== -1; at = text.indexOf(id, at + 1)) {
    if (!/[0-9A-Za-z_]/.test(text[at - 1] ?? '') && !/[0-9A-Za-z]/.test(text[at + id.length] ?? '')) return true
  }
  return false
}
const ANY_ORG = /(?<![0-9A-Za-z_])org_[0-9A-Za-z]/
const ANY_ID = /(?<![0-9A-Za-z_])(?:rep|period|payout|payroll|key)_[0-9A-Za-z]/

/** Yields the bytes, and each form in which they can be read. */
export const readingsOf = function* (bytes: Buffer, budget = { left: READING_BYTES }, depth = 0): Generator<Buffer> {
  if (bytes.length === 0) return
  yield bytes
  budget.left -= bytes.length
  if (depth === READING_DEPTH) return
  for (const form of formsOf(bytes)) {
    if (budget.left <= 0) return
    yield* readingsOf(form, budget, depth + 1)
  }
}

const formsOf = function* (bytes: Buffer): Generator<Buffer> {
  yield* unescaped(bytes)
  if (bytes.includes('%'))
    yield Buffer.from(
      bytes.toString('latin1').replace(PERCENT, (_, code) => characterOf(code)),
      'latin1',
    )
  if (bytes.includes(0)) {
    const even = bytes.subarray(0, bytes.length & ~1)
    yield Buffer.from(even.toString('utf16le'))
    yield Buffer.from(Buffer.from(even).swap16().toString('utf16le'))
    // Of any alignment, and UTF-32.
    yield bytes.filter(byte => byte !== 0) as Buffer
  }
  const unzipped = unzip(bytes)
  if (unzipped !== undefined) yield unzipped
  // JSON may escape the slash, and MIME breaks lines.
  const text = bytes
    .toString('latin1')
    .replace(/\\\//g, '/')
    .replace(/(?:\\[rn]|[\r\n])+/g, '')
  for (const [run] of text.matchAll(HEX)) yield Buffer.from(run, 'hex')
  for (const [run] of text.matchAll(BASE64)) yield Buffer.from(run, 'base64')
}

const unescaped = (bytes: Buffer): Buffer[] =>
  bytes.includes('\\u') ? [Buffer.from(bytes.toString('utf8').replace(ESCAPE, (_, code) => characterOf(code)))] : []

const ESCAPE = /\\u([0-9A-Fa-f]{4})/g
const PERCENT = /%([0-9A-Fa-f]{2})/g
const HEX = /(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){8,}(?![0-9A-Fa-f])/g
const BASE64 = /[0-9A-Za-z+/_-]{11,}/g
const characterOf = (code: string): string => String.fromCharCode(Number.parseInt(code, 16))

/** Also the first part of a stream that is cut off. Undefined if the bytes do not begin as one. */
const unzip = (bytes: Buffer): Buffer | undefined => {
  const options = { maxOutputLength: READING_BYTES }
  const [first = 0, second = 0] = bytes
  try {
    if (first === 0x1f && second === 0x8b) return gunzipSync(bytes, { ...options, finishFlush: constants.Z_SYNC_FLUSH })
    if (first === 0x78 && (first * 256 + second) % 31 === 0) {
      return inflateSync(bytes, { ...options, finishFlush: constants.Z_SYNC_FLUSH })
    }
    if (bytes.length >= 4 && bytes.readUInt32LE(0) === ZSTD) return zstdDecompressSync(bytes, options)
  } catch {
    // Nobody can read it: it stays `unread`.
  }
  return undefined
}
const ZSTD = 0xfd2fb528
