/**
 * In: the bytes of an answer of Elasticsearch to a search or a multi-get, and what was asked.
 * Out: where in these bytes each document and its body lie. Nothing is copied and no body is parsed.
 * Promises: a document is what was asked for (index and id, or index and organization), complete, and nothing follows
 *   that was overlooked; `_source` is what the projector wrote, byte for byte (schemas/stored/documents.ts:
 *   `body_bytes`, then `body`, last).
 * Can go wrong: an answer that is partial, timed out, or of another form than this is `unavailable`, never something
 * short.
 */
import { unavailable } from '../failures.ts'

/**
 * A document's place in the bytes of an answer: `start` is its opening brace, `end` the place after its closing one.
 */
export type DocumentSlice = {
  readonly bytes: Buffer
  readonly start: number
  /** Where the fields before `body_bytes` end, and where the body begins and ends. All `end` in a small document. */
  readonly headerEnd: number
  readonly bodyStart: number
  readonly bodyEnd: number
  readonly end: number
}

/** A document that a search found, which of the indices searched it is in, and its place in the order of the list. */
export type Hit = DocumentSlice & { readonly index: string; readonly idStart: number; readonly place: number }

/**
 * What a multi-get asks for. A record says how long its body is and is never looked through; a small document (of the
 * control or the API key index) is parsed as a whole.
 */
export type DocumentName = { readonly index: string; readonly id: string; readonly form: 'record' | 'small' }

const CLOSE_BRACE = 0x7d
const OPEN_BRACE = 0x7b
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const ZERO = 0x30
const NINE = 0x39

const SOURCE = Buffer.from('"_source":{')
const BODY_BYTES = Buffer.from(',"body_bytes":')
const BODY = Buffer.from(',"body":')
const HITS = Buffer.from('"hits":[')
const SORT = Buffer.from(',"sort":[')
const HIT_END = Buffer.from(']}')
const SEARCH_END = Buffer.from(']}}')
const DOCS = Buffer.from('{"docs":[')
const DOCS_END = Buffer.from(']}')
const BETWEEN = Buffer.from(',')
const MISSING = Buffer.from('"found":false}')
const FOUND = Buffer.from('"found":true,')
const VERSION = Buffer.from('"_version":')

const malformed = (what: string) => unavailable(`elasticsearch_malformed_${what}`)

/** Where these bytes are found next: -1 where nowhere. For what is near: it is looked for byte by byte. */
const placeOf = (bytes: Buffer, sought: Buffer, from: number): number => {
  const last = bytes.length - sought.length
  const first = sought[0]
  for (let at = from; at <= last; at++) if (bytes[at] === first && startsWith(bytes, at, sought)) return at
  return -1
}

/** Byte by byte: of texts as short as these a call of Buffer's own costs more than the comparison. */
export const startsWith = (bytes: Buffer, at: number, expected: Buffer): boolean => {
  if (bytes.length < at + expected.length) return false
  for (let place = 0; place < expected.length; place++) if (bytes[at + place] !== expected[place]) return false
  return true
}

/**
 * The documents of a search, in order.
 * @param indices those that were searched
 * @param org the organization every hit must be of: its id stands in every document's id
 */
export const sliceSearch = (bytes: Buffer, indices: readonly string[], org: string): Hit[] => {
  const hits = bytes.indexOf(HITS)
  if (hits === -1) throw malformed('head')
  requireComplete(bytes.toString('latin1', 0, hits))

  const expected = indices.map(index => Buffer.from(`{"_index":${JSON.stringify(index)},"_id":"${org}:`))
  const found: Hit[] = []
  let at = hits + HITS.length
  let placeBefore = -1
  while (bytes[at] === OPEN_BRACE) {
    const which = expected.findIndex(start => startsWith(bytes, at, start))
    const index = indices[which]
    const start = expected[which]
    if (index === undefined || start === undefined) throw malformed('hit')
    const idStart = at + start.length
    const source = placeOf(bytes, SOURCE, idStart)
    if (source === -1) throw malformed('hit')
    const cut = sliceRecord(bytes, source + SOURCE.length - 1)
    const sort = cut.end + SORT.length
    const sortEnd = endOfDigits(bytes, sort)
    const place = numberIn(bytes, sort, sortEnd)
    // Strictly forward, whatever was asked for: a page never repeats a record and never turns back.
    if (!startsWith(bytes, cut.end, SORT) || !startsWith(bytes, sortEnd, HIT_END) || !(place > placeBefore)) {
      throw malformed('hit')
    }
    placeBefore = place
    found.push({ ...cut, index, idStart, place })
    at = sortEnd + HIT_END.length
    if (bytes[at] !== COMMA) break
    at++
  }
  if (!startsWith(bytes, at, SEARCH_END) || bytes.length !== at + SEARCH_END.length) throw malformed('end')
  return found
}

