/**
 * In: documents and the position they were read at. Out: the answer (bytes, entity tag, projection time), or 304.
 * Promises: copies bodies byte for byte, and inserts `superseded_by_id` as far as a reader at this position may know
 *   it. The entity tag depends only on the content of the answer and its form, and reveals no offset.
 */
import { hash } from 'node:crypto'
import { ANSWER_FORM } from '../../schemas/answer-form.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { type DocumentSlice, startsWith } from '../elasticsearch/slice-documents.ts'
import { NOT_MODIFIED, OK, unavailable } from '../failures.ts'
import type { RequestContext } from '../http/request.ts'
import type { ReadPosition } from '../read/position.ts'
import { type Page, recordIdOf } from '../read/read-list.ts'
import type { RecordName } from '../read/read-parameters.ts'
import type { FoundRecord, FoundStatement } from '../read/read-record.ts'
import { replacementOf, traceFieldsOf } from './record-json.ts'

const END = Buffer.from('}')
const NOT_REPLACED = Buffer.from(',"superseded_by_id":null}')
const LIST = Buffer.from('{"data":[')
const RECORD = Buffer.from('{"data":')
const COMMA = 0x2c

export const answerList = (
  ctx: RequestContext,
  kind: ListKind,
  page: Page,
  startingAfter: RecordName | undefined,
): void => {
  const last = page.hits.at(-1)
  const nextCursor = last ? recordIdOf(last) : (startingAfter?.id ?? '')
  const tail = Buffer.from(`],"has_more":${page.hasMore},"next_cursor":"${nextCursor}"}`)
  const hashes = page.hits.map(contentHash).join()
  const etag = entityTag(kind, page.position, `${hashes} ${page.hasMore} ${nextCursor}`)
  // A list holds only records that are current at its position.
  const ending = kind === 'payouts' ? NOT_REPLACED : END
  answer(ctx, page.position, etag, () => joined(LIST, page.hits, ending, tail))
}

export const answerRecord = (
  ctx: RequestContext,
  kind: Exclude<ListKind, 'payouts'>,
  { cut, position }: FoundRecord,
): void => {
  answer(ctx, position, entityTag(`one of ${kind}`, position, contentHash(cut)), () => joined(RECORD, [cut], END, END))
}

export const answerPayout = (ctx: RequestContext, { cut, position }: FoundRecord): void => {
  const replacement = replacementOf(cut, position)
  const etag = entityTag('one of payouts', position, `${contentHash(cut)} ${replacement}`)
  answer(ctx, position, etag, () => joined(RECORD, [cut], Buffer.from(`,"superseded_by_id":${replacement}}`), END))
}

export const answerStatement = (ctx: RequestContext, { cut, trace, position }: FoundStatement): void => {
  const replacement = replacementOf(cut, position)
  // The content hash covers the whole event, including the trace.
  const etag = entityTag('statement', position, `${contentHash(cut)} ${replacement}`)
  answer(ctx, position, etag, () => {
    const ending = Buffer.concat([Buffer.from(`,"superseded_by_id":${replacement},`), traceFieldsOf(trace)])
    return joined(RECORD, [cut], ending, END)
  })
}

const HASH = Buffer.from('"hash":"')
const QUOTE = 0x22
/** Returns the content hash. Searches backwards, because `hash` is the last field before the body. */
export const contentHash = ({ bytes, start, headerEnd }: DocumentSlice): string => {
  const to = headerEnd - 1
  let from = to
  while (from > start && bytes[from - 1] !== QUOTE) from--
  if (bytes[to] !== QUOTE || !startsWith(bytes, from - HASH.length, HASH)) {
    throw unavailable('elasticsearch_malformed_record')
  }
  return bytes.toString('latin1', from, to)
}

export const entityTag = (what: string, position: ReadPosition, content: string): string =>
  `"${hash('sha256', `${what} ${ANSWER_FORM} ${position.generation.rules} ${content}`, 'base64url').slice(0, 27)}"`

const answer = (ctx: RequestContext, position: ReadPosition, etag: string, body: () => Buffer): void => {
  if (needsBody(ctx, position, etag)) answerBody(ctx, body())
}

/** As `answer`, with a body that is made in slices. */
export const answerLater = async (
  ctx: RequestContext,
  position: ReadPosition,
  etag: string,
  body: () => Promise<Buffer>,
): Promise<void> => {
  if (needsBody(ctx, position, etag)) answerBody(ctx, await body())
}

/** Sets the headers of every answer. Returns false after answering 304. */
const needsBody = (ctx: RequestContext, position: ReadPosition, etag: string): boolean => {
  ctx.set('ETag', etag)
  ctx.set('Projection-Time', new Date(position.time).toISOString())
  const asked = ctx.get('If-None-Match')
  if (!isNotModified(asked, etag)) return true
  answerNotModified(ctx, asked)
  return false
}

const answerBody = (ctx: RequestContext, body: Buffer): void => {
  ctx.status = OK
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  ctx.body = body
}

/** Whether `If-None-Match` matches this tag: `*` matches any tag, and weak tags count. */
export const isNotModified = (header: string, etag: string): boolean =>
  header !== '' && (isAny(header) || [...header.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag))

const isAny = (header: string): boolean => header.trim() === '*'

/** A 304 to a tag that the client has costs nothing. A 304 to `*` counts, or such requests would be unlimited. */
export const answerNotModified = (ctx: RequestContext, asked: string): void => {
  ctx.status = NOT_MODIFIED
  ctx.body = null
  if (!isAny(asked)) ctx.state.refundRate?.()
}

/**
 * Returns one buffer: head, bodies separated by commas, tail. `ending` replaces the closing brace of each body.
 *
 * HAZARD: writes the page into the buffer of the Elasticsearch answer if possible, which destroys the documents. Take
 *   what you need from the documents before. Each document loses more bytes before its body than it gains after it, so
 *   that no byte is overwritten before it was copied. If that does not hold, or the page came in several answers, a new
 *   buffer is allocated. A second buffer for each page would cost more than all other work on the page, because of the
 *   garbage collector.
 */
const joined = (head: Buffer, cuts: readonly DocumentSlice[], ending: Buffer, tail: Buffer): Buffer => {
  let length = head.length + tail.length + Math.max(0, cuts.length - 1)
  for (const cut of cuts) length += cut.bodyEnd - 1 - cut.bodyStart + ending.length
  const bytes = roomIn(head, cuts, ending, length) ?? Buffer.allocUnsafe(length)
  let at = head.copy(bytes)
  for (const [place, { bytes: from, bodyStart, bodyEnd }] of cuts.entries()) {
    if (place > 0) bytes[at++] = COMMA
    at += from.copy(bytes, at, bodyStart, bodyEnd - 1)
    at += ending.copy(bytes, at)
  }
  at += tail.copy(bytes, at)
  if (at !== length) throw new Error('a page is not as long as its parts')
  return bytes
}

/** Returns the buffer of all documents, if the output before each body ends before that body begins. */
const roomIn = (head: Buffer, cuts: readonly DocumentSlice[], ending: Buffer, length: number): Buffer | undefined => {
  const bytes = cuts[0]?.bytes
  if (!bytes || bytes.length < length) return undefined
  let at = head.length
  for (const cut of cuts) {
    if (cut.bytes !== bytes || at + 1 > cut.bodyStart) return undefined
    at += 1 + cut.bodyEnd - 1 - cut.bodyStart + ending.length
  }
  return bytes.subarray(0, length)
}
