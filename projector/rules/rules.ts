/** The rules of every event type, and the version of them all. */
import type { ValidEvent } from '../validate.ts'
import { keyCreatedRules, keyRevokedRules } from './api-keys.ts'
import type { Rules } from './decision.ts'
import { payoutRules } from './payouts.ts'
import { paymentRules, voidRules } from './payroll.ts'
import { periodRules, repRules } from './versioned.ts'

/** Raised with every change that decides any commission event otherwise or writes any document of it otherwise. */
export const RULES_VERSION = 2
/** The same of API keys. They have no generations: with another version they are projected again under a new prefix. */
export const KEY_RULES_VERSION = 1

type AnyRules = Rules<ValidEvent['data']>
const anyRules = <Data, Needed>(rules: Rules<Data, Needed>): AnyRules => rules as unknown as AnyRules

/** The rules of an event. They are given that event's own data and names and no others: hence the one widening. */
export const rulesOf = (event: ValidEvent): AnyRules => {
  switch (event.type) {
    case 'commission.rep.recorded.v1':
      return anyRules(repRules)
    case 'commission.period.recorded.v1':
      return anyRules(periodRules)
    case 'commission.payout.calculated.v1':
    case 'commission.payout.recorded.v1':
      return anyRules(payoutRules)
    case 'commission.payroll.recorded.v1':
      return anyRules(paymentRules)
    case 'commission.payroll.voided.v1':
      return anyRules(voidRules)
    case 'commission.api_key.created.v1':
      return anyRules(keyCreatedRules)
    case 'commission.api_key.revoked.v1':
      return anyRules(keyRevokedRules)
    default:
      return event satisfies never
  }
}
