/** The rules of every event type, and the version of them all. */
import type { EventType } from '../../schemas/events.ts'
import type { ValidEvent } from '../event/validate.ts'
import { keyCreatedRules, keyRevokedRules } from './api-keys.ts'
import type { Rules } from './decision.ts'
import { payoutRules } from './payouts.ts'
import { paymentRules, voidRules } from './payroll.ts'
import { periodRules, repRules } from './versioned.ts'

/** Raised with every change that decides any commission event otherwise or writes any document of it otherwise. */
export const RULES_VERSION = 2
/** The same of API keys. They have no generations: with another version they are projected again under a new prefix. */
export const KEY_RULES_VERSION = 1

/** The rules of one event type. They are given that type's own data and names and no others: hence the one widening. */
export type AnyRules = Rules<ValidEvent['data']>
const anyRules = <Data, Needed>(rules: Rules<Data, Needed>): AnyRules => rules as unknown as AnyRules

/** A whole version of the rules: those of every event type there is. */
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
