/** One payout that was replaced, told in few lines: the amount before and after, the reason, and where to see it. */

import type { LineItem } from '../schemas/events.ts'
import { differenceOf } from '../schemas/money.ts'
import { amountText } from './report.ts'
import type { ScenarioResult } from './run/scenario.ts'

type Case = ScenarioResult['cases'][number]
type Payout = {
  readonly id: string
  readonly rep_id: string
  readonly period_id: string
  readonly currency: string
  readonly net_amount: string
  readonly superseded_by_id: string | null
  readonly line_items: readonly LineItem[]
}

/** @returns nothing if no payout was replaced by another one in the same currency */
export const storyOf = ({ organization, expected }: Case, explorer: string): string[] => {
  const payouts = new Map([...expected.superseded, ...expected.payouts].map(payout => [payout.id, payout as Payout]))
  const told = [...payouts.values()].flatMap(before => {
    const after = payouts.get(before.superseded_by_id ?? '')
    if (after === undefined || after.currency !== before.currency) return []
    return [{ before, after, reasons: reasonsOf(before.line_items, after.line_items) }]
  })
  const [story] = told.toSorted((one, other) => clarity(one.reasons) - clarity(other.reasons))
  if (story === undefined) return []
  const { before, after, reasons } = story
  const nameOf = (records: readonly { readonly id: string; readonly name?: unknown }[], id: string): string =>
    String(records.find(record => record.id === id)?.name ?? id)
  const rep = nameOf(expected.reps, before.rep_id)
  const period = nameOf(expected.periods, before.period_id)
  return [
    `One payout was replaced: ${rep}, ${period}, of ${organization.name}`,
    `  before  ${before.currency} ${amountText(before.net_amount)}  ${before.id}`,
    `  after   ${after.currency} ${amountText(after.net_amount)}  ${after.id}, ${signed(differenceOf(before.net_amount, after.net_amount))}`,
    `  why     ${reasons.join('; ') || 'no line differs'}`,
    '  see it  in a browser:',
    `          ${explorer}/#/history/${before.id}?key=${organization.keys.reading.text}`,
  ]
}

/** One reason is the clearest story. */
const clarity = (reasons: readonly string[]): number => (reasons.length === 0 ? Number.MAX_VALUE : reasons.length)

/** Says in words which lines differ. A recalculated line has another id: its deal and its text say which one it is. */
const reasonsOf = (before: readonly LineItem[], after: readonly LineItem[]): string[] => {
  const left = [...before]
  const take = (isWanted: (line: LineItem) => boolean): LineItem | undefined => {
    const at = left.findIndex(isWanted)
    return at === -1 ? undefined : left.splice(at, 1)[0]
  }
  const isNamed = (line: LineItem) => (other: LineItem) =>
    other.deal_id === line.deal_id && other.description === line.description
  const others = after.filter(line => !take(other => isNamed(line)(other) && other.amount === line.amount))
  const changed = others.map(line => {
    const was = take(isNamed(line))
    if (was === undefined) return `“${line.description}” is new, ${signed(line.amount)}`
    return `“${line.description}” was ${amountText(was.amount)}, and is ${amountText(line.amount)}`
  })
  return [...changed, ...left.map(({ description, amount }) => `“${description}” is gone, ${amountText(amount)}`)]
}

const signed = (amount: string): string => `${amount.startsWith('-') ? '' : '+'}${amountText(amount)}`
