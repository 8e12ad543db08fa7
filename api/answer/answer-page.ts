/**
 * In: documents and the position they were read at. Out: the answer (bytes, entity tag, projection time), or 304.
 * Promises: copies bodies byte for byte, and inserts `superseded_by_id` as far as a reader at this position may know
 *   it. The entity tag depends only on the content of the answer and its form, and reveals no offset. A page that has
 *   more has the header `Link` (RFC 8288) with the address of the next one.
 */
import { hash } from 'node:crypto'
import {
  type CheckpointRead,
  type FoundRecord,
  type FoundStatement,
  NOT_REPLACED,
  type Page,
  type PageOfIds,
  type RecordName,
  recordIdOf,
  replacementOf,
  traceFieldsOf,
} from '../../core/reading/index.ts'
import { NOT_MODIFIED, OK, unavailable } from '../../core/runtime/index.ts'
import { allocate, type DocumentSlice, type ReadPosition, startsWith } from '../../core/store/index.ts'
import type { ListKind } from '../../schemas/stored/documents.ts'
import { REVALIDATED } from '../access/authenticate.ts'
import {
  type Arrived,
  type Audited,
  type Context,
  type Counted,
  noteRecordsForAudit,
  type Reserved,
} from '../http/request.ts'
import { FIXED_AGE_SECONDS } from '../limits.ts'

/**
 * Version of the form of the API's answers: how their bytes are made from stored documents. Every entity tag contains
 * it, so that no client keeps another form. Raise it with any change of the bytes (see test/golden/answers.test.ts).
 */
export const ANSWER_FORM = 5

/**
 * `Cache-Control` of a record or totals as of a change that was read twice: an old copy may have answered once. Only
 * new rules could change it, so a client may keep it for a limited time. A client must ask again for a page: with pages
 * of other rules it would make a list of no moment.
 */
export const FIXED = `private, max-age=${FIXED_AGE_SECONDS}, immutable`

/** Needed by the answer to a request with a key. */
export type Answering = Pick<Arrived, 'path' | 'query' | 'baseAddress'> &
  Audited &
  Counted &
  Pick<Reserved, 'reservation' | 'form'>

const END = Buffer.from('}')
/** The end of a payout that nothing replaced, in place of its closing brace: `,"superseded_by_id":null}`. */
const PAYOUT_END = Buffer.from(NOT_REPLACED)
const LIST = Buffer.from('{"data":[')
const RECORD = Buffer.from('{"data":')
const COMMA = 0x2c

/** Answers a page of a list. @param startingAfter the cursor of the request, repeated if the page is empty */
export const answerList = (
  ctx: Context<Answering>,
  kind: ListKind,
  page: Page,
  startingAfter: RecordName | undefined,
): void => {
  noteRecordsForAudit(ctx, () => page.hits.map(recordIdOf))
  const last = page.hits.at(-1)
  const nextCursor = last ? recordIdOf(last) : (startingAfter?.id ?? '')
  const tail = Buffer.from(`],"has_more":${page.hasMore},"next_cursor":"${nextCursor}"}`)
  const hashes = page.hits.map(contentHash).join()
  const etag = entityTag(kind, page.position, `${hashes} ${page.hasMore} ${nextCursor}`)
  if (page.hasMore) linkNext(ctx, nextCursor)
  // A list holds only records that are current at its position.
  const ending = kind === 'payouts' ? PAYOUT_END : END
  answer(ctx, page.position, etag, () => joined(LIST, page.hits, () => ending, tail))
}

/** Answers records by their ids. Replaced payouts are among them, so each payout says what replaced it. */
export const answerByIds = (
  ctx: Context<Answering>,
  kind: ListKind,
  { position, hits, hasMore, left }: PageOfIds,
): void => {
  noteRecordsForAudit(ctx, () => hits.map(recordIdOf))
  const replacements = kind === 'payouts' ? hits.map(hit => replacementOf(hit, position)) : undefined
  const hashes = hits.map((hit, index) => `${contentHash(hit)} ${replacements?.[index] ?? ''}`).join()
  const etag = entityTag(`${kind} by ids`, position, `${hashes} ${hasMore}`)
  if (hasMore) linkNext(ctx, left.join(), 'ids')
  const endingOf = (index: number) => (replacements ? endOfPayout(replacements[index] ?? 'null') : END)
  const tail = Buffer.from(`],"has_more":${hasMore},"next_cursor":""}`)
  answer(ctx, position, etag, () => joined(LIST, hits, endingOf, tail))
}

/** The end of a payout, in place of its closing brace. @param replacement as JSON */
const endOfPayout = (replacement: string): Buffer => Buffer.from(`,"superseded_by_id":${replacement}}`)

/** Answers a single rep, period or payroll record. */
export const answerRecord = (
  ctx: Context<Answering>,
  kind: Exclude<ListKind, 'payouts'>,
  { slice, position }: FoundRecord,
): void => {
  answer(ctx, position, entityTag(`one of ${kind}`, position, contentHash(slice)), () =>
    joined(RECORD, [slice], () => END, END),
  )
}

/** Answers a single payout. */
export const answerPayout = (ctx: Context<Answering>, { slice, position }: FoundRecord): void => {
  const replacement = replacementOf(slice, position)
  const etag = entityTag('one of payouts', position, `${contentHash(slice)} ${replacement}`)
  answer(ctx, position, etag, () => joined(RECORD, [slice], () => endOfPayout(replacement), END))
}

