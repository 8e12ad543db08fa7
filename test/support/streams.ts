/**
 * Random streams of events of several organizations, with duplicates and bad events. The model tells what exists, so
 * that most events are applied.
 */
import { isDeepStrictEqual } from 'node:util'
import { makeBad } from './bad-event.ts'
import { refused } from './bad-events.ts'
import {
  dataOf,
  keyCreated,
  keyRevoked,
  line,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  step,
} from './events.ts'
import { createModel, type Item, type View } from './model.ts'
import { partitionOf } from './model-record.ts'
import type { Random } from './random.ts'
import { place, toPublished } from './topics.ts'

/** Returns ids of organizations in these partitions, in this order. */
export const organizationsIn = (random: Random, wanted: readonly number[], partitions: number): string[] => {
  const found: string[] = []
  for (const partition of wanted) {
    let org: string
    do org = `org_${random.below(2 ** 32).toString(16)}`
    while (partitionOf(org, partitions) !== partition || found.includes(org))
    found.push(org)
  }
  return found
}

/** Creates an endless stream. It begins with `reps` reps and `periods` periods of each organization. */
export const createStream = (
  random: Random,
  organizations: readonly string[],
  partitions: number,
  { reps = 1, periods = 1 } = {},
) => {
  const model = createModel(partitions)
  const sent: Outgoing[] = []
  const offsets = new Map<string, number>()
  let ids = 0
  const newId = (prefix: string): string => `${prefix}_${++ids}x`

  const send = (record: Outgoing): Outgoing => {
    const placed = place(record, partitions)
    const key = `${placed.stream}:${placed.partition}`
    const offset = offsets.get(key) ?? 0
    offsets.set(key, offset + 1)
    model.take(placed.stream, placed.partition, toPublished(placed, offset))
    sent.push(record)
    return record
  }
  for (const org of organizations) {
    for (let number = 1; number <= reps; number++) send(repRecorded({ org_id: org, id: `rep_${number}` }))
    for (let number = 1; number <= periods; number++) send(periodRecorded({ org_id: org, id: `period_${number}` }))
    send(keyCreated({ org_id: org }))
  }
  const start = sent.length

  return {
    /** Returns at least `count` records. The first call also returns the initial records of each organization. */
    take: (count: number): Outgoing[] => {
      const from = sent.length === start ? 0 : sent.length
      const until = sent.length + count
      while (sent.length < until) {
        const org = random.pick(organizations)
        for (const record of nextOf(org, model.view(org), random, newId, sent)) send(record)
      }
      return sent.slice(from)
    },
  }
}

type NewId = (prefix: string) => string

const nextOf = (org: string, view: View, random: Random, newId: NewId, sent: readonly Outgoing[]): Outgoing[] => {
  const kind = random.next()
  if (kind < 0.06) return [rep(org, view, random, newId)]
  if (kind < 0.1) return [period(org, view, random, newId)]
  if (kind < 0.6) return [payout(org, view, random, newId)]
  if (kind < 0.72) return [payment(org, view, random, newId)]
  if (kind < 0.8) return [reversal(org, view, random, newId)]
  if (kind < 0.84) return [keyOf(org, random, newId)]
  if (kind < 0.92) return [again(random.pick(sent), random)]
  return bad(org, random)
}

const idOf = (item: Item | undefined): string => String(item?.id)

const rep = (org: string, { reps }: View, random: Random, newId: NewId): Outgoing =>
  repRecorded({
    org_id: org,
    id: reps.length < 5 && random.chance(0.5) ? newId('rep') : idOf(random.pick(reps)),
    name: random.pick(['Ada', 'Grace', 'Edsger 😀', '']),
    status: random.pick(['active', 'departed'] as const),
  })

const period = (org: string, { periods }: View, random: Random, newId: NewId): Outgoing =>
  periodRecorded({
    org_id: org,
    id: periods.length < 3 && random.chance(0.5) ? newId('period') : idOf(random.pick(periods)),
    name: random.pick(['January', 'Januar', 'Janvier']),
    ...(random.chance(0.1) && { kind: 'year' }),
  })

