/**
 * The versions of the rules for API keys in one projection. In: the document of the projection. Out: which version
 * decides a record.
 * Promises: the same version decides a record every time, in every process. The offset from which on version 2 decides
 * is stored once, while no projector runs. Programs that know version 1 only do not start after that.
 */

import { KEY_RULES_VERSION } from '../../ledger/index.ts'
import type { GenerationBody } from '../../log/index.ts'

/** Whether this program can decide the keys of the projection. It has the rules of both versions. */
export const knowsKeyRules = ({ rules_version }: Pick<GenerationBody, 'rules_version'>): boolean =>
  rules_version === KEY_RULES_VERSION || rules_version === 1

/** Returns the offset before which version 1 decides: infinite until `projection upgrade-keys` stored one. */
export const firstKeyRulesUntil = (identity: Pick<GenerationBody, 'rules_version' | 'first_rules_until'>): number =>
  identity.rules_version === 1 ? Number.POSITIVE_INFINITY : (identity.first_rules_until ?? 0)
