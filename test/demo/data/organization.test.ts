import { Decimal } from 'decimal.js'
import { describe, expect, test } from 'vitest'
import type { DemoRecord } from '../../../demo/data/demo-record.ts'
import { makeOrganizations } from '../../../demo/data/organization.ts'
import { makeProbeOrganization } from '../../../demo/run/latency-probe.ts'
import type {
  AnyEvent,
  PayoutCalculatedData,
  PayoutRecordedData,
  PayrollRecordedData,
} from '../../../schemas/events.ts'
import { matchesSchema } from '../../../schemas/validate.ts'

const size = { years: 10, partitions: 6 }
const organizations = makeOrganizations(1, size)
const all = organizations.flatMap(({ sent }) => sent)

const eventOf = ({ message }: DemoRecord): AnyEvent =>
  ({ type: message.headers?.ce_type, data: JSON.parse(String(message.value)) }) as AnyEvent
const applied = (sent: readonly DemoRecord[]): AnyEvent[] =>
  sent.filter(({ outcome }) => outcome === 'applied').map(eventOf)
const events = applied(all)
type DataOf<Type> = Extract<AnyEvent, { type: Type }>['data']
const dataOf = <Type extends AnyEvent['type']>(type: Type): DataOf<Type>[] =>
  events.flatMap(event => (event.type === type ? [event.data as DataOf<Type>] : []))
const calculated = dataOf('commission.payout.calculated.v1')
const payouts: (PayoutCalculatedData | PayoutRecordedData)[] = [
  ...calculated,
  ...dataOf('commission.payout.recorded.v1'),
]
const pairOf = ({ rep_id, period_id }: { rep_id: string; period_id: string }) => `${rep_id} ${period_id}`

test('the same seed makes the same records, and another seed makes other records', () => {
  const few = { years: 1, partitions: 6 }
  expect(makeOrganizations(7, few)).toEqual(makeOrganizations(7, few))
  expect(makeOrganizations(8, few)[0]?.id).not.toBe(makeOrganizations(7, few)[0]?.id)
  expect(makeProbeOrganization(7, 3)).toEqual(makeProbeOrganization(7, 3))
})

describe('the demo data is as large and varied as promised', () => {
  test('has some 40 reps, a few of whom have left', () => {
    const reps = dataOf('commission.rep.recorded.v1')
    const departed = reps.filter(({ status }) => status === 'departed')
    expect(new Set(reps.map(({ id }) => id)).size).toBeGreaterThanOrEqual(40)
    expect(departed.length).toBeGreaterThanOrEqual(4)
    expect(departed.every(({ departed_on }) => departed_on !== null)).toBe(true)
  })

  test('has months, quarters and years in several time zones', () => {
    const periods = dataOf('commission.period.recorded.v1')
    expect(new Set(periods.map(({ kind }) => kind))).toEqual(new Set(['month', 'quarter', 'year']))
    expect(new Set(periods.map(({ timezone }) => timezone)).size).toBeGreaterThanOrEqual(4)
  })

  test('has at least 5,000 payouts in three currencies, some recorded and not calculated', () => {
    expect(payouts.filter(({ supersedes_id }) => supersedes_id === null).length).toBeGreaterThanOrEqual(5_000)
    expect(new Set(payouts.map(({ currency }) => currency))).toEqual(new Set(['EUR', 'USD', 'GBP']))
    expect(payouts.length - calculated.length).toBeGreaterThan(100)
  })

  test('recalculates one payout in ten, up to four times', () => {
    const chains = Object.values(Object.groupBy(payouts, pairOf)).map(chain => chain?.length ?? 0)
    const recalculated = chains.filter(length => length > 1)
    expect(recalculated.length / chains.length).toBeGreaterThan(0.08)
    expect(recalculated.length / chains.length).toBeLessThan(0.12)
    expect(Math.max(...chains)).toBe(5)
  })

  test('has trace steps with more decimals than a cent, and lines of all three kinds', () => {
    const steps = calculated.flatMap(({ calculation_trace }) => calculation_trace)
    expect(steps.some(({ output_amount }) => /\.\d{6,}$/.test(output_amount))).toBe(true)
    const categories = payouts.flatMap(({ line_items }) => line_items.map(({ category }) => category))
    expect(new Set(categories)).toEqual(new Set(['earned', 'recovered', 'adjusted']))
  })

  test('has payments, voids, and payments after a void', () => {
    const payments = Object.values(Object.groupBy(dataOf('commission.payroll.recorded.v1'), pairOf))
    expect(dataOf('commission.payroll.voided.v1').length).toBeGreaterThan(100)
    expect(payments.some(paid => (paid?.length ?? 0) > 1)).toBe(true)
  })

  test('has almost every kind of mistake, and some records sent twice', () => {
    const outcomes = new Set(all.map(({ outcome }) => outcome))
    expect(outcomes.size).toBe(17)
    expect(all.filter(({ outcome }) => outcome === 'duplicate').length).toBeGreaterThanOrEqual(20)
  })
})

describe('the events to apply follow every rule', () => {
  test('match their schema', () => {
    for (const sent of all) {
      if (sent.outcome === 'applied') expect(matchesSchema(sent.stream, eventOf(sent))).toBe(true)
    }
  })

  test('have lines with unique ids that add up to the amount owed', () => {
    for (const { line_items, net_amount } of payouts) {
      const total = line_items.reduce((sum, { amount }) => sum.plus(amount), new Decimal(0))
      expect(total.eq(net_amount)).toBe(true)
      expect(new Set(line_items.map(({ id }) => id)).size).toBe(line_items.length)
    }
  })

  test('have reps and periods before their payouts, and payouts that name the one they replace', () => {
    const known = new Set<string>()
    const current = new Map<string, string>()
    for (const { type, data } of events) {
      if (type === 'commission.rep.recorded.v1' || type === 'commission.period.recorded.v1') known.add(data.id)
      if (type !== 'commission.payout.calculated.v1' && type !== 'commission.payout.recorded.v1') continue
      expect(known.has(data.rep_id) && known.has(data.period_id)).toBe(true)
      expect(data.supersedes_id).toBe(current.get(pairOf(data)) ?? null)
      current.set(pairOf(data), data.id)
    }
  })

  test('have one open payment per rep and period, and voids that reverse exactly one', () => {
    const payments = new Map<string, PayrollRecordedData>()
    const open = new Map<string, string>()
    for (const { type, data } of events) {
      if (type === 'commission.payroll.recorded.v1') {
        expect(open.has(pairOf(data))).toBe(false)
        open.set(pairOf(data), data.id)
        payments.set(data.id, data)
      }
      if (type !== 'commission.payroll.voided.v1') continue
      const reversed = payments.get(data.reverses_id)
      if (reversed === undefined) throw new Error(`${data.id} reverses nothing`)
      expect(open.get(pairOf(reversed))).toBe(reversed.id)
      expect(new Decimal(data.amount).plus(reversed.amount).isZero()).toBe(true)
      open.delete(pairOf(reversed))
    }
  })

  test('have times that increase within an organization', () => {
    for (const { sent } of organizations) {
      const times = sent.filter(({ stream, outcome }) => stream === 'events' && outcome === 'applied')
      const texts = times.map(({ message }) => String(message.headers?.ce_time))
      expect(texts).toEqual([...texts].sort())
    }
  })
})

test('every payout of the pulse replaces the one before', () => {
  const data = makeProbeOrganization(1, 20).payouts.map(sent => eventOf(sent).data as PayoutCalculatedData)
  expect(data.map(({ supersedes_id }) => supersedes_id)).toEqual([null, ...data.slice(0, -1).map(({ id }) => id)])
})
