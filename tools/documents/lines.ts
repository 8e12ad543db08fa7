/** Compares the lines of two payouts: added, removed or changed. A line in another currency is another line. */

import type { LineContent, PayoutContent } from './comparable-content.ts'
import { firstDifference } from './find-differences.ts'
import { subtract } from './sums.ts'

export type LineChange = {
  readonly id: string
  readonly change: 'added' | 'removed' | 'changed'
  readonly category: string
  readonly description: string
  readonly currency: string
  /** Amounts; null if that payout has no such line. */
  readonly a: string | null
  readonly b: string | null
  readonly difference: string
  /** The first field that differs of a changed line: its amount if that differs. */
  readonly field: string | null
}

type Lines = Pick<PayoutContent, 'currency' | 'line_items'>

/** Lines of b in their order, then lines that only a has. Undefined means no payout, and so no lines. */
export const linesChanged = (a: Lines | undefined, b: Lines | undefined): LineChange[] => {
  const before = new Map(a?.line_items.map(line => [`${line.id} ${a.currency}`, line]))
  const changes: LineChange[] = []
  for (const line of b?.line_items ?? []) {
    const currency = b?.currency ?? ''
    const key = `${line.id} ${currency}`
    const old = before.get(key)
    before.delete(key)
    const found = changeOf(old, line, currency)
    if (found) changes.push(found)
  }
  for (const line of before.values()) {
    const { id, category, description, amount } = line
    const rest = { currency: a?.currency ?? '', b: null, difference: subtract(amount, '0'), field: null }
    changes.push({ id, change: 'removed', category, description, a: amount, ...rest })
  }
  return changes
}

const changeOf = (old: LineContent | undefined, line: LineContent, currency: string): LineChange | undefined => {
  const { id, category, description, amount } = line
  const what = { id, category, description, currency, b: amount }
  if (old === undefined) return { ...what, change: 'added', a: null, difference: subtract('0', amount), field: null }
  const found = old.amount === amount ? firstDifference(old, line, '')?.field : 'amount'
  if (found === undefined) return undefined
  return { ...what, change: 'changed', a: old.amount, difference: subtract(old.amount, amount), field: found }
}
