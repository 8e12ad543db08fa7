/** Calculates a payout: deals become line items, and every step from deal to line is in the trace. */
import { Decimal } from 'decimal.js'
import type { LineItem, PayoutCalculatedData, TraceStep } from '../../schemas/events.ts'
import type { PeriodKind } from './calendar.ts'
import type { Random } from './random.ts'

/** Amounts are never numbers. Only the rounding step rounds. */
const Exact = Decimal.clone({ precision: 100, toExpNeg: -9e15, toExpPos: 9e15 })

/** The inputs of a calculation. A recalculation changes them. */
export type Basis = {
  readonly kind: PeriodKind
  readonly deals: readonly Deal[]
  /** Part of the quota that was reached: 1 is all of it. */
  readonly attainment: string
  readonly corrections: readonly Correction[]
}
type Deal = {
  readonly id: string
  readonly customer: string
  readonly amount: string
  readonly share: string
  readonly rate: string
}
type Correction = Pick<LineItem, 'category' | 'description' | 'amount' | 'deal_id'>

type Calculated = Pick<PayoutCalculatedData, 'net_amount' | 'earned_amount' | 'line_items' | 'calculation_trace'>

const customers = [
  'Hafenkontor Bremen GmbH',
  'Ćwik & Synowie',
  'Brightwater Hospitals',
  'Société Lumen d’Optique',
  'Old Mill Foods',
  '東京計測',
  'Northern Rail Freight',
  'Øresund Vind A/S',
  'Casa Peña Hermanos',
  'Tannhof Brauerei',
  'Fjord & Fell Outdoor',
  'Quay Street Architects',
]
const plans: Readonly<Record<PeriodKind, { name: string; deals: [number, number]; rates: readonly string[] }>> = {
  month: { name: 'Commission', deals: [0, 4], rates: ['0.05', '0.065', '0.0725', '0.0825'] },
  quarter: { name: 'Quota bonus', deals: [1, 3], rates: ['0.01', '0.0125', '0.0175'] },
  year: { name: 'Annual accelerator', deals: [1, 5], rates: ['0.005', '0.00625', '0.0033'] },
}

/** Makes the deals and rates that a payout is calculated from. */
export const makeBasis = (kind: PeriodKind, random: Random): Basis => ({
  kind,
  deals: Array.from({ length: random.integer(...plans[kind].deals) }, () => ({
    id: random.id('deal'),
    customer: random.pick(customers),
    amount: cents(random.integer(40_000, 9_000_000)),
    share: random.pick(['1', '1', '1', '0.5', '0.3333']),
    rate: random.pick(plans[kind].rates),
  })),
  attainment: decimal(random.integer(4_000, 14_000), 4),
  corrections: random.chance(0.15) ? [makeCorrection(random)] : [],
})

/** Changes the inputs: the amount of a deal, a rate, or an amount that is taken back or added. */
export const recalculate = (basis: Basis, random: Random): Basis => {
  const [first, ...rest] = basis.deals
  if (first === undefined || random.chance(0.5)) {
    return { ...basis, corrections: [...basis.corrections, makeCorrection(random)] }
  }
  const change = random.chance(0.5)
    ? { amount: cents(random.integer(40_000, 9_000_000)) }
    : { rate: random.pick(plans[basis.kind].rates.filter(rate => rate !== first.rate)) }
  return { ...basis, deals: [{ ...first, ...change }, ...rest] }
}

const makeCorrection = (random: Random): Correction =>
  random.chance(0.6)
    ? {
        category: 'recovered',
        description: `Deal cancelled by ${random.pick(customers)}`,
        amount: `-${cents(random.integer(500, 90_000))}`,
        deal_id: random.id('deal'),
      }
    : {
        category: 'adjusted',
        description: 'Correction of an earlier month',
        amount: `${random.pick(['', '-'])}${cents(random.integer(100, 30_000))}`,
        deal_id: null,
      }

