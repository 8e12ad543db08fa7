/**
 * The measured data: organizations with reps and periods, and payouts with a given number of lines and steps, some of
 * which replace an earlier one. The same size gives the same events, byte for byte.
 */
import type { CommissionEvent, LineItem, PayoutCalculatedData, TraceStep } from '../../schemas/events.ts'
import { createDatasetRandom, type DatasetRandom } from './random.ts'

export type DatasetSize = {
  readonly payouts: number
  readonly organizations: number
  /** Share of the payouts that the first organization has; by default all have the same. */
  readonly firstShare?: number
  /** Share of the payouts that replace an earlier one. */
  readonly recalculated: number
  /** Least pairs of rep and period without a payout, in each organization. */
  readonly free?: number
  /** If set, every rep has this many payouts in each period, and each replaces the one before. */
  readonly chainLength?: number
} & PayoutShape

/** Lines and trace steps of every payout. */
export type PayoutShape = {
  readonly lines: number
  readonly steps: number
  /** Deals of all lines together; by default each line has its own. */
  readonly deals?: number
}

export type Dataset = {
  readonly organizations: readonly DatasetOrganization[]
  /** Reps and periods: publish them before the payouts. */
  readonly peopleAndPeriods: () => Iterable<CommissionEvent>
  readonly payouts: () => Iterable<CommissionEvent>
  /** Makes all payouts. Returns the id of the last payout of each pair, by organization and number of the pair. */
  readonly currentIds: () => string[][]
}

export type DatasetOrganization = {
  readonly id: string
  readonly reps: readonly string[]
  readonly periods: readonly string[]
  /** Number of the first pair of rep and period without a payout in the dataset. */
  readonly firstFree: number
}

const PERIODS = 24

/** Creates a dataset. Its events are made as they are read. */
export const createDataset = (size: DatasetSize): Dataset => {
  const { free = 0 } = size
  const quotas = quotasOf(size)
  const random = createDatasetRandom('organizations')
  const organizations = quotas.map(quota => ({
    id: `org_${random.id()}`,
    reps: Array.from({ length: Math.ceil((quota + free) / PERIODS) }, () => `rep_${random.id()}`),
    periods: Array.from({ length: PERIODS }, () => `period_${random.id()}`),
    firstFree: quota,
  }))
  return {
    organizations,
    peopleAndPeriods: () => organizations.flatMap(recordedOf),
    payouts: () => payoutsOf(organizations, quotas, size, noIds(organizations)),
    currentIds: () => {
      const current = noIds(organizations)
      for (const _ of payoutsOf(organizations, quotas, size, current));
      return current
    },
  }
}

// Only ids: a million whole payouts would take gigabytes.
const noIds = (organizations: readonly DatasetOrganization[]): string[][] => organizations.map(() => [])

const quotasOf = ({ payouts, organizations, firstShare = 1 / organizations }: DatasetSize): number[] => {
  const first = Math.round(payouts * firstShare)
  const rest = Math.floor((payouts - first) / Math.max(1, organizations - 1))
  const quotas = [first, ...Array.from({ length: organizations - 1 }, () => rest)]
  // The remainder goes to the last organization.
  quotas[organizations - 1] = (quotas.at(-1) ?? 0) + payouts - quotas.reduce((sum, quota) => sum + quota, 0)
  return quotas
}

const recordedOf = (organization: DatasetOrganization): CommissionEvent[] => [
  ...organization.periods.map((_, month) => periodOf(organization, month, `Month ${month + 1}`)),
  ...organization.reps.map((_, number) => repOf(organization, number, `Rep Number ${number}`)),
]

/** A version of a period. @param month counted from January 2024 */
export const periodOf = (
  { id: org_id, periods }: DatasetOrganization,
  month: number,
  name: string,
): CommissionEvent => ({
  type: 'commission.period.recorded.v1',
  data: {
    org_id,
    id: known(periods[month]),
    kind: 'month',
    name,
    timezone: 'Europe/Berlin',
    starts_at: instantOf(month),
    ends_at: instantOf(month + 1),
  },
})

/** A version of a rep. */
export const repOf = ({ id: org_id, reps }: DatasetOrganization, number: number, name: string): CommissionEvent => ({
  type: 'commission.rep.recorded.v1',
  data: {
    org_id,
    id: known(reps[number]),
    name,
    email: `rep${number}@example.com`,
    status: 'active',
    started_on: '2024-01-15',
    departed_on: null,
  },
})

