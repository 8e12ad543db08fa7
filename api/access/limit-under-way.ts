/**
 * In: an authenticated request that was counted. Out: the same, if its key and its organization have few enough
 * requests under way.
 * Promises: a request is under way until its answer is delivered or its connection closed, whatever the client does;
 *   nothing gives its permit back earlier, and nothing keeps it longer. So a client cannot ask for more than it takes.
 * Can go wrong: too many are under way → `rate_limited`, at once. That request is counted as every one is.
 */

import type { Shares } from '../capacity/shares.ts'
import { Refusal } from '../failures.ts'
import { onceDelivered } from '../http/once-delivered.ts'
import type { Step } from '../http/request.ts'

/** @param limited told of every request that was one too many */
export const limitUnderWay = (
  { underWayOfKey, underWayOfOrganization }: Pick<Shares, 'underWayOfKey' | 'underWayOfOrganization'>,
  limited: () => void,
): Step => {
  return async (ctx, next) => {
    const { key } = ctx.state
    if (!key) throw new Error('limitUnderWay needs an authenticated request')
    const ofKey = underWayOfKey.tryAcquire(`${key.org}:${key.id}`)
    const ofOrganization = ofKey && underWayOfOrganization.tryAcquire(key.org)
    if (!ofOrganization) {
      ofKey?.()
      limited()
      throw new Refusal('rate_limited', { because: ofKey ? 'under_way_of_organization' : 'under_way_of_key' })
    }
    onceDelivered(ctx.req, ctx.res, () => {
      ofKey()
      ofOrganization()
    })
    await next()
  }
}
