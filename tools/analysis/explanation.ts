/** The history of a payout as text: a block for each step, then what was paid, then what is still owed. */

import type { PayrollContent } from '../documents/comparable-content.ts'
import type { LineChange } from '../documents/lines.ts'
import { aligned, printable } from '../terminal.ts'
import type { Balance, CategoryTotal, PayoutChange, StrategyChange } from './payout-changes.ts'

/** The output of `--json`. Positions are topic:partition:offset; times are those of the records in Kafka. */
export type Explanation = {
  readonly generation: string
  readonly organization: string
  readonly rep: string
  readonly period: string
  /** The payout that was asked for; `steps` has all of its rep and period. */
  readonly payout: string
  /** The next position: excludes records from it on. */
  readonly as_of: string
  readonly current: string | null
  readonly steps: readonly ExplainedStep[]
  readonly payroll: readonly PayrollEntry[]
  readonly balances: readonly Balance[]
}
type EventLocation = { readonly at: string; readonly position: string }
type ExplainedStep = Omit<PayoutChange, 'offset' | 'at'> & EventLocation
type PayrollEntry = Omit<PayrollContent, 'rep_id' | 'period_id'> & EventLocation

export const explanationText = (explanation: Explanation): string => {
  const { organization, rep, period, payout, generation, as_of, current, steps, payroll, balances } = explanation
  const role = payout === current ? 'current' : `replaced; current is ${current}`
  const heading = [
    `${payout} of ${rep} for ${period}, ${organization}: ${role}`,
    `${counted(steps.length, 'payout')} and ${counted(payroll.length, 'payroll record')} in ${generation}, as of ${as_of}`,
  ]
  const blocks = [heading, ...steps.map((step, index) => stepLines(step, index + 1, payout)), payrollLines(explanation)]
  const owed = balances.map(({ currency, owed, paid, still_owed }) => {
    const rest = still_owed.startsWith('-') ? `${still_owed.slice(1)} paid too much` : `${still_owed} still owed`
    return `${currency}: ${owed} owed, ${paid} paid, ${rest}`
  })
  return `${[...blocks, owed].map(lines => lines.join('\n')).join('\n\n')}\n`
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

const stepLines = (step: ExplainedStep, number: number, asked: string): string[] => {
  const { event, currency, net_amount, earned_amount, net_difference, earned_difference } = step
  const calculated = event === 'commission.payout.calculated.v1'
  return [
    `${number}. ${step.payout}${step.payout === asked ? ', the one asked for' : ''}`,
    `   ${calculated ? 'calculated' : 'recorded'} ${step.said_at}${step.replaces === null ? '' : `, replaces ${step.replaces}`}`,
    `   ${event} at ${step.position}, ${step.at}`,
    `   net ${net_amount} ${currency}${signed(net_difference)}, earned ${earned_amount} ${currency}${signed(earned_difference)}`,
    `   by category: ${categoriesText(step.categories)}`,
    ...indented('lines', lineRows(step.lines), [4]),
    ...indented(traceTitle(step), strategyRows(step.strategies), []),
  ]
}

const signed = (amount: string | null): string => (amount === null ? '' : ` (${plus(amount)})`)
const plus = (amount: string): string => (amount.startsWith('-') || /^[0.]*$/.test(amount) ? amount : `+${amount}`)

const categoriesText = (categories: readonly CategoryTotal[]): string =>
  categories.map(({ category, total, difference }) => `${category} ${total}${signed(difference)}`).join(', ') ||
  'no lines'

const marks = { added: '+', removed: '-', changed: '~', appears: '+', vanishes: '-' } as const

const lineRows = (lines: readonly LineChange[]): string[][] =>
  lines.map(({ id, change, category, description, currency, a, b, difference, field }) => [
    marks[change],
    id,
    category,
    a !== null && b !== null && a !== b ? `${a} → ${b}` : (b ?? a ?? ''),
    plus(difference),
    currency,
    `${printable(description)}${field === null || field === 'amount' ? '' : ` (${field} changed)`}`,
  ])

const traceTitle = ({ trace_recorded, trace_steps }: ExplainedStep): string =>
  trace_recorded ? `strategies, of ${counted(trace_steps, 'step')} of the trace` : 'strategies: no trace was recorded'

const strategyRows = (strategies: readonly StrategyChange[]): string[][] =>
  strategies.map(({ strategy, change, versions_before, versions }) => {
    const all = [versions_before, versions].filter(list => list.length > 0)
    return [marks[change], printable(strategy), all.map(list => printable(list.join(', '))).join(' → ')]
  })

const indented = (title: string, rows: string[][], right: readonly number[]): string[] =>
  rows.length === 0
    ? [`   ${title}${title.includes(':') ? '' : ': as before'}`]
    : [
        `   ${title}`,
        ...aligned(rows, right)
          .split('\n')
          .map(row => `     ${row}`),
      ]

const payrollLines = ({ payroll, steps }: Explanation): string[] => {
  if (payroll.length === 0) return ['nothing was paid']
  const replaced = new Map(steps.map(({ payout, replaced_by }) => [payout, replaced_by]))
  const rows = payroll.map(
    ({ id, reverses_id, payout_id, amount, currency, destination, at, position, recorded_at }) => {
      const by = payout_id === null ? null : replaced.get(payout_id)
      return [
        id,
        reverses_id === null ? 'payment' : `void of ${reverses_id}`,
        amount,
        currency,
        payout_id === null ? 'for no payout' : `for ${payout_id}${by ? `, replaced by ${by}` : ''}`,
        `to ${destination.type} ${printable(destination.label)}`,
        `${recorded_at}, at ${position}, ${at}`,
      ]
    },
  )
  return [
    'payroll records',
    ...aligned(rows, [2])
      .split('\n')
      .map(row => `   ${row}`),
  ]
}
