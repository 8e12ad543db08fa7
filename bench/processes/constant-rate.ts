/** Publishes payouts of their own at a steady rate, over several organizations, whatever becomes of those before. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Organization, type PayoutShape, payoutOf } from '../rig/dataset.ts'
import { createRandom } from '../rig/random.ts'
import type { Topics } from './publish.ts'

/**
 * Milliseconds between two requests at least; those due meanwhile are one request. It is what Kafka's own clients wait
 * by default.
 */
export const LINGER_MS = 5

/** A payout on its way: of which organization, when its request was sent, and its acknowledgement. */
export type Sent = {
  readonly id: string
  readonly organization: number
  readonly at: number
  readonly acknowledged: Promise<void>
}

/** @returns when all are acknowledged: how many a second were published */
export type PublishSteadily = (perSecond: number, seconds: number, onSent?: (sent: Sent) => void) => Promise<number>

type Parts = {
  readonly topics: Pick<Topics, 'publish'>
  /** They must have free pairs for all that is ever published. */
  readonly organizations: readonly Organization[]
  readonly shape: PayoutShape
  readonly signal: AbortSignal
}

export const createSteadyPublisher = ({ topics, organizations, shape, signal }: Parts): PublishSteadily => {
  const random = createRandom('steady')
  let made = 0

  const next = () => {
    const place = made % organizations.length
    const organization = organizations[place]
    if (organization === undefined) throw new Error('there is no organization')
    const pair = organization.firstFree + Math.floor(made / organizations.length)
    made++
    return { place, payout: payoutOf(organization, pair, null, shape, random) }
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
      // A failure is found when all are waited for: until then it must not pass for one that nobody hears.
      acknowledged.catch(() => undefined)
      requests.push(acknowledged)
      for (const { place, payout } of [first, ...more]) onSent({ id: payout.id, organization: place, at, acknowledged })
      sent += due
    }
    const lasted = performance.now() - began
    await Promise.all(requests)
    return (1000 * (total - 1)) / lasted
  }
}
