/**
 * Publishes events of several organizations at a constant rate, without waiting for earlier ones: payouts, of which a
 * given share replaces a payout that was published before, and among them other records, if they are asked for.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommissionEvent } from '../../schemas/events.ts'
import { type DatasetOrganization, type PayoutShape, paymentOf, payoutOf, periodOf, repOf } from '../rig/dataset.ts'
import { createDatasetRandom } from '../rig/random.ts'
import type { Topics } from './publish.ts'

/** Least milliseconds between two requests: the default linger of Kafka's clients. Payouts due meanwhile share one. */
export const LINGER_MS = 5

/** A payout that was sent: its organization, the time of its request, and its acknowledgement. */
export type SentPayout = {
  readonly id: string
  readonly organization: number
  readonly at: number
  readonly acknowledged: Promise<void>
}

/**
 * Publishes payouts alone, or a mix of all kinds of events: 90 % payouts, 4 % versions of reps, 4 % payments, 2 %
 * versions of periods. Resolves when all are acknowledged.
 * @param onSent called for each payout
 * @returns the rate, in events a second
 */
export type PublishSteadily = (
  perSecond: number,
  seconds: number,
  onSent?: (sent: SentPayout) => void,
  stream?: EventStream,
) => Promise<number>
export type EventStream = 'mix' | 'payouts'

type Parts = {
  readonly topics: Pick<Topics, 'publish'>
  /** They need free pairs of rep and period for all payouts that replace none: see `freePairs`. */
  readonly organizations: readonly DatasetOrganization[]
  readonly shape: PayoutShape
  /** Share of the payouts that replace another one, chosen at random of all current ones. */
  readonly recalculated?: number
  /** Ids of payouts that were published before, by organization and number of the pair. They are replaced, too. */
  readonly earlier?: readonly (readonly string[])[] | undefined
  readonly signal: AbortSignal
}

/** Pairs that each organization needs for this many payouts. One in ten more, because replacing is left to chance. */
export const freePairs = (payouts: number, organizations: number, recalculated: number): number =>
  Math.ceil((payouts / organizations) * Math.min(1, 1.1 * (1 - recalculated))) + 100

/** Of 50 events of a mix two are of reps, two are payments, and one is of a period. The others are payouts. */
const PAYOUTS_FROM = 5

/** Creates a publisher. Each call continues where the one before ended. */
export const createSteadyPublisher = ({
  topics,
  organizations,
  shape,
  recalculated = 0,
  earlier,
  signal,
}: Parts): PublishSteadily => {
  const random = createDatasetRandom('steady')
  /** Ids of the current payouts, by organization and pair. */
  const current = organizations.map((_, index) => [...(earlier?.[index] ?? [])])
  const firstPair = ({ firstFree }: DatasetOrganization): number => (earlier === undefined ? firstFree : 0)
  let made = 0

  /** An event, and the id of its payout, if it is of one. */
  const next = (stream: EventStream): { index: number; event: CommissionEvent; payout?: string } => {
    const index = made++ % organizations.length
    const organization = organizations[index]
    const payouts = current[index]
    if (organization === undefined || payouts === undefined) throw new Error('there is no organization')
    const kind = stream === 'mix' ? random.below(50) : PAYOUTS_FROM
    if (kind < 2) return { index, event: repOf(organization, random.below(organization.reps.length), `Rep ${made}`) }
    if (kind < 4) return { index, event: paymentOf(organization, random) }
    if (kind < PAYOUTS_FROM) {
      return { index, event: periodOf(organization, random.below(organization.periods.length), `Period ${made}`) }
    }
    const pair = payouts.length > 0 && random.chance(recalculated) ? random.below(payouts.length) : payouts.length
    const payout = payoutOf(organization, firstPair(organization) + pair, payouts[pair] ?? null, shape, random)
    payouts[pair] = payout.id
    return { index, event: { type: 'commission.payout.calculated.v1', data: payout }, payout: payout.id }
  }

  return async (perSecond, seconds, onSent = () => {}, stream = 'payouts') => {
    const total = perSecond * seconds
    const requests: Promise<void>[] = []
    const began = performance.now()
    for (let sent = 0; sent < total; ) {
      const wait = began + (1000 * sent) / perSecond - performance.now()
      if (sent > 0) await sleep(Math.max(wait, LINGER_MS), undefined, { signal })
      const due = Math.min(total, 1 + Math.floor(((performance.now() - began) * perSecond) / 1000)) - sent
      const [first, ...more] = Array.from({ length: due }, () => next(stream))
      if (first === undefined) continue
      const at = performance.now()
      const acknowledged = topics.publish(first.event, ...more.map(({ event }) => event))
      // `Promise.all` below reports a failure. Until then it must not be an unhandled rejection.
      acknowledged.catch(() => undefined)
      requests.push(acknowledged)
      for (const { index, payout } of [first, ...more]) {
        if (payout !== undefined) onSent({ id: payout, organization: index, at, acknowledged })
      }
      sent += due
    }
    const lasted = performance.now() - began
    await Promise.all(requests)
    return (1000 * (total - 1)) / lasted
  }
}