/** A payment to a rep for a period, which is of no single payout. */
export const paymentOf = (
  { id: org_id, reps, periods }: DatasetOrganization,
  random: DatasetRandom,
): CommissionEvent => ({
  type: 'commission.payroll.recorded.v1',
  data: {
    org_id,
    id: `payroll_${random.id()}`,
    rep_id: known(reps[random.below(reps.length)]),
    period_id: known(periods[random.below(periods.length)]),
    payout_id: null,
    amount: money(random.below(2_000_000) + 1),
    currency: 'EUR',
    destination: { type: 'payroll_provider', label: 'Payroll run' },
    recorded_at: '2026-02-01T08:30:00.125Z',
  },
})

const known = (id: string | undefined): string => {
  if (id === undefined) throw new Error('an organization has too few reps and periods')
  return id
}

/** The first instant of a month, counted from January 2024. */
const instantOf = (month: number): string => new Date(Date.UTC(2024, month)).toISOString().replace('.000Z', 'Z')

function* payoutsOf(
  organizations: readonly DatasetOrganization[],
  quotas: readonly number[],
  size: DatasetSize,
  current: readonly string[][],
): Generator<CommissionEvent> {
  const random = createDatasetRandom('payouts')
  const done = organizations.map(() => 0)
  for (const index of random.shuffle(quotas.flatMap((quota, index) => Array<number>(quota).fill(index)))) {
    const organization = organizations[index]
    const payouts = current[index]
    if (organization === undefined || payouts === undefined) throw new Error('a payout of no organization')
    const replacedAt = pairOf(payouts.length, done[index] ?? 0, quotas[index] ?? 0, size, random)
    done[index] = (done[index] ?? 0) + 1
    const payout = payoutOf(organization, replacedAt, payouts[replacedAt] ?? null, size, random)
    payouts[replacedAt] = payout.id
    yield { type: 'commission.payout.calculated.v1', data: payout }
  }
}

/** The pair of the next payout of an organization: one that has a payout, or the next one without. */
const pairOf = (
  pairs: number,
  done: number,
  quota: number,
  { recalculated, chainLength }: DatasetSize,
  random: DatasetRandom,
): number => {
  if (chainLength !== undefined) return done % Math.ceil(quota / chainLength)
  return pairs > 0 && random.chance(recalculated) ? random.below(pairs) : pairs
}

/** A payout of a pair. Pairs are numbered over all reps of the first period, then of the second. */
export const payoutOf = (
  { id: org_id, reps, periods }: DatasetOrganization,
  pair: number,
  supersedes_id: string | null,
  { lines, steps, deals }: PayoutShape,
  random: DatasetRandom,
): PayoutCalculatedData => {
  const [rep_id, period_id] = [known(reps[pair % reps.length]), known(periods[Math.floor(pair / reps.length)])]
  const amounts = Array.from({ length: lines }, () => random.below(2_000_000) + 1)
  const sum = amounts.reduce((total, amount) => total + amount, 0)
  return {
    org_id,
    id: `payout_${random.id()}`,
    rep_id,
    period_id,
    supersedes_id,
    currency: 'EUR',
    net_amount: money(sum),
    earned_amount: money(sum),
    line_items: amounts.map((amount, index) => lineOf(amount, index, deals, random)),
    calculation_trace: Array.from({ length: steps }, (_, index) => stepOf(index, amounts[index % lines] ?? 0, random)),
    calculated_at: '2026-02-01T08:30:00.125Z',
  }
}

const lineOf = (amount: number, index: number, deals: number | undefined, random: DatasetRandom): LineItem => ({
  id: `line_${random.id(10)}`,
  category: 'earned',
  description: `Closed deal number ${random.below(100_000)}, instalment ${index + 1}`,
  amount: money(amount),
  deal_id: `deal_${deals === undefined ? random.id(16) : String(random.below(deals)).padStart(16, '0')}`,
})

const stepOf = (index: number, amount: number, random: DatasetRandom): TraceStep => ({
  step: index + 1,
  name: `Rate of tier ${index + 1}`,
  strategy: 'tiered_rate',
  strategy_version: '3.1.0',
  inputs: { base_amount: money(amount * 10), rate: `0.${random.below(9_000) + 1_000}` },
  output_amount: money(amount),
  deal_id: `deal_${random.id(16)}`,
})

const money = (cents: number): string => `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`
