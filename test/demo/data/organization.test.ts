import { Decimal } from 'decimal.js'
import { describe, expect, test } from 'vitest'
import type { Sent } from '../../../demo/data/demo-record.ts'
import { makeOrganizations } from '../../../demo/data/organization.ts'
import { makePulse } from '../../../demo/run/latency-probe.ts'
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

const eventOf = ({ message }: Sent): AnyEvent =>
  ({ type: message.headers?.ce_type, data: JSON.parse(String(message.value)) }) as AnyEvent
const applied = (sent: readonly Sent[]): AnyEvent[] => sent.filter(({ outcome }) => outcome === 'applied').map(eventOf)
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

test('the same seed makes the same records, another one makes others', () => {
  const few = { years: 1, partitions: 6 }
  expect(makeOrganizations(7, few)).toEqual(makeOrganizations(7, few))
  expect(makeOrganizations(8, few)[0]?.id).not.toBe(makeOrganizations(7, few)[0]?.id)
  expect(makePulse(7, 3)).toEqual(makePulse(7, 3))
})

describe('what is made is as large and as varied as what is promised', () => {
  test('some 40 reps, a few of whom have left', () => {
    const reps = dataOf('commission.rep.recorded.v1')
    const departed = reps.filter(({ status }) => status === 'departed')
    expect(new Set(reps.map(({ id }) => id)).size).toBeGreaterThanOrEqual(40)
    expect(departed.length).toBeGreaterThanOrEqual(4)
    expect(departed.every(({ departed_on }) => departed_on !== null)).toBe(true)
  })

  test('months, quarters and years in several time zones', () => {
    const periods = dataOf('commission.period.recorded.v1')
    expect(new Set(periods.map(({ kind }) => kind))).toEqual(new Set(['month', 'quarter', 'year']))
    expect(new Set(periods.map(({ timezone }) => timezone)).size).toBeGreaterThanOrEqual(4)
  })

  test('at least 5,000 payouts in three currencies, some recorded and not calculated', () => {
    expect(payouts.filter(({ supersedes_id }) => supersedes_id === null).length).toBeGreaterThanOrEqual(5_000)
    expect(new Set(payouts.map(({ currency }) => currency))).toEqual(new Set(['EUR', 'USD', 'GBP']))
    expect(payouts.length - calculated.length).toBeGreaterThan(100)
  })

  test('one in ten is recalculated, up to four times', () => {
    const chains = Object.values(Object.groupBy(payouts, pairOf)).map(chain => chain?.length ?? 0)
    const recalculated = chains.filter(length => length > 1)
    expect(recalculated.length / chains.length).toBeGreaterThan(0.08)
    expect(recalculated.length / chains.length).toBeLessThan(0.12)
    expect(Math.max(...chains)).toBe(5)
  })

  test('trace steps with more decimals than a cent, and lines of all three kinds', () => {
    const steps = calculated.flatMap(({ calculation_trace }) => calculation_trace)
    expect(steps.some(({ output_amount }) => /\.\d{6,}$/.test(output_amount))).toBe(true)
    const categories = payouts.flatMap(({ line_items }) => line_items.map(({ category }) => category))
    expect(new Set(categories)).toEqual(new Set(['earned', 'recovered', 'adjusted']))
  })

  test('payments, voids, and payments again after a void', () => {
    const payments = Object.values(Object.groupBy(dataOf('commission.payroll.recorded.v1'), pairOf))
    expect(dataOf('commission.payroll.voided.v1').length).toBeGreaterThan(100)
    expect(payments.some(paid => (paid?.length ?? 0) > 1)).toBe(true)
  })

  test('a mistake of almost every kind, and some records sent twice', () => {
    const outcomes = new Set(all.map(({ outcome }) => outcome))
    expect(outcomes.size).toBe(17)
    expect(all.filter(({ outcome }) => outcome === 'duplicate').length).toBeGreaterThanOrEqual(20)
  })
})

describe('what is to be applied keeps every rule', () => {
  test('of its schema', () => {
    for (const sent of all) {
      if (sent.outcome === 'applied') expect(matchesSchema(sent.stream, eventOf(sent))).toBe(true)
    }
  })

  test('lines add up to what is owed, and have ids of their own', () => {
    for (const { line_items, net_amount } of payouts) {
      const total = line_items.reduce((sum, { amount }) => sum.plus(amount), new Decimal(0))
      expect(total.eq(net_amount)).toBe(true)
      expect(new Set(line_items.map(({ id }) => id)).size).toBe(line_items.length)
    }
  })

  test('reps and periods come before their payouts, and a payout names the one it replaces', () => {
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

  test('one payment of a rep and period at a time, and a void takes back exactly one', () => {
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

  test('the records of an organization are in the order of their times', () => {
    for (const { sent } of organizations) {
      const times = sent.filter(({ stream, outcome }) => stream === 'events' && outcome === 'applied')
      const texts = times.map(({ message }) => String(message.headers?.ce_time))
      expect(texts).toEqual([...texts].sort())
    }
  })
})

test('every payout of the pulse replaces the one before', () => {
  const data = makePulse(1, 20).payouts.map(sent => eventOf(sent).data as PayoutCalculatedData)
  expect(data.map(({ supersedes_id }) => supersedes_id)).toEqual([null, ...data.slice(0, -1).map(({ id }) => id)])
})
