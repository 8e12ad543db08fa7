/** Publishes new payouts of several organizations at a constant rate, whatever happens to earlier ones. */
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
  /** They need free pairs for all payouts that are ever published. */
  readonly organizations: readonly DatasetOrganization[]
  readonly shape: PayoutShape
  readonly signal: AbortSignal
}

/** Creates a publisher. Each call continues with the next free pairs of rep and period. */
export const createSteadyPublisher = ({ topics, organizations, shape, signal }: Parts): PublishSteadily => {
  const random = createDatasetRandom('steady')
  let made = 0

  const next = () => {
    const index = made % organizations.length
    const organization = organizations[index]
    if (organization === undefined) throw new Error('there is no organization')
    const pair = organization.firstFree + Math.floor(made / organizations.length)
    made++
    return { index, payout: payoutOf(organization, pair, null, shape, random) }
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
