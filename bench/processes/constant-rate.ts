/**
 * Publishes payouts of several organizations at a constant rate, without waiting for earlier ones. A given share of
 * them replaces a payout that was published before.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type DatasetOrganization, type PayoutShape, payoutOf } from '../rig/dataset.ts'
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

/** Resolves when all are acknowledged. @returns the rate, in payouts a second */
export type PublishSteadily = (
  perSecond: number,
  seconds: number,
  onSent?: (sent: SentPayout) => void,
) => Promise<number>

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

  const next = () => {
    const index = made++ % organizations.length
    const organization = organizations[index]
    const payouts = current[index]
    if (organization === undefined || payouts === undefined) throw new Error('there is no organization')
    const pair = payouts.length > 0 && random.chance(recalculated) ? random.below(payouts.length) : payouts.length
    const payout = payoutOf(organization, firstPair(organization) + pair, payouts[pair] ?? null, shape, random)
    payouts[pair] = payout.id
    return { index, payout }
  }

  return async (perSecond, seconds, onSent = () => {}) => {
    const total = perSecond * seconds
    const requests: Promise<void>[] = []
    const began = performance.now()
    for (let sent = 0; sent < total; ) {
      const wait = began + (1000 * sent) / perSecond - performance.now()
      if (sent > 0) await sleep(Math.max(wait, LINGER_MS), undefined, { signal })
      const due = Math.min(total, 1 + Math.floor(((performance.now() - began) * perSecond) / 1000)) - sent
      const [first, ...more] = Array.from({ length: due }, next)
      if (first === undefined) continue
      const eventOf = ({ payout: data }: typeof first) => ({ type: 'commission.payout.calculated.v1', data }) as const
      const at = performance.now()
      const acknowledged = topics.publish(eventOf(first), ...more.map(eventOf))
      // `Promise.all` below reports a failure. Until then it must not be an unhandled rejection.
      acknowledged.catch(() => undefined)
      requests.push(acknowledged)
      for (const { index, payout } of [first, ...more]) onSent({ id: payout.id, organization: index, at, acknowledged })
      sent += due
    }
    const lasted = performance.now() - began
    await Promise.all(requests)
    return (1000 * (total - 1)) / lasted
  }
}
