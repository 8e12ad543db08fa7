/**
 * In: an authenticated and counted request. Out: the same request, if its key and its organization have permits left.
 * Promises: a request holds its permits until its answer is delivered or its connection is closed. Nothing returns them
 *   earlier or keeps them longer. So a client cannot request more than it reads.
 * Can go wrong: too many requests are in flight → `rate_limited` at once. The refused request counts, too.
 */

import type { Shares } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import { onceDelivered } from '../http/once-delivered.ts'
import type { Authenticated } from '../http/request.ts'
import type { Step } from '../http/steps.ts'

/** @param onLimited called for every request over the limit */
export const limitInFlight = (
  { inFlightOfKey, inFlightOfOrganization }: Pick<Shares, 'inFlightOfKey' | 'inFlightOfOrganization'>,
  onLimited: () => void,
): Step<Authenticated> => {
  return async (ctx, next) => {
    const { key } = ctx.state
    const ofKey = inFlightOfKey.tryAcquire(`${key.org}:${key.id}`)
    const ofOrganization = ofKey && inFlightOfOrganization.tryAcquire(key.org)
    if (!ofOrganization) {
      ofKey?.()
      onLimited()
      throw new Refusal('rate_limited', { reason: ofKey ? 'under_way_of_organization' : 'under_way_of_key' })
    }
    onceDelivered(ctx.req, ctx.res, () => {
      ofKey()
      ofOrganization()
    })
    await next()
  }
}