/** Answers a payout with its calculation trace. */
export const answerStatement = (ctx: Context<Answering>, { slice, trace, position }: FoundStatement): void => {
  const replacement = replacementOf(slice, position)
  // The content hash covers the whole event, including the trace.
  const etag = entityTag('statement', position, `${contentHash(slice)} ${replacement}`)
  answer(ctx, position, etag, () => {
    const ending = Buffer.concat([Buffer.from(`,"superseded_by_id":${replacement},`), traceFieldsOf(trace)])
    return joined(RECORD, [slice], () => ending, END)
  })
}

/** Answers a checkpoint. For the audit it has a row for each currency, and one also without amounts. */
export const answerCheckpoint = (ctx: Context<Answering>, { position, note }: CheckpointRead): void => {
  noteRecordsForAudit(ctx, () => [], note.match(/^total /gm)?.length ?? 1)
  answer(ctx, position, entityTag('checkpoint', position, note), () => Buffer.from(JSON.stringify({ data: { note } })))
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

/** Returns the entity tag of an answer. @param what the kind of answer; @param content all else that determines it */
export const entityTag = (what: string, position: ReadPosition, content: string): string =>
  tagOf(`${what} ${ANSWER_FORM} ${position.generation.rules} ${content}`)

/** Returns an entity tag: 162 bits of a hash, in quotes. */
export const tagOf = (content: string | Buffer): string => `"${hash('sha256', content, 'base64url').slice(0, 27)}"`

const answer = (ctx: Context<Answering>, position: ReadPosition, etag: string, body: () => Buffer): void => {
  if (beginAnswer(ctx, position, etag)) answerBody(ctx, body())
}

/** As `answer`, with a body that is made in slices. */
export const answerLater = async (
  ctx: Context<Answering>,
  position: ReadPosition,
  etag: string,
  body: () => Promise<Buffer>,
): Promise<void> => {
  if (beginAnswer(ctx, position, etag)) answerBody(ctx, await body())
}

/** Sets the headers of an answer with records. Returns whether its body must follow: not if this answered 304. */
const beginAnswer = (ctx: Context<Answering>, position: ReadPosition, contentTag: string): boolean => {
  const { isFixed, sealState } = ctx.state.form
  const etag = sealState === undefined ? contentTag : tagOf(`${contentTag} ${sealState}`)
  ctx.set('ETag', etag)
  // An erasure changes an answer with sealed texts, also one as of a change.
  const neverChanges = sealState === undefined && isFixed(etag, position.generation.name)
  if (neverChanges && ctx.response.get('Cache-Control') === REVALIDATED) ctx.set('Cache-Control', FIXED)
  ctx.set('Projection-Time', new Date(position.time).toISOString())
  const asked = ctx.get('If-None-Match')
  if (!isNotModified(asked, etag)) return true
  answerNotModified(ctx, asked, ctx.state.refundUnit)
  return false
}

/** Answers 200 with a body of JSON. */
export const answerBody = (ctx: Context<unknown>, body: Buffer): void => {
  ctx.status = OK
  ctx.set('Content-Type', 'application/json; charset=utf-8')
  ctx.body = body
}

/** Whether `If-None-Match` matches this tag: `*` matches any tag, and weak tags count. */
export const isNotModified = (header: string, etag: string): boolean =>
  header !== '' && (isAny(header) || [...header.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag))

const isAny = (header: string): boolean => header.trim() === '*'

/** A 304 to a tag that the client has costs nothing. A 304 to `*` counts, or such requests would be unlimited. */
export const answerNotModified = (ctx: Context<unknown>, asked: string, refundUnit: () => void): void => {
  ctx.status = NOT_MODIFIED
  ctx.body = null
  if (!isAny(asked)) refundUnit()
}

/** Returns one buffer: head, bodies separated by commas, tail. An ending replaces the closing brace of each body. */
const joined = (
  head: Buffer,
  slices: readonly DocumentSlice[],
  endingOf: (index: number) => Buffer,
  tail: Buffer,
): Buffer => {
  const endings = slices.map((_, index) => endingOf(index))
  let length = head.length + tail.length + Math.max(0, slices.length - 1)
  for (const [index, slice] of slices.entries()) {
    length += slice.bodyEnd - 1 - slice.bodyStart + (endings[index]?.length ?? 0)
  }
  const bytes = allocate(length)
  let at = head.copy(bytes)
  for (const [index, { bytes: from, bodyStart, bodyEnd }] of slices.entries()) {
    if (index > 0) bytes[at++] = COMMA
    at += from.copy(bytes, at, bodyStart, bodyEnd - 1)
    at += endings[index]?.copy(bytes, at) ?? 0
  }
  at += tail.copy(bytes, at)
  if (at !== length) throw new Error('a page is not as long as its parts')
  return bytes
}

/**
 * Sets the header `Link` to the address of the next page: that of this request with all its parameters, and the cursor
 * as `starting_after`, or the `ids` that are left. Only while there is more: a client that follows links ends at the
 * last page.
 */
export const linkNext = (
  ctx: Context<Pick<Arrived, 'path' | 'query' | 'baseAddress'>>,
  value: string,
  parameter: 'starting_after' | 'ids' = 'starting_after',
): void => {
  const { path, query, baseAddress } = ctx.state
  const parameters = new URLSearchParams(query)
  parameters.set(parameter, value)
  // The next page begins after the cursor: with both, it would be refused.
  parameters.delete('after')
  ctx.set('Link', `<${baseAddress()}${path}?${parameters}>; rel="next"`)
}
