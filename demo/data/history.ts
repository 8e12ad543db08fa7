/** The history of one rep and period: a payout, sometimes recalculated, paid, voided and paid again. */
import type { AnyEvent, PayrollRecordedData } from '../../schemas/events.ts'
import type { Span } from './calendar.ts'
import { type Basis, calculate, makeBasis, opposite, recalculate } from './payout.ts'
import type { Random } from './random.ts'

type RepPeriod = {
  readonly org_id: string
  readonly rep_id: string
  readonly period_id: string
  readonly currency: string
  readonly span: Span
}
export type TimedEvent = { readonly at: number; readonly event: AnyEvent }

type Step = { readonly at: number; readonly what: 'payout' | 'payment' | 'void' }
type Payment = PayrollRecordedData
/** The current state of the pair: its current payout, and the payment that is not voided. */
type PairState = {
  readonly basis: Basis
  readonly payout: { readonly id: string; readonly amount: string; readonly currency: string } | undefined
  readonly payment: Payment | undefined
}

const DAY = 24 * 60 * 60_000

/** Returns the events of one pair, in the order of their times. */
export const historyOf = (pair: RepPeriod, random: Random): TimedEvent[] => {
  const timedEvents: TimedEvent[] = []
  let state: PairState = { basis: makeBasis(pair.span.kind, random), payout: undefined, payment: undefined }
  for (const { at, what } of plan(pair.span.to, random)) {
    const next = take[what](pair, state, at, random)
    if (next === undefined) continue
    timedEvents.push({ at, event: next.event })
    state = next.state
  }
  return timedEvents
}

const plan = (end: number, random: Random): Step[] => {
  const days = (from: number, to: number) => end + random.integer(from * 24 * 60, to * 24 * 60) * 60_000
  const steps: Step[] = [{ at: days(1, 3), what: 'payout' }]
  if (random.chance(0.1)) {
    const times = random.pick([1, 1, 1, 2, 2, 3, 4])
    for (let time = 1; time <= times; time++) steps.push({ at: days(14 * time, 14 * time + 13), what: 'payout' })
  }
  if (random.chance(0.8)) steps.push({ at: days(5, 9), what: 'payment' })
  if (random.chance(0.06)) steps.push({ at: days(10, 13), what: 'void' })
  if (random.chance(0.05)) steps.push({ at: days(30, 34), what: 'payment' })
  if (random.chance(0.01)) steps.push({ at: days(35, 39), what: 'void' }, { at: days(40, 44), what: 'payment' })
  return steps.sort((a, b) => a.at - b.at)
}

type Taken = { readonly event: AnyEvent; readonly state: PairState } | undefined
type Take = (pair: RepPeriod, state: PairState, at: number, random: Random) => Taken

const takePayout: Take = (pair, state, at, random) => {
  const { payout: before } = state
  const basis = before === undefined ? state.basis : recalculate(state.basis, random)
  const { org_id, rep_id, period_id } = pair
  const id = random.id('payout')
  // A rep who moves is recalculated in the currency of the new contract.
  const currency = before !== undefined && random.chance(0.03) ? random.pick(currencies) : pair.currency
  const common = { org_id, id, rep_id, period_id, supersedes_id: before?.id ?? null, currency }
  const { calculation_trace, ...calculated } = calculate(basis, random)
  const instant = new Date(at).toISOString()

  if (random.chance(0.04)) {
    const amounts = random.chance(0.5) ? calculated : inWholeUnits(random)
    const event = {
      type: 'commission.payout.recorded.v1',
      data: { ...common, ...amounts, recorded_at: instant },
    } as const
    return { event, state: { ...state, payout: { id, amount: event.data.net_amount, currency } } }
  }
  const calculated_at = instant.replace('000Z', `${random.integer(100_000, 999_999)}Z`)
  const data = { ...common, ...calculated, calculation_trace, calculated_at }
  const payout = { id, amount: data.net_amount, currency }
  return { event: { type: 'commission.payout.calculated.v1', data }, state: { ...state, basis, payout } }
}

const currencies = ['EUR', 'USD', 'GBP']

/** An amount from an older system, in its form: without decimals, or with one. */
const inWholeUnits = (random: Random) => {
  const amount = `${random.integer(100, 4_000)}${random.pick(['', '.5'])}`
  const description = 'Taken over from the earlier system'
  const line = { id: random.id('line'), category: 'earned', description, amount, deal_id: null } as const
  return { net_amount: amount, earned_amount: amount, line_items: [line] }
}

const takePayment: Take = ({ org_id, rep_id, period_id }, state, at, random) => {
  const { payout, payment } = state
  if (payout === undefined || payment !== undefined || !/[1-9]/.test(payout.amount)) return undefined
  const data: Payment = {
    org_id,
    id: random.id('payroll'),
    rep_id,
    period_id,
    payout_id: random.chance(0.9) ? payout.id : null,
    amount: payout.amount,
    currency: payout.currency,
    destination: random.pick([
      { type: 'bank_account', label: `Account ending in ${random.integer(1_000, 9_999)}` },
      { type: 'payroll_provider', label: `Payroll run ${new Date(at).toISOString().slice(0, 7)}` },
      { type: 'other', label: 'Cheque' },
    ]),
    recorded_at: new Date(at).toISOString(),
  }
  return { event: { type: 'commission.payroll.recorded.v1', data }, state: { ...state, payment: data } }
}

const takeVoid: Take = ({ org_id }, state, at, random) => {
  const { payment } = state
  if (payment === undefined) return undefined
  const { id: reverses_id, currency } = payment
  const amount = opposite(payment.amount)
  const recorded_at = new Date(at).toISOString()
  const data = { org_id, id: random.id('payroll'), reverses_id, amount, currency, recorded_at }
  return { event: { type: 'commission.payroll.voided.v1', data }, state: { ...state, payment: undefined } }
}

const take: Readonly<Record<Step['what'], Take>> = { payout: takePayout, payment: takePayment, void: takeVoid }

/** Milliseconds after the end of a period in which its whole history happens. */
export const HISTORY_TAKES = 75 * DAY