/** The id of a hit, without the organization before it. */
export const idOf = ({ bytes, idStart }: Hit): string =>
  bytes.toString('latin1', idStart, bytes.indexOf(QUOTE, idStart))

/** What a search found where it is small, parsed, its hits and aggregations: for the caller to check. */
export const smallSearch = (bytes: Buffer): { readonly hits: readonly SmallHit[]; readonly aggregations: unknown } => {
  const { hits, aggregations } = parsed(bytes.toString('utf8'), 'search') as SmallSearch
  requireComplete(bytes.toString('latin1', 0, bytes.indexOf(HITS)))
  if (!Array.isArray(hits?.hits)) throw malformed('search')
  return { hits: hits.hits, aggregations }
}
export type SmallHit = {
  readonly _index: string
  readonly _id: string
  readonly _source?: unknown
  readonly sort: unknown
}
type SmallSearch = { readonly hits?: { readonly hits?: readonly SmallHit[] }; readonly aggregations?: unknown }

/** Whether a search found anything. */
export const anyHit = (bytes: Buffer): boolean => {
  const hits = bytes.indexOf(HITS)
  if (hits === -1) throw malformed('head')
  requireComplete(bytes.toString('latin1', 0, hits))
  return bytes[hits + HITS.length] === OPEN_BRACE
}

/** A search that timed out or lost a shard answers with what it has; that is never a page. */
const requireComplete = (head: string): void => {
  const answer = parsed(`${head}"hits":[]}}`, 'head') as Record<string, unknown>
  if (answer.timed_out !== false) throw unavailable('elasticsearch_timed_out')
  const shards = answer._shards as Record<string, unknown> | undefined
  if (shards?.failed !== 0 || shards.successful !== shards.total || shards.total === 0) {
    throw unavailable('elasticsearch_partial')
  }
}

/** The documents of a multi-get in the order they were asked for; undefined where there is none. */
export const sliceMultiGet = (bytes: Buffer, names: readonly DocumentName[]): (DocumentSlice | undefined)[] =>
  documentsIn(bytes, names).map(({ cut }) => {
    if (cut === 'unreadable') throw unavailable('elasticsearch_partial')
    return cut
  })

/**
 * The answers to parts of a multi-get, each as if its names had been asked for alone, in bytes of its own. A document
 * that could not be read stays so in each part that has it.
 * @param parts of each the places of its names among all
 */
export const divideMultiGet = (
  bytes: Buffer,
  names: readonly DocumentName[],
  parts: readonly (readonly number[])[],
): Buffer[] => {
  const texts = documentsIn(bytes, names).map(({ from, to }) => bytes.subarray(from, to))
  return parts.map(places => {
    const found = places.flatMap(place => [BETWEEN, texts[place] ?? BETWEEN]).slice(1)
    return Buffer.concat([DOCS, ...found, DOCS_END])
  })
}

type DocumentIn = { readonly from: number; readonly to: number; readonly cut: DocumentSlice | undefined | 'unreadable' }

