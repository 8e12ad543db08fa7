/**
 * In: a payout and the payout that it replaced, as stored. Out: the changes as JSON: of amounts, and of lines by their
 *   ids.
 * Promises: two lines are equal only if their bytes are equal, and the answer shows the bytes of a line. Only the head
 *   of a payout is parsed, whatever its size. Both payouts are stored as JSON.stringify writes them, so that equal
 *   lines have equal bytes.
 * Can go wrong: a payout in another form → `unavailable`.
 */

import { type Pace, type Part, partOf } from '../../core/reading/index.ts'
import { unavailable } from '../../core/runtime/index.ts'
import type { DocumentSlice } from '../../core/store/index.ts'
import { differenceOf } from '../../schemas/money.ts'

type Head = { readonly net_amount: string; readonly earned_amount: string; readonly currency: string }
/** A payout prepared for comparison: `lines` by their ids, in order. */
export type ComparablePayout = { readonly head: Head; readonly lines: ReadonlyMap<string, Part> }

const LINES = Buffer.from(',"line_items":[')
const BETWEEN = Buffer.from('},{"id":"line_')
const ID = '{"id":"'.length
const QUOTE = 0x22
/** An id ends within these bytes: `{"id":"line_`, 64 characters and the quote. */
const ID_ROOM = 80

/** Prepares a stored payout for comparison. @throws Refusal `unavailable` if it has another form */
export const readPayout = async (
  { bytes, bodyStart, bodyEnd }: DocumentSlice,
  pace: Pace,
): Promise<ComparablePayout> => {
  const body = bytes.subarray(bodyStart, bodyEnd)
  const at = body.indexOf(LINES)
  const from = at + LINES.length
  const to = body.length - ']}'.length
  if (at === -1 || to < from || body.toString('latin1', to) !== ']}') throw malformed()
  return { head: headOf(body.toString('utf8', 0, at)), lines: await linesOf(body.subarray(0, to), from, pace) }
}

const headOf = (text: string): Head => {
  try {
    return JSON.parse(`${text}}`)
  } catch {
    throw malformed()
  }
}

/** BETWEEN cannot occur within a line: a quote in a text is escaped, and `id` never follows the end of a text. */
const linesOf = async (bytes: Buffer, from: number, pace: Pace): Promise<Map<string, Part>> => {
  const lines = new Map<string, Part>()
  for (let start = from; start < bytes.length; ) {
    const between = bytes.indexOf(BETWEEN, start)
    const to = between === -1 ? bytes.length : between + 1
    const idEnd = bytes.subarray(start, Math.min(start + ID_ROOM, to)).indexOf(QUOTE, ID)
    const id = bytes.toString('latin1', start + ID, start + idEnd)
    if (idEnd === -1 || !id.startsWith('line_')) throw malformed()
    lines.set(id, { bytes, from: start, to })
    if (pace.countWork(1, to - start)) await pace.rest()
    start = to + 1
  }
  return lines
}

/** Returns the changes from one payout to the next, as parts of JSON. */
export const differenceParts = async (
  before: ComparablePayout,
  after: ComparablePayout,
  pace: Pace,
): Promise<Part[]> => {
  const added: Part[][] = []
  const changed: Part[][] = []
  for (const [id, line] of after.lines) {
    const same = before.lines.get(id)
    if (same === undefined) added.push([line])
    else if (!isEqual(same, line)) changed.push([BEFORE, same, AFTER, line, END])
    if (pace.countWork(1, line.to - line.from)) await pace.rest()
  }
  const removed: Part[][] = []
  for (const [id, line] of before.lines) {
    if (!after.lines.has(id)) removed.push([line])
    if (pace.countWork(1, 0)) await pace.rest()
  }
  const amounts = `"net_amount":${amountOf('net_amount', before, after)},"earned_amount":${amountOf('earned_amount', before, after)}`
  return [
    partOf(`{${amounts},"line_items_added":[`),
    ...(await separated(added, pace)),
    partOf('],"line_items_removed":['),
    ...(await separated(removed, pace)),
    partOf('],"line_items_changed":['),
    ...(await separated(changed, pace)),
    partOf(']}'),
  ]
}

const BEFORE = partOf('{"before":')
const AFTER = partOf(',"after":')
const END = partOf('}')
const COMMA = partOf(',')

const separated = async (items: readonly Part[][], pace: Pace): Promise<Part[]> => {
  const parts: Part[] = []
  for (const item of items) {
    if (parts.length > 0) parts.push(COMMA)
    for (const part of item) parts.push(part)
    if (pace.countWork(1, 0)) await pace.rest()
  }
  return parts
}

const amountOf = (field: 'net_amount' | 'earned_amount', before: ComparablePayout, after: ComparablePayout): string =>
  before.head.currency === after.head.currency ? `"${differenceOf(before.head[field], after.head[field])}"` : 'null'

const isEqual = (a: Part, b: Part): boolean =>
  a.to - a.from === b.to - b.from && a.bytes.compare(b.bytes, b.from, b.to, a.from, a.to) === 0

const malformed = () => unavailable('elasticsearch_malformed_record')
