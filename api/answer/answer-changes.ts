/**
 * In: a page of changes, a page of a payout's history, or totals. Out: the answer (bytes, entity tag, projection time),
 *   or 304.
 * Promises: copies records byte for byte, as they were just after their change, and reveals no offset. A page of
 *   history ends early when it is full, as any page does. Long work is divided into slices (see pace.ts).
 */

import {
  changeNameOf,
  changeParts,
  type HistoryPage,
  joinParts,
  lengthOf,
  type Pace,
  type Page,
  type Part,
  partOf,
  type RecordName,
  recordIdOf,
  replacementOf,
  sequenceIn,
  type TotalsRead,
  textOfName,
  withoutBrace,
} from '../../core/reading/index.ts'
import { type Hit, numberOf } from '../../core/store/index.ts'
import { PAGE_BYTES_MAX } from '../../schemas/limits.ts'
import type { Context } from '../http/request.ts'
import { noteRecordsForAudit } from '../http/request.ts'
import { type Answering, answerLater, contentHash, entityTag, linkNext } from './answer-page.ts'
import { type ComparablePayout, differenceParts, readPayout } from './compare-payouts.ts'

/** Answers a page of `/changes`. @throws Refusal `unavailable`: a malformed record, or no room for the answer */
export const answerChanges = (
  ctx: Context<Answering>,
  page: Page,
  startingAfter: RecordName | undefined,
  pace: Pace,
): Promise<void> => {
  const names = page.hits.map(changeNameOf)
  noteRecordsForAudit(ctx, () => names.map(textOfName))
  const last = names.at(-1) ?? page.begin ?? startingAfter
  const nextCursor = last ? textOfName(last) : ''
  if (page.hasMore) linkNext(ctx, nextCursor)
  // After a loss of records, the same change can come again with another number and at another time.
  const changes = page.hits.map((hit, index) => {
    const name = names[index] ?? changeNameOf(hit)
    return { hit, name, sequence: sequenceIn(page, index) }
  })
  const content = changes.map(
    ({ hit, name, sequence }) => `${textOfName(name)} ${sequence} ${numberOf(hit, 'at')} ${contentHash(hit)}`,
  )
  const etag = entityTag('changes', page.position, `${content.join()} ${page.hasMore} ${nextCursor}`)
  return answerLater(ctx, page.position, etag, () => {
    const items = changes.map(({ hit, name, sequence }) => changeParts(hit, name, sequence))
    return joinParts(reserved(ctx, listOf(items, page.hasMore, nextCursor)), pace)
  })
}

/** Answers a page of a payout’s history. @throws Refusal as `answerChanges` does */
export const answerHistory = (
  ctx: Context<Answering>,
  page: HistoryPage,
  startingAfter: RecordName | undefined,
  pace: Pace,
): Promise<void> => {
  const { position, before } = page
  // The first difference of a later page shows lines of the payout before it.
  const noteShown = (hits: readonly Hit[]): void =>
    noteRecordsForAudit(ctx, () => [...(startingAfter ? [startingAfter.id] : []), ...hits.map(recordIdOf)], hits.length)
  noteShown(page.hits)
  const hashes = page.hits.map(hit => `${contentHash(hit)} ${replacementOf(hit, position)}`).join()
  // The tag covers all hits that were read: they determine where the page ends.
  const last = page.hits.at(-1)
  const nextCursor = last ? recordIdOf(last) : (startingAfter?.id ?? '')
  const content = `${before && contentHash(before)} ${hashes} ${page.hasMore} ${nextCursor}`
  return answerLater(ctx, position, entityTag('history', position, content), async () => {
    const items = await stepsOf(page, pace)
    noteShown(page.hits.slice(0, items.length))
    const end = page.hits[items.length - 1]
    const hasMore = page.hasMore || items.length < page.hits.length
    const cursor = end ? recordIdOf(end) : nextCursor
    if (hasMore) linkNext(ctx, cursor)
    return joinParts(reserved(ctx, listOf(items, hasMore, cursor)), pace)
  })
}

/** Returns each payout with its difference to the previous one, until the page is full; at least one. */
const stepsOf = async ({ hits, before, position }: HistoryPage, pace: Pace): Promise<Part[][]> => {
  const items: Part[][] = []
  let bytes = 0
  let previous: ComparablePayout | undefined = before && (await readPayout(before, pace))
  for (const hit of hits) {
    const payout = await readPayout(hit, pace)
    const difference = previous ? await differenceParts(previous, payout, pace) : [partOf('null')]
    const more = `,"superseded_by_id":${replacementOf(hit, position)},"difference":`
    const item = [withoutBrace(hit), partOf(more), ...difference, END]
    bytes += lengthOf(item)
    if (bytes > PAGE_BYTES_MAX && items.length > 0) return items
    items.push(item)
    previous = payout
    if (pace.countWork(item.length, 0)) await pace.rest()
  }
  return items
}

/** Answers the totals of an organization. */
export const answerTotals = async (
  ctx: Context<Answering>,
  { position, totals }: TotalsRead,
  pace: Pace,
): Promise<void> => {
  const { totals: rows, line_totals: lines, ...rest } = totals
  noteRecordsForAudit(ctx, () => [], rows.length + (lines?.length ?? 0))
  const head = partOf(`{"data":${JSON.stringify(rest).slice(0, -1)},"totals":[`)
  const parts = [head, ...(await rowParts(rows, pace))]
  if (lines) parts.push(partOf('],"line_totals":['), ...(await rowParts(lines, pace)))
  const body = await joinParts([...parts, partOf(']}}')], pace)
  await answerLater(ctx, position, entityTag('totals', position, body.toString('latin1')), async () => body)
}

const rowParts = async (rows: readonly object[], pace: Pace): Promise<Part[]> => {
  const parts: Part[] = []
  for (const row of rows) {
    parts.push(partOf(`${parts.length > 0 ? ',' : ''}${JSON.stringify(row)}`))
    if (pace.countWork(1, 0)) await pace.rest()
  }
  return parts
}

/** Reserves the bytes of the answer in the budget. Returns the same parts. */
const reserved = (ctx: Context<Answering>, parts: readonly Part[]): readonly Part[] => {
  ctx.state.reservation.add(lengthOf(parts))
  return parts
}

const listOf = (items: readonly (readonly Part[])[], hasMore: boolean, nextCursor: string): Part[] => {
  const parts = [LIST]
  for (const item of items) {
    if (parts.length > 1) parts.push(COMMA)
    for (const part of item) parts.push(part)
  }
  parts.push(partOf(`],"has_more":${hasMore},"next_cursor":"${nextCursor}"}`))
  return parts
}
const LIST = partOf('{"data":[')
const COMMA = partOf(',')
const END = partOf('}')