/** Each answer to a name, in the order they were asked for, and where it lies. */
const documentsIn = (bytes: Buffer, names: readonly DocumentName[]): DocumentIn[] => {
  if (!startsWith(bytes, 0, DOCS)) throw malformed('head')
  let at = DOCS.length
  const documents = names.map((name, place): DocumentIn => {
    if (place > 0 && bytes[at++] !== COMMA) throw malformed('document')
    const from = at
    const expected = Buffer.from(`{"_index":${JSON.stringify(name.index)},"_id":${JSON.stringify(name.id)},`)
    if (!startsWith(bytes, at, expected)) throw malformed('document')
    at += expected.length
    if (startsWith(bytes, at, MISSING)) {
      at += MISSING.length
      return { from, to: at, cut: undefined }
    }
    // Anything else than a version here is an error in place of a document: its shard could not be read.
    if (!startsWith(bytes, at, VERSION)) {
      at = sliceSmall(bytes, from).end
      return { from, to: at, cut: 'unreadable' }
    }
    const source = bytes.indexOf(SOURCE, at)
    const found = bytes.indexOf(FOUND, at)
    if (found === -1 || source !== found + FOUND.length) throw malformed('document')
    const start = source + SOURCE.length - 1
    const cut = name.form === 'record' ? sliceRecord(bytes, start) : sliceSmall(bytes, start)
    at = cut.end + 1
    if (bytes[cut.end] !== CLOSE_BRACE) throw malformed('document')
    return { from, to: at, cut }
  })
  if (!startsWith(bytes, at, DOCS_END) || bytes.length !== at + DOCS_END.length) throw malformed('end')
  return documents
}

const sliceRecord = (bytes: Buffer, start: number): DocumentSlice => {
  const headerEnd = bytes.indexOf(BODY_BYTES, start)
  if (headerEnd === -1) throw malformed('record')
  const digits = headerEnd + BODY_BYTES.length
  const digitsEnd = endOfDigits(bytes, digits)
  const bodyStart = digitsEnd + BODY.length
  const bodyEnd = bodyStart + numberIn(bytes, digits, digitsEnd)
  // What was cut must be an object and the last field: then its length was the right one.
  if (
    !startsWith(bytes, digitsEnd, BODY) ||
    bytes[bodyStart] !== OPEN_BRACE ||
    bytes[bodyEnd - 1] !== CLOSE_BRACE ||
    bytes[bodyEnd] !== CLOSE_BRACE
  ) {
    throw malformed('record')
  }
  return { bytes, start, headerEnd, bodyStart, bodyEnd, end: bodyEnd + 1 }
}

const endOfDigits = (bytes: Buffer, from: number): number => {
  let at = from
  for (let byte = bytes[at] ?? 0; byte >= ZERO && byte <= NINE; byte = bytes[++at] ?? 0);
  return at
}

/**
 * The whole number that these digits are; NaN, which is equal to nothing and before nothing, where there are none or
 * too many.
 */
const numberIn = (bytes: Buffer, from: number, to: number): number => {
  if (to === from || to - from > 16) return Number.NaN
  let number = 0
  for (let at = from; at < to; at++) number = number * 10 + (bytes[at] ?? 0) - ZERO
  return number
}

const sliceSmall = (bytes: Buffer, start: number): DocumentSlice => {
  let depth = 0
  let quoted = false
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at]
    if (quoted) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) quoted = false
    } else if (byte === QUOTE) quoted = true
    else if (byte === OPEN_BRACE) depth++
    else if (byte === CLOSE_BRACE && --depth === 0) {
      const end = at + 1
      return { bytes, start, headerEnd: end, bodyStart: end, bodyEnd: end, end }
    }
  }
  throw malformed('document')
}

/** A small document, parsed. What is in it is for the caller to check. */
export const smallDocument = (cut: DocumentSlice): unknown =>
  parsed(cut.bytes.toString('utf8', cut.start, cut.end), 'document')

/** The body of a record, parsed: for what is small and not passed on. */
export const bodyOf = (cut: DocumentSlice): unknown =>
  parsed(cut.bytes.toString('utf8', cut.bodyStart, cut.bodyEnd), 'record')

/** A whole number among the fields before a record's body. */
export const numberOf = (cut: DocumentSlice, field: string): number => {
  const value = headerOf(cut)[field]
  if (!Number.isSafeInteger(value)) throw malformed('record')
  return value as number
}

/** A text, or null, among the fields before a record's body. */
export const textOf = (cut: DocumentSlice, field: string): string | null => {
  const value = headerOf(cut)[field]
  if (typeof value !== 'string' && value !== null) throw malformed('record')
  return value
}

const headerOf = (cut: DocumentSlice): Record<string, unknown> =>
  parsed(`${cut.bytes.toString('utf8', cut.start, cut.headerEnd)}}`, 'record') as Record<string, unknown>

const parsed = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed(what)
  }
}
