/** The rules of every event type, and the version of them all. */
import type { ValidEvent } from '../validate.ts'
import { keyCreatedRules, keyRevokedRules } from './api-keys.ts'
import type { Rules } from './decision.ts'
import { payoutRules } from './payouts.ts'
import { paymentRules, voidRules } from './payroll.ts'
import { periodRules, repRules } from './versioned.ts'

/** Raised with every change that decides any record otherwise or writes any document otherwise. */
export const RULES_VERSION = 1

/** The rules of an event. They are given that event's own data and no other: hence the one widening. */
export const rulesOf = (event: ValidEvent): Rules<ValidEvent['data']> => {
  switch (event.type) {
    case 'commission.rep.recorded.v1':
      return repRules as Rules<ValidEvent['data']>
    case 'commission.period.recorded.v1':
      return periodRules as Rules<ValidEvent['data']>
    case 'commission.payout.calculated.v1':
    case 'commission.payout.recorded.v1':
      return payoutRules as Rules<ValidEvent['data']>
    case 'commission.payroll.recorded.v1':
      return paymentRules as Rules<ValidEvent['data']>
    case 'commission.payroll.voided.v1':
      return voidRules as Rules<ValidEvent['data']>
    case 'commission.api_key.created.v1':
      return keyCreatedRules as Rules<ValidEvent['data']>
    case 'commission.api_key.revoked.v1':
      return keyRevokedRules as Rules<ValidEvent['data']>
    default:
      return event satisfies never
  }
}
