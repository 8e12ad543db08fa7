/**
 * In: the bytes of a search or multi-get answer, and what was asked. Out: where each document and its body lie in these
 *   bytes. Nothing is copied and no body is parsed.
 * Promises: each document is what was asked for (index and id, or index and organization) and complete, and none is
 *   overlooked. `_source` is what the projector wrote, byte for byte (schemas/stored/documents.ts: `body_bytes`, then
 *   `body`, last).
 * Can go wrong: an answer that is partial, timed out or in another form → `unavailable`, never fewer documents.
 */
import type { ListKind } from '../../../schemas/stored/documents.ts'
import type { Address, RecordIndex } from '../../../schemas/stored/layout.ts'
import { unavailable } from '../../runtime/index.ts'

/** Where a document lies: `start` is the offset of its opening brace, `end` the offset after its closing brace. */
export type DocumentSlice = {
  readonly bytes: Buffer
  readonly start: number
  /** End of the fields before `body_bytes`, start and end of the body. All are `end` in a small document. */
  readonly headerEnd: number
  readonly bodyStart: number
  readonly bodyEnd: number
  readonly end: number
}

/** A document that a search found, its kind, and the value it was sorted by. */
export type Hit = DocumentSlice & { readonly kind: ListKind; readonly idStart: number; readonly sortValue: number }

/**
 * A document that a multi-get asks for. A record has the length of its body and is never scanned. A small document (of
 * the control or the API key index) is parsed as a whole. `size`: only `seq` and `body_bytes` of a document are read.
 */
export type DocumentName = Address & { readonly form: 'record' | 'small' | 'size' }

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

/** The part of an answer that is malformed. */
type Malformed = 'head' | 'hit' | 'end' | 'search' | 'document' | 'record'
const malformed = (what: Malformed) => unavailable(`elasticsearch_malformed_${what}`)

/** Returns the next offset of these bytes, or -1. Searches byte by byte, for bytes nearby. */
const findBytes = (bytes: Buffer, sought: Buffer, from: number): number => {
  const last = bytes.length - sought.length
  const first = sought[0]
  for (let at = from; at <= last; at++) if (bytes[at] === first && startsWith(bytes, at, sought)) return at
  return -1
}

