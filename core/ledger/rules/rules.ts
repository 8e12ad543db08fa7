/** The rules of every event type, and their version. */
import type { EventType } from '../../../schemas/events.ts'
import type { ValidEvent } from '../event/validate.ts'
import { firstKeyCreatedRules, keyCreatedRules, keyRevokedRules } from './api-keys.ts'
import { payoutRules } from './payouts.ts'
import { paymentRules, voidRules } from './payroll.ts'
import type { Rules } from './state.ts'
import { periodRules, repRules } from './versioned.ts'

/** Must be raised with every change to a decision on a commission event, or to a document that is written for it. */
export const RULES_VERSION = 4
/**
 * The same for API keys, which have no generations. `commission projection upgrade-keys` stores an offset: from it on
 * the new version decides. The version before decides the records before it, so this program has both.
 */
export const KEY_RULES_VERSION = 2

/** The rules of any event type. The cast is safe: rules receive only data and references of their own type. */
export type AnyRules = Rules<ValidEvent['data']>
const anyRules = <Data, Needed>(rules: Rules<Data, Needed>): AnyRules => rules as unknown as AnyRules

export type RulesTable = Readonly<Record<EventType, AnyRules>>

export const builtInRules: RulesTable = {
  'commission.rep.recorded.v1': anyRules(repRules),
  'commission.period.recorded.v1': anyRules(periodRules),
  'commission.payout.calculated.v1': anyRules(payoutRules),
  'commission.payout.recorded.v1': anyRules(payoutRules),
  'commission.payroll.recorded.v1': anyRules(paymentRules),
  'commission.payroll.voided.v1': anyRules(voidRules),
  'commission.api_key.created.v1': anyRules(keyCreatedRules),
  'commission.api_key.revoked.v1': anyRules(keyRevokedRules),
}

/** Rules for records of API keys that version 1 decides. */
export const firstKeyRules: RulesTable = {
  ...builtInRules,
  'commission.api_key.created.v1': anyRules(firstKeyCreatedRules),
}