/** Deterministic, except for the ids of lines. */
export const calculate = (basis: Basis, random: Random): Calculated => {
  const trace: Omit<TraceStep, 'step'>[] = []
  const lines: Correction[] = basis.deals.map(deal => ({
    category: 'earned',
    description: `${plans[basis.kind].name}: ${deal.customer}`,
    amount: stepsOf(deal, basis, trace),
    deal_id: deal.id,
  }))
  for (const correction of basis.corrections) {
    lines.push(correction)
    trace.push(correctionStep(correction))
  }
  const earned = sum(lines)
  // No rep has to pay back: a negative sum is carried forward.
  if (earned.isNegative()) {
    const amount = earned.neg().toFixed(2)
    const carried: Correction = {
      category: 'adjusted',
      description: 'Carried forward to the next period',
      amount,
      deal_id: null,
    }
    lines.push(carried)
    trace.push({ ...correctionStep(carried), name: 'Carry forward', strategy: 'no_negative_payout' })
  }
  const net_amount = sum(lines).toFixed(2)
  trace.push({
    name: 'Sum of the lines',
    strategy: 'sum',
    strategy_version: '1',
    inputs: { lines: String(lines.length) },
    output_amount: net_amount,
    deal_id: null,
  })
  return {
    net_amount,
    earned_amount: earned.toFixed(2),
    line_items: lines.map(line => ({ id: random.id('line'), ...line })),
    calculation_trace: trace.map((step, index) => ({ step: index + 1, ...step })),
  }
}

/** A correction is entered by a person: its step says who cancelled, and by how much the payout changes. */
const correctionStep = ({ category, description, amount, deal_id }: Correction): Omit<TraceStep, 'step'> => ({
  name: category === 'recovered' ? 'Recovery' : 'Correction',
  strategy: 'entered',
  strategy_version: '1',
  inputs: { reason: description },
  output_amount: amount,
  deal_id,
})

/** The steps of one deal. Only the last one rounds: half to even. */
const stepsOf = (deal: Deal, basis: Basis, trace: Omit<TraceStep, 'step'>[]): string => {
  const credited = new Exact(deal.amount).times(deal.share)
  const commission = credited.times(deal.rate)
  const accelerated = commission.times(new Exact(basis.attainment).gt(1) ? basis.attainment : 1)
  const rounded = accelerated.toDecimalPlaces(2, Decimal.ROUND_HALF_EVEN).toFixed(2)
  const step = (name: string, strategy: string, inputs: Record<string, string>, output_amount: string): void => {
    trace.push({ name, strategy, strategy_version: versions[strategy] ?? '1', inputs, output_amount, deal_id: deal.id })
  }
  step('Credited amount', 'deal_split', { amount: deal.amount, share: deal.share }, credited.toFixed())
  step('Commission', 'flat_rate', { credited: credited.toFixed(), rate: deal.rate }, commission.toFixed())
  step('Acceleration', 'quota_accelerator', { attainment: basis.attainment }, accelerated.toFixed())
  step('Rounding', 'half_even', { decimals: '2' }, rounded)
  return rounded
}

const versions: Readonly<Record<string, string>> = {
  deal_split: '2.0.1',
  flat_rate: '3.1.0',
  quota_accelerator: '2024-07',
  half_even: '1',
}

const sum = (lines: readonly { readonly amount: string }[]): Decimal =>
  lines.reduce((total, line) => total.plus(line.amount), new Exact(0))

/** A whole number of the smallest unit as a decimal with `scale` decimals. */
const decimal = (count: number, scale: number): string => {
  const digits = String(count).padStart(scale + 1, '0')
  return `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}
const cents = (count: number): string => decimal(count, 2)

/** The amount with the opposite sign and the same digits. */
export const opposite = (amount: string): string => (amount.startsWith('-') ? amount.slice(1) : `-${amount}`)
