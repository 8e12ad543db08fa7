/** A small organization whose payouts, published one by one, measure the time from publishing to reading. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../client/src/index.ts'
import { midnight, spansOf } from '../data/calendar.ts'
import { applied, type DemoRecord, eventAt } from '../data/demo-record.ts'
import { makeKeys } from '../data/keys.ts'
import type { DemoOrganization } from '../data/organization.ts'
import { calculate, makeBasis } from '../data/payout.ts'
import { createRandom } from '../data/random.ts'

/** `sent` is published first, then `payouts` one by one. */
type ProbeOrganization = DemoOrganization & { readonly payouts: readonly DemoRecord[] }

/** Makes the organization. @param count payouts that are published one by one */
export const makeProbeOrganization = (seed: number, count: number): ProbeOrganization => {
  const random = createRandom(seed * 100 + 99)
  const org_id = random.id('org')
  const { at } = midnight('Asia/Tokyo', 2026, 1)
  const [span] = spansOf(
    { zones: { month: 'Asia/Tokyo', quarter: 'Asia/Tokyo', year: 'Asia/Tokyo' }, yearBegins: 1 },
    2026,
    1,
  )
  if (span === undefined) throw new Error('a year has a first month')
  const keys = makeKeys(org_id, at, random)
  const { kind, name, timezone, starts_at, ends_at } = span
  const period = { org_id, id: random.id('period'), kind, name, timezone, starts_at, ends_at }
  const rep = { org_id, id: random.id('rep'), name: 'Hanako Sato', email: null, status: 'active' } as const
  const before = [
    eventAt(at, '1', { type: 'commission.rep.recorded.v1', data: { ...rep, started_on: null, departed_on: null } }),
    eventAt(at, '2', { type: 'commission.period.recorded.v1', data: period }),
  ]

  const payouts: DemoRecord[] = []
  let supersedes_id: string | null = null
  for (let nth = 1; nth <= count; nth++) {
    const id = random.id('payout')
    const pair = { org_id, id, rep_id: rep.id, period_id: period.id, supersedes_id, currency: 'EUR' }
    const calculated_at = new Date(span.to + nth * 1_000).toISOString()
    const data = { ...pair, ...calculate(makeBasis(kind, random), random), calculated_at }
    payouts.push(applied(eventAt(span.to, `payout-${nth}`, { type: 'commission.payout.calculated.v1', data })))
    supersedes_id = id
  }
  return { name: 'Pulse KK', id: org_id, keys, sent: [...keys.events, ...before].map(applied), payouts }
}

type ProbeSteps = {
  readonly publish: (sent: DemoRecord) => Promise<unknown>
  readonly client: Client
  /** Milliseconds of a clock that never goes back. */
  readonly elapsed: () => number
  readonly onMeasured: (count: number) => void
  readonly signal: AbortSignal
}

/** Least milliseconds between two payouts. */
const PUBLISH_INTERVAL_MS = 50
/** Milliseconds between two reads of the list. */
const POLL_MS = 2
/** Milliseconds after which a missing payout is an error. */
const VISIBLE_TIMEOUT_MS = 10_000

/** Returns milliseconds for each payout, from passing it to the Kafka client until a client of the API reads it. */
export const measureLatencies = async (payouts: readonly DemoRecord[], steps: ProbeSteps): Promise<number[]> => {
  const times: number[] = []
  let cursor: string | undefined
  for (const sent of payouts) {
    const { id }: { id: string } = JSON.parse(String(sent.message.value))
    const began = steps.elapsed()
    await steps.publish(sent)
    await waitUntilListed(id, cursor, steps)
    const took = steps.elapsed() - began
    times.push(took)
    steps.onMeasured(times.length)
    cursor = id
    await delay(Math.max(0, PUBLISH_INTERVAL_MS - took), undefined, { signal: steps.signal })
  }
  return times
}

const waitUntilListed = async (
  id: string,
  cursor: string | undefined,
  { client, elapsed, signal }: ProbeSteps,
): Promise<void> => {
  const began = elapsed()
  const behindCursor = cursor === undefined ? {} : { startingAfter: cursor }
  while (elapsed() - began < VISIBLE_TIMEOUT_MS) {
    for await (const payout of client.payouts({ limit: 1, ...behindCursor })) if (payout.id === id) return
    await delay(POLL_MS, undefined, { signal })
  }
  throw new Error(`${id} was published and is not on the list after ${VISIBLE_TIMEOUT_MS / 1000} s`)
}

/** The smallest value that at least `percent` of the values do not exceed. */
export const percentileOf = (values: readonly number[], percent: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN
}
