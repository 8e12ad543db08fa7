/**
 * `commission projection explain` of a deal: the payouts of an organization that have a line of it, replaced ones too,
 * with these lines, and the sums over current payouts. Read-only.
 */
import { termsOf } from '../../core/reading/index.ts'
import { Exact, textOfSum } from '../../schemas/money.ts'
import { partitionOf } from '../../schemas/partition.ts'
import type { PayoutDocument } from '../../schemas/stored/documents.ts'
import { layoutOf } from '../../schemas/stored/layout.ts'
import type { CommandContext } from '../context.ts'
import { asOf } from '../documents/as-of.ts'
import type { LineContent, PayoutContent } from '../documents/comparable-content.ts'
import { scan } from '../documents/scan.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { readAll, servedPositionsOf } from '../generations/generations.ts'
import { findWhole } from '../generations/sandboxes.ts'
import { aligned, printable, timeOf } from '../terminal.ts'

export type ExplainDealOptions = {
  readonly org: string
  readonly deal: string
  /** A generation or `sandbox:NAME`; the live generation by default. */
  readonly generation: string | undefined
  readonly json: boolean
}

/** The output of `--json`. Positions are topic:partition:offset; times are those of the records in Kafka. */
type DealExplanation = {
  readonly generation: string
  readonly organization: string
  readonly deal: string
  /** The next position: excludes records from it on. */
  readonly as_of: string
  /** By rep and period, each in the order of its payouts. */
  readonly payouts: readonly DealPayout[]
  /** Over current payouts, by period, currency and category. */
  readonly line_totals: readonly LineSum[]
}
type DealPayout = {
  readonly payout: string
  readonly rep: string
  readonly period: string
  readonly replaces: string | null
  readonly replaced_by: string | null
  readonly at: string
  readonly position: string
  readonly currency: string
  readonly net_amount: string
  /** Those of the deal. */
  readonly lines: readonly Omit<LineContent, 'deal_id'>[]
}
type LineSum = {
  readonly period: string
  readonly currency: string
  readonly category: string
  readonly amount: string
  readonly line_count: number
}
type StoredPayout = Omit<PayoutDocument, 'body'> & { readonly body: PayoutContent & { supersedes_id: string | null } }
type Found = DealPayout & { readonly seq: number }

export const explainDeal = async (options: ExplainDealOptions, given: CommandContext): Promise<ExitCode> => {
  const { org, deal, json } = options
  const name = options.generation ?? (await readAll(given)).live
  const { identity, context } = await findWhole(name, given, org)
  const partition = partitionOf(org, identity.partitions)
  const positionOf = (offset: number): string => `${identity.topic}:${partition}:${offset}`
  const position = (await servedPositionsOf(identity, context, partition))[partition] ?? 0

  const layout = layoutOf(context.prefix, identity)
  const target = layout.searchOf(['payouts'], org)
  // An older layout cannot search by deal: all payouts of the organization are read.
  const where = layout.hasDeals ? { ...target, filters: [...target.filters, ...termsOf({ deal_id: deal })] } : target
  const found: Found[] = []
  for await (const document of scan<StoredPayout>(where, context)) {
    const payout = asOf('payouts', document, position)?.source
    const lines = payout?.body.line_items.filter(({ deal_id }) => deal_id === deal) ?? []
    if (payout === undefined || lines.length === 0) continue
    const { seq, at, superseded_by_id, body } = payout
    found.push({
      seq,
      payout: body.id,
      rep: body.rep_id,
      period: body.period_id,
      replaces: body.supersedes_id,
      replaced_by: superseded_by_id,
      at: timeOf(at),
      position: positionOf(seq),
      currency: body.currency,
      net_amount: body.net_amount,
      lines: lines.map(({ deal_id: _, ...line }) => line),
    })
  }
  if (found.length === 0) throw new CommandError(`no payout of ${org} in ${name} has a line of ${deal}`)
  const pairOf = ({ rep, period }: Found): string => `${rep} ${period}`
  found.sort((a, b) => (pairOf(a) === pairOf(b) ? a.seq - b.seq : pairOf(a) < pairOf(b) ? -1 : 1))
  const payouts = found.map(({ seq: _, ...payout }) => payout)
  const explanation: DealExplanation = {
    generation: name,
    organization: org,
    deal,
    as_of: positionOf(position),
    payouts,
    line_totals: sumsOf(payouts),
  }
  context.out(json ? `${JSON.stringify(explanation)}\n` : dealText(explanation))
  return exitCodes.done
}

/** As `/totals?deal_id=` adds them up. */
const sumsOf = (payouts: readonly DealPayout[]): LineSum[] => {
  const sums = new Map<string, { amount: Exact; line_count: number }>()
  for (const { period, currency, replaced_by, lines } of payouts) {
    if (replaced_by !== null) continue
    for (const { category, amount } of lines) {
      const key = `${period} ${currency} ${category}`
      const before = sums.get(key) ?? { amount: new Exact(0), line_count: 0 }
      sums.set(key, { amount: before.amount.plus(amount), line_count: before.line_count + 1 })
    }
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { amount, line_count }]) => {
      const [period = '', currency = '', category = ''] = key.split(' ')
      return { period, currency, category, amount: textOfSum(amount), line_count }
    })
}

const dealText = ({ generation, organization, deal, as_of, payouts, line_totals }: DealExplanation): string => {
  const named = new Set(payouts.map(({ payout }) => payout))
  const current = payouts.filter(({ replaced_by }) => replaced_by === null).length
  const heading = [
    `${deal} of ${organization}: ${counted(payouts.length, 'payout')} with a line of it, ${current} of them current`,
    `in ${generation}, as of ${as_of}`,
  ]
  const blocks = payouts.map(({ payout, rep, period, replaced_by, at, position, currency, net_amount, lines }) => {
    const isGone = replaced_by !== null && !named.has(replaced_by)
    const role = replaced_by === null ? 'current' : `replaced by ${replaced_by}${isGone ? ', without the deal' : ''}`
    const rows = lines.map(({ id, category, amount, description }) => [id, category, amount, printable(description)])
    return [
      `${payout} of ${rep} for ${period}: ${role}`,
      `   at ${position}, ${at}; net ${net_amount} ${currency}`,
      ...indented(rows),
    ]
  })
  const rows = line_totals.map(({ period, currency, category, amount, line_count }) => [
    period,
    category,
    amount,
    currency,
    counted(line_count, 'line'),
  ])
  const sums = rows.length === 0 ? ['no current payout has a line of it'] : ['in current payouts', ...indented(rows)]
  return `${[heading, ...blocks, sums].map(lines => lines.join('\n')).join('\n\n')}\n`
}

const indented = (rows: readonly (readonly string[])[]): string[] =>
  aligned(rows, [2])
    .split('\n')
    .map(row => `   ${row}`)

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
