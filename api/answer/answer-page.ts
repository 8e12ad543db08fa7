/**
 * In: documents and the position they were read at. Out: the answer: bytes, entity tag, projection time; or 304.
 * Promises: bodies are copied byte for byte; `superseded_by_id` is put in where a reader at this position may know it;
 *   the tag depends on what is answered and in which form, on nothing else, and gives no offset away.
 */
import { hash } from 'node:crypto'
import { ANSWER_FORM } from '../../schemas/answer-form.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { type DocumentSlice, startsWith } from '../elasticsearch/slice-documents.ts'
import { NOT_MODIFIED, OK, unavailable } from '../failures.ts'
import type { Context } from '../http/request.ts'
import type { Position } from '../read/position.ts'
import { type Page, recordIdOf } from '../read/read-list.ts'
import type { RecordName } from '../read/read-parameters.ts'
import type { Found, FoundStatement } from '../read/read-record.ts'
import { replacementOf, traceFieldsOf } from './record-json.ts'

const END = Buffer.from('}')
const NOT_REPLACED = Buffer.from(',"superseded_by_id":null}')
const LIST = Buffer.from('{"data":[')
const RECORD = Buffer.from('{"data":')
const COMMA = 0x2c

export const answerList = (ctx: Context, kind: ListKind, page: Page, startingAfter: RecordName | undefined): void => {
  const last = page.hits.at(-1)
  const nextCursor = last ? recordIdOf(last) : (startingAfter?.id ?? '')
  const tail = Buffer.from(`],"has_more":${page.hasMore},"next_cursor":"${nextCursor}"}`)
  const hashes = page.hits.map(contentHash).join()
  const etag = entityTag(kind, page.position, `${hashes} ${page.hasMore} ${nextCursor}`)
  // A list holds only what is current at its position.
  const ending = kind === 'payouts' ? NOT_REPLACED : END
  answer(ctx, page.position, etag, () => joined(LIST, page.hits, ending, tail))
}

export const answerRecord = (ctx: Context, kind: Exclude<ListKind, 'payouts'>, { cut, position }: Found): void => {
  answer(ctx, position, entityTag(`one of ${kind}`, position, contentHash(cut)), () => joined(RECORD, [cut], END, END))
}

export const answerPayout = (ctx: Context, { cut, position }: Found): void => {
  const replacement = replacementOf(cut, position)
  const etag = entityTag('one of payouts', position, `${contentHash(cut)} ${replacement}`)
  answer(ctx, position, etag, () => joined(RECORD, [cut], Buffer.from(`,"superseded_by_id":${replacement}}`), END))
}

export const answerStatement = (ctx: Context, { cut, trace, position }: FoundStatement): void => {
  const replacement = replacementOf(cut, position)
  // The content hash is of the whole event, the trace included.
  const etag = entityTag('statement', position, `${contentHash(cut)} ${replacement}`)
  answer(ctx, position, etag, () => {
    const ending = Buffer.concat([Buffer.from(`,"superseded_by_id":${replacement},`), traceFieldsOf(trace)])
    return joined(RECORD, [cut], ending, END)
  })
}

const HASH = Buffer.from('"hash":"')
const QUOTE = 0x22
/** The last field before the body: it is sought from there. */
export const contentHash = ({ bytes, start, headerEnd }: DocumentSlice): string => {
  const to = headerEnd - 1
  let from = to
  while (from > start && bytes[from - 1] !== QUOTE) from--
  if (bytes[to] !== QUOTE || !startsWith(bytes, from - HASH.length, HASH)) {
    throw unavailable('elasticsearch_malformed_record')
  }
  return bytes.toString('latin1', from, to)
}

export const entityTag = (what: string, position: Position, content: string): string =>
  `"${hash('sha256', `${what} ${ANSWER_FORM} ${position.generation.rules} ${content}`, 'base64url').slice(0, 27)}"`

const answer = (ctx: Context, position: Position, etag: string, body: () => Buffer): void => {
  if (needsBody(ctx, position, etag)) answerBody(ctx, body())
}

/** The same with a body that is made in slices. */
export const answerLater = async (
  ctx: Context,
  position: Position,
  etag: string,
  body: () => Promise<Buffer>,
): Promise<void> => {
  if (needsBody(ctx, position, etag)) answerBody(ctx, await body())
}

/** Sets what every answer has. Answers 304 where that is all. */
const needsBody = (ctx: Context, position: Position, etag: string): boolean => {
  ctx.set('ETag', etag)
  ctx.set('Projection-Time', new Date(position.time).toISOString())
  const asked = ctx.get('If-None-Match')
  if (!isNotModified(asked, etag)) return true
  answerNotModified(ctx, asked)
  return false
}

const answerBody = (ctx: Context, body: Buffer): void => {
  ctx.status = OK
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  ctx.body = body
}

/** Whether `If-None-Match` names this tag: `*` names any, weak tags count. */
export const isNotModified = (header: string, etag: string): boolean =>
  header !== '' && (isAny(header) || [...header.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag))

const isAny = (header: string): boolean => header.trim() === '*'

/**
 * A client that has the answer is not counted. One that asks with `*` may have nothing: it is, or asking so would never
 * end.
 */
export const answerNotModified = (ctx: Context, asked: string): void => {
  ctx.status = NOT_MODIFIED
  ctx.body = null
  if (!isAny(asked)) ctx.state.uncount?.()
}

/**
 * Head, bodies with their closing brace replaced, separated by commas, and tail, as one buffer.
 *
 * HAZARD: the page is made in the very bytes it came in where it can be, and those are gone afterwards: what is known
 * of the documents must be taken before. Every document gives up more in front of its body than it gains behind it, so
 * nothing is overwritten before it was moved; where that is not so, or the page came in several answers, it is made
 * anew. A second buffer of this size for each page costs more than all else that is done for it: it is the garbage
 * collector's load.
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

/** The bytes that all documents lie in, if what is put before each one ends before it begins. */
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
