/**
 * In: the lines of two payouts. Out: the lines that differ: in the order of the later payout, then those that it lacks.
 * A line is the same if all but its id is the same: a recalculation may number all lines anew, so an id alone says
 * nothing. Of the others, a line is changed if the other payout has one with its deal, category and text, or, of the
 * same rep and period, with its id, deal and category. A line in another currency is another line.
 */
import type { Payout } from '../../../client/src/index.ts'
import { subtractAmount } from '../amounts.ts'

type LineItem = Payout['line_items'][number]
type Lines = Pick<Payout, 'currency' | 'line_items'>
export type LineDifference = {
  readonly id: string
  readonly line: LineItem
  readonly kind: 'added' | 'removed' | 'changed'
  readonly before: string | null
  readonly after: string | null
  readonly difference: string
}

const textOf = ({ category, description, deal_id }: LineItem): string =>
  JSON.stringify([category, description, deal_id])
const idOf = ({ id, category, deal_id }: LineItem): string => JSON.stringify([id, category, deal_id])
const contentOf = (line: LineItem): string => JSON.stringify([textOf(line), line.amount])

/** @param isOneChain whether both are of one rep and period: then a line with the same id can be the same line */
export const compareLines = (from: Lines, to: Lines, isOneChain: boolean): LineDifference[] => {
  const isSameCurrency = from.currency === to.currency
  let [before, after] = [from.line_items, to.line_items]
  /** Takes the pairs of lines with equal keys out of both payouts. */
  const take = (keyOf: (line: LineItem) => string): Map<LineItem, LineItem> => {
    const found = pairs(isSameCurrency ? before : [], after, keyOf)
    const earlier = new Set(found.values())
    before = before.filter(line => !earlier.has(line))
    after = after.filter(line => !found.has(line))
    return found
  }
  // By id first: of two equal lines, each meets its own.
  take(line => JSON.stringify([line.id, contentOf(line)]))
  take(contentOf)
  const differing = after
  const alike = [...take(line => JSON.stringify([line.id, textOf(line)])), ...take(textOf)]
  const changed = new Map([...alike, ...(isOneChain ? take(idOf) : [])])
  const inLater = differing.map((line): LineDifference => {
    const old = changed.get(line)
    const difference = subtractAmount(line.amount, old?.amount ?? '0')
    const kind = old === undefined ? 'added' : 'changed'
    return { id: line.id, line, kind, before: old?.amount ?? null, after: line.amount, difference }
  })
  const removed = before.map((line): LineDifference => {
    const difference = subtractAmount('0', line.amount)
    return { id: `removed ${line.id}`, line, kind: 'removed', before: line.amount, after: null, difference }
  })
  return [...inLater, ...removed]
}

/** Returns, for each line of the later payout, the line of the earlier one with the same key: each of them once. */
const pairs = (
  from: readonly LineItem[],
  to: readonly LineItem[],
  keyOf: (line: LineItem) => string,
): Map<LineItem, LineItem> => {
  const waiting = Map.groupBy(from, keyOf)
  const found = new Map<LineItem, LineItem>()
  for (const line of to) {
    const old = waiting.get(keyOf(line))?.shift()
    if (old !== undefined) found.set(line, old)
  }
  return found
}