const payout = (org: string, view: View, random: Random, newId: NewId): Outgoing => {
  const [rep_id, period_id] = [idOf(random.pick(view.reps)), idOf(random.pick(view.periods))]
  const current = view.payouts.find(item => item.rep_id === rep_id && item.period_id === period_id)
  const wrong = random.chance(0.05) ? idOf(view.everyPayout[0]) : undefined
  const amounts = Array.from({ length: random.below(4) }, () => amount(random))
  const data = {
    org_id: org,
    id: newId('payout'),
    rep_id,
    period_id,
    supersedes_id: wrong?.startsWith('payout_') ? wrong : current ? idOf(current) : null,
    currency: random.pick(['EUR', 'USD']),
    net_amount: sumOf(amounts),
    earned_amount: amount(random),
    line_items: amounts.map((of, at) => line({ id: `line_${at}`, amount: of, deal_id: random.pick([null, 'deal_1']) })),
  }
  if (random.chance(0.3)) return payoutRecorded(data)
  const calculation_trace = amounts.map((of, at) =>
    step({ step: at + 1, output_amount: of, inputs: { '': of, a: 'b' } }),
  )
  return payoutCalculated({ ...data, calculation_trace })
}

const payment = (org: string, view: View, random: Random, newId: NewId): Outgoing => {
  const of = view.payouts.length > 0 && random.chance(0.7) ? random.pick(view.payouts) : undefined
  return payrollRecorded({
    org_id: org,
    id: newId('payroll'),
    rep_id: of ? String(of.rep_id) : idOf(random.pick(view.reps)),
    period_id: of ? String(of.period_id) : idOf(random.pick(view.periods)),
    payout_id: of ? idOf(of) : null,
    amount: amount(random),
  })
}

const reversal = (org: string, view: View, random: Random, newId: NewId): Outgoing => {
  const voided = new Set(view.payroll_files.map(({ reverses_id }) => reverses_id))
  const open = view.payroll_files.filter(({ id, reverses_id }) => reverses_id === null && !voided.has(id))
  const of = open.length > 0 && random.chance(0.9) ? random.pick(open) : view.payroll_files[0]
  return payrollVoided({
    org_id: org,
    id: newId('payroll'),
    ...(of && { reverses_id: idOf(of), amount: negated(String(of.amount)), currency: String(of.currency) }),
  })
}

const keyOf = (org: string, random: Random, newId: NewId): Outgoing =>
  random.chance(0.6)
    ? keyCreated({ org_id: org, id: newId('key') })
    : keyRevoked({ org_id: org, id: `key_${1 + random.below(30)}x` })

/** Returns the same event, sometimes in another format. */
const again = (record: Outgoing, random: Random): Outgoing => {
  if (random.chance(0.5) || !isPlain(record)) return record
  return { ...record, value: JSON.stringify(dataOf(record), null, 2) }
}

const isPlain = (record: Outgoing): boolean => {
  try {
    return isDeepStrictEqual(JSON.stringify(dataOf(record)), record.value)
  } catch {
    return false
  }
}

const badOnes = Object.values(refused).flatMap(makes => Object.values(makes))

const PARTITIONS_OF_BAD = 3

const bad = (org: string, random: Random): Outgoing[] => {
  const { before, bad } = makeBad(random.pick(badOnes), org, PARTITIONS_OF_BAD)
  return [...before, bad]
}

// --- money, as text

/** Amounts whose exact characters are easily lost. */
const amount = (random: Random): string => {
  const cents = random.below(1_000_000)
  const text = `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
  return random
    .pick([text, text, `${text}00`, `-${text}`, `${1 + cents}`, '0', '0.00', '0.00000000000000001', '9'.repeat(30)])
    .replace(/^-(0(\.0+)?)$/, '$1')
}

const negated = (amount: string): string => {
  if (/^0(\.0+)?$/.test(amount)) return amount
  return amount.startsWith('-') ? amount.slice(1) : `-${amount}`
}

const PLACES = 20

/** Returns the exact sum with 20 decimal places. */
export const sumOf = (amounts: readonly string[]): string => {
  let sum = 0n
  for (const amount of amounts) {
    const [whole = '', fraction = ''] = amount.replace('-', '').split('.')
    const digits = BigInt(whole + fraction.padEnd(PLACES, '0'))
    sum += amount.startsWith('-') ? -digits : digits
  }
  const digits = String(sum < 0n ? -sum : sum).padStart(PLACES + 1, '0')
  return `${sum < 0n ? '-' : ''}${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`
}