/** Compares byte by byte: for texts this short, a call of a Buffer method costs more than the comparison. */
export const startsWith = (bytes: Buffer, at: number, expected: Buffer): boolean => {
  if (bytes.length < at + expected.length) return false
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

/**
 * Returns the documents of a search, in order.
 * @param indices those that were searched, with the kinds of documents that may be found there
 * @param org every hit must be of this organization, whose id is part of each document's id
 */
export const sliceSearch = (bytes: Buffer, indices: readonly RecordIndex<ListKind>[], org: string): Hit[] => {
  const hits = bytes.indexOf(HITS)
  if (hits === -1) throw malformed('head')
  requireComplete(bytes.toString('latin1', 0, hits))

  const expected = indices.map(({ name, idPrefix = '' }) =>
    Buffer.from(`{"_index":${JSON.stringify(name)},"_id":"${org}:${idPrefix}`),
  )
  const found: Hit[] = []
  let at = hits + HITS.length
  let previousSortValue = -1
  while (bytes[at] === OPEN_BRACE) {
    const which = expected.findIndex(start => startsWith(bytes, at, start))
    const index = indices[which]
    const start = expected[which]
    if (index === undefined || start === undefined) throw malformed('hit')
    const idStart = at + start.length - (index.idPrefix ?? '').length
    const source = findBytes(bytes, SOURCE, idStart)
    if (source === -1) throw malformed('hit')
    const slice = sliceRecord(bytes, source + SOURCE.length - 1)
    const sort = slice.end + SORT.length
    const sortEnd = endOfDigits(bytes, sort)
    const sortValue = numberIn(bytes, sort, sortEnd)
    // Sort values must strictly increase, so that a page never repeats a record and never goes back.
    if (
      !startsWith(bytes, slice.end, SORT) ||
      !startsWith(bytes, sortEnd, HIT_END) ||
      !(sortValue > previousSortValue)
    ) {
      throw malformed('hit')
    }
    previousSortValue = sortValue
    found.push({ ...slice, kind: index.kind, idStart, sortValue })
    at = sortEnd + HIT_END.length
    if (bytes[at] !== COMMA) break
    at++
  }
  if (!startsWith(bytes, at, SEARCH_END) || bytes.length !== at + SEARCH_END.length) throw malformed('end')
  return found
}

/** Returns the id of a hit without its organization. */
export const idOf = ({ bytes, idStart }: Hit): string =>
  bytes.toString('latin1', idStart, bytes.indexOf(QUOTE, idStart))

/** Parses the hits and aggregations of a small search. The caller names their types. */
export const smallSearch = <Aggregations, Source = unknown>(bytes: Buffer): SmallSearch<Aggregations, Source> => {
  const { hits, aggregations } = parsed<SmallSearchAnswer<Aggregations, Source>>(bytes.toString('utf8'), 'search')
  requireComplete(bytes.toString('latin1', 0, bytes.indexOf(HITS)))
  if (!Array.isArray(hits?.hits)) throw malformed('search')
  return { hits: hits.hits, aggregations }
}
type SmallHit<Source> = {
  readonly _index: string
  readonly _id: string
  readonly _source: Source
  readonly sort: readonly unknown[]
}
type SmallSearch<Aggregations, Source> = {
  readonly hits: readonly SmallHit<Source>[]
  readonly aggregations: Aggregations
}
type SmallSearchAnswer<Aggregations, Source> = {
  readonly hits?: { readonly hits?: readonly SmallHit<Source>[] }
  readonly aggregations: Aggregations
}

/** Whether a search found anything. */
export const anyHit = (bytes: Buffer): boolean => {
  const hits = bytes.indexOf(HITS)
  if (hits === -1) throw malformed('head')
  requireComplete(bytes.toString('latin1', 0, hits))
  return bytes[hits + HITS.length] === OPEN_BRACE
}

/** Refuses a search that timed out or lost a shard: its hits are incomplete, and never a page. */
const requireComplete = (head: string): void => {
  const answer = parsed<SearchHead>(`${head}"hits":[]}}`, 'head')
  if (answer.timed_out !== false) throw unavailable('elasticsearch_timed_out')
  const { _shards: shards } = answer
  if (shards?.failed !== 0 || shards.successful !== shards.total || shards.total === 0) {
    throw unavailable('elasticsearch_partial')
  }
}

type SearchHead = {
  readonly timed_out?: boolean
  readonly _shards?: { readonly failed: number; readonly successful: number; readonly total: number }
}

/** `unreadable`: the index or the shard of the document could not be read. */
export type ReadDocument = DocumentSlice | undefined | 'unreadable'

/** Returns the documents of a multi-get in the order of `names`; undefined for a missing document. */
export const sliceMultiGet = (bytes: Buffer, names: readonly DocumentName[]): (DocumentSlice | undefined)[] =>
  sliceEachOf(bytes, names).map(requireReadable)

/**
 * Returns the records of a multi-get as hits, in the order of `names`; undefined for a missing one.
 * @param kind of all these records
 * @param org whose records they are: its id is part of each document's id
 */
export const sliceHits = (
  bytes: Buffer,
  names: readonly DocumentName[],
  kind: ListKind,
  org: string,
): (Hit | undefined)[] =>
  documentsIn(bytes, names).map(({ from, slice }, index) => {
    const document = requireReadable(slice)
    if (document === undefined) return undefined
    const beforeId = `{"_index":${JSON.stringify(names[index]?._index)},"_id":"${org}:`
    return { ...document, kind, idStart: from + beforeId.length, sortValue: numberOf(document, 'seq') }
  })

/** As `sliceMultiGet`, for a caller that must look at some documents before it knows whether it needs the others. */
export const sliceEachOf = (bytes: Buffer, names: readonly DocumentName[]): ReadDocument[] =>
  documentsIn(bytes, names).map(({ slice }) => slice)

/** @throws Refusal `unavailable` if the document is unreadable */
export const requireReadable = (document: ReadDocument): DocumentSlice | undefined => {
  if (document === 'unreadable') throw unavailable('elasticsearch_partial')
  return document
}

/**
 * Returns the answer to each part of a multi-get, in bytes of its own, as if nothing else had been asked for. An
 * unreadable document stays unreadable in each part that has it.
 * @param parts for each part, the indexes of its names in `names`
 */
export const divideMultiGet = (
  bytes: Buffer,
  names: readonly DocumentName[],
  parts: readonly (readonly number[])[],
): Buffer[] => {
  const texts = documentsIn(bytes, names).map(({ from, to }) => bytes.subarray(from, to))
  return parts.map(nameIndexes => {
    const found = nameIndexes.flatMap(nameIndex => [BETWEEN, texts[nameIndex] ?? BETWEEN]).slice(1)
    return Buffer.concat([DOCS, ...found, DOCS_END])
  })
}

type DocumentIn = { readonly from: number; readonly to: number; readonly slice: ReadDocument }

/** Returns the answer to each name, in the order of `names`, and where it lies. */
const documentsIn = (bytes: Buffer, names: readonly DocumentName[]): DocumentIn[] => {
  if (!startsWith(bytes, 0, DOCS)) throw malformed('head')
  let at = DOCS.length
  const documents = names.map((name, nameIndex): DocumentIn => {
    if (nameIndex > 0 && bytes[at++] !== COMMA) throw malformed('document')
    const from = at
    const expected = Buffer.from(`{"_index":${JSON.stringify(name._index)},"_id":${JSON.stringify(name._id)},`)
    if (!startsWith(bytes, at, expected)) throw malformed('document')
    at += expected.length
    if (startsWith(bytes, at, MISSING)) {
      at += MISSING.length
      return { from, to: at, slice: undefined }
    }
    // Anything but a version is an error instead of a document: its shard could not be read.
    if (!startsWith(bytes, at, VERSION)) {
      at = sliceSmall(bytes, from).end
      return { from, to: at, slice: 'unreadable' }
    }
    const source = bytes.indexOf(SOURCE, at)
    const found = bytes.indexOf(FOUND, at)
    if (found === -1 || source !== found + FOUND.length) throw malformed('document')
    const start = source + SOURCE.length - 1
    const slice = name.form === 'record' ? sliceRecord(bytes, start) : sliceSmall(bytes, start)
    at = slice.end + 1
    if (bytes[slice.end] !== CLOSE_BRACE) throw malformed('document')
    return { from, to: at, slice }
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
  // The slice must be an object and the last field: this proves that its length was right.
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

/** Returns the whole number in these digits; NaN, which fails every comparison, if there are none or too many. */
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

/** Parses a small document of this type, unchecked: the caller must check its fields. */
export const smallDocument = <Document extends object>(slice: DocumentSlice): Partial<Document> =>
  parsed(slice.bytes.toString('utf8', slice.start, slice.end), 'document')

/** Parses the body of a record of this type, unchecked. For heads, and for records whose sealed texts are opened. */
export const bodyOf = <Body extends object>(slice: DocumentSlice): Partial<Body> =>
  parsed(slice.bytes.toString('utf8', slice.bodyStart, slice.bodyEnd), 'record')

/** Returns a whole number from the fields before a record's body. */
export const numberOf = (slice: DocumentSlice, field: string): number => {
  const value = headerOf(slice)[field]
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw malformed('record')
  return value
}

/** Returns a text or null from the fields before a record's body. */
export const textOfSlice = (slice: DocumentSlice, field: string): string | null => {
  const value = headerOf(slice)[field]
  if (typeof value !== 'string' && value !== null) throw malformed('record')
  return value
}

const headerOf = (slice: DocumentSlice): Record<string, unknown> =>
  parsed(`${slice.bytes.toString('utf8', slice.start, slice.headerEnd)}}`, 'record')

const parsed = <Value>(text: string, what: Malformed): Value => {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed(what)
  }
}
