/** Changes from one payout of a chain to the next, and what was paid. Pure and exact. */
import type { LineItem, TraceStep } from '../../schemas/events.ts'
import type { PayoutContent, PayrollContent } from '../documents/comparable-content.ts'
import { type LineChange, linesChanged } from '../documents/lines.ts'
import { subtract, total } from '../documents/sums.ts'

/** A payout of a chain, with its trace, the offset of its event and that event's record time in milliseconds. */
export type ChainPayout = {
  readonly payout: PayoutContent & { readonly supersedes_id: string | null; readonly recorded_at: string | null }
  readonly traceRecorded: boolean
  readonly trace: readonly Pick<TraceStep, 'strategy' | 'strategy_version'>[]
  readonly seq: number
  readonly at: number
}

export type PayoutChange = {
  readonly payout: string
  readonly replaces: string | null
  readonly replaced_by: string | null
  readonly event: 'commission.payout.calculated.v1' | 'commission.payout.recorded.v1'
  /** When it was calculated or recorded, according to the publisher. */
  readonly said_at: string | null
  readonly offset: number
  readonly at: number
  readonly currency: string
  readonly net_amount: string
  readonly earned_amount: string
  /** To the payout before; null without one in the same currency. */
  readonly net_difference: string | null
  readonly earned_difference: string | null
  readonly categories: readonly CategoryTotal[]
  readonly lines: readonly LineChange[]
  readonly trace_recorded: boolean
  readonly trace_steps: number
  readonly strategies: readonly StrategyChange[]
}
export type CategoryTotal = {
  readonly category: string
  readonly total: string
  readonly difference: string | null
}
export type StrategyChange = {
  readonly strategy: string
  readonly change: 'appears' | 'vanishes' | 'changed'
  readonly versions_before: readonly string[]
  readonly versions: readonly string[]
}

/** @param before the payout that it replaced; undefined for the first */
export const stepOf = (before: ChainPayout | undefined, now: ChainPayout): PayoutChange => {
  const { payout, seq, at, traceRecorded, trace } = now
  const comparable = before?.payout.currency === payout.currency ? before.payout : undefined
  return {
    payout: payout.id,
    replaces: payout.supersedes_id,
    replaced_by: payout.superseded_by_id,
    event: payout.calculated_at === null ? 'commission.payout.recorded.v1' : 'commission.payout.calculated.v1',
    said_at: payout.calculated_at ?? payout.recorded_at,
    offset: seq,
    at,
    currency: payout.currency,
    net_amount: payout.net_amount,
    earned_amount: payout.earned_amount,
    net_difference: comparable ? subtract(comparable.net_amount, payout.net_amount) : null,
    earned_difference: comparable ? subtract(comparable.earned_amount, payout.earned_amount) : null,
    categories: categoriesOf(comparable, payout),
    lines: linesChanged(before?.payout, payout),
    trace_recorded: traceRecorded,
    trace_steps: trace.length,
    strategies: strategiesChanged(before?.trace ?? [], trace),
  }
}

const categories: readonly LineItem['category'][] = ['earned', 'recovered', 'adjusted']

/** Without categories in which neither payout has lines. */
const categoriesOf = (before: PayoutContent | undefined, now: PayoutContent): CategoryTotal[] =>
  categories.flatMap(category => {
    const of = (payout: PayoutContent | undefined): string[] =>
      payout?.line_items.flatMap(line => (line.category === category ? [line.amount] : [])) ?? []
    const [old, amounts] = [of(before), of(now)]
    if (old.length + amounts.length === 0) return []
    const sum = total(amounts)
    return [{ category, total: sum, difference: before ? subtract(total(old), sum) : null }]
  })

const strategiesChanged = (before: ChainPayout['trace'], now: ChainPayout['trace']): StrategyChange[] => {
  const [old, versions] = [versionsOf(before), versionsOf(now)]
  const names = [...new Set([...versions.keys(), ...old.keys()])]
  return names.flatMap((strategy): StrategyChange[] => {
    const [a, b] = [old.get(strategy) ?? [], versions.get(strategy) ?? []]
    if (a.join('\n') === b.join('\n')) return []
    const change = a.length === 0 ? 'appears' : b.length === 0 ? 'vanishes' : 'changed'
    return [{ strategy, change, versions_before: a, versions: b }]
  })
}

const versionsOf = (trace: ChainPayout['trace']): Map<string, string[]> => {
  const versions = new Map<string, Set<string>>()
  for (const { strategy, strategy_version } of trace) {
    const known = versions.get(strategy)
    if (known) known.add(strategy_version)
    else versions.set(strategy, new Set([strategy_version]))
  }
  return new Map([...versions].map(([strategy, of]) => [strategy, [...of].sort()]))
}

export type Balance = {
  readonly currency: string
  readonly owed: string
  readonly paid: string
  readonly still_owed: string
}

/** Amounts owed, paid and still owed, by currency. Only the currency of the current payout has an amount owed. */
export const balancesOf = (
  current: Pick<PayoutContent, 'currency' | 'net_amount'> | undefined,
  payroll: readonly Pick<PayrollContent, 'currency' | 'amount'>[],
): Balance[] => {
  const currencies = new Set([...(current ? [current.currency] : []), ...payroll.map(({ currency }) => currency)])
  return [...currencies].sort().map(currency => {
    const owed = current?.currency === currency ? current.net_amount : '0'
    const paid = total(payroll.flatMap(record => (record.currency === currency ? [record.amount] : [])))
    return { currency, owed, paid, still_owed: subtract(paid, owed) }
  })
}
