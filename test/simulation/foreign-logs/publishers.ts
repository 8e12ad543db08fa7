/**
 * The records of a run: what the publishers of the organizations send before and after the loss of a topic, and what
 * a stranger publishes into the topic that was made anew.
 */
import {
  keyCreated,
  keyRevoked,
  line,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  sha256,
} from '../../support/events.ts'
import type { Random } from '../../support/random.ts'
import { organizationsIn } from '../../support/streams.ts'
import { PARTITIONS } from './real-log.ts'

/** One organization in each partition. The partition of `quiet` has no records before the loss. */
export type Organizations = { readonly all: readonly string[]; readonly quiet: string }

export const createOrganizations = (random: Random): Organizations => {
  const all = organizationsIn(random, [0, 1, 2], PARTITIONS)
  return { all, quiet: random.pick(all) }
}

/** The amount that a stranger owes to a rep: no log of the organizations has it. */
export const STRANGE_AMOUNT = '999999.00'
export const STRANGE_PAYOUT = 'payout_strange'

export const keyTextOf = (org: string, which: 'used' | 'revoked' | 'stolen'): string =>
  `ck_foreign_${which}_${org}_0000000000`

const payout = (org_id: string, number: number, rep_id = 'rep_1'): Outgoing =>
  payoutCalculated({
    org_id,
    id: `payout_${rep_id.slice(4)}x${number}`,
    rep_id,
    supersedes_id: number === 1 ? null : `payout_${rep_id.slice(4)}x${number - 1}`,
  })

/** In order. Those of the tail may be lost. */
export const recordsBefore = ({ all, quiet }: Organizations) => {
  const kept: Outgoing[] = []
  const tail: Outgoing[] = []
  for (const org_id of all) {
    kept.push(keyCreated({ org_id, id: 'key_1', text: keyTextOf(org_id, 'used') }))
    kept.push(keyCreated({ org_id, id: 'key_2', text: keyTextOf(org_id, 'revoked') }))
    if (org_id === quiet) continue
    // Parked: its rep is not recorded yet.
    kept.push(payout(org_id, 1, 'rep_2'))
    kept.push(repRecorded({ org_id, id: 'rep_1' }), periodRecorded({ org_id }))
    kept.push(payout(org_id, 1), payout(org_id, 2))
    kept.push(payrollRecorded({ org_id, id: 'payroll_1', rep_id: 'rep_1', payout_id: 'payout_1x2' }))
    tail.push(repRecorded({ org_id, id: 'rep_2' }), payout(org_id, 1, 'rep_2'), payout(org_id, 2, 'rep_2'))
    tail.push(payrollVoided({ org_id, id: 'payroll_lost', reverses_id: 'payroll_1' }), payout(org_id, 3))
    tail.push(repRecorded({ org_id, id: 'rep_1', name: 'Grace' }))
  }
  // A partition without records can lose its first ones, too.
  tail.push(repRecorded({ org_id: quiet, id: 'rep_1', name: 'Lost' }), periodRecorded({ org_id: quiet }))
  tail.push(payout(quiet, 1))
  const [first = ''] = all
  kept.push(keyRevoked({ org_id: first, id: 'key_2' }))
  tail.push(keyCreated({ org_id: first, id: 'key_lost', text: `ck_foreign_lost_${first}_0000000000` }))
  return { kept, tail }
}

/** Other records than those of the tail, and more of them: they take their offsets. */
export const recordsAfter = ({ all, quiet }: Organizations): Outgoing[] => {
  const records: Outgoing[] = []
  for (const org_id of all) {
    if (org_id === quiet) {
      records.push(repRecorded({ org_id, id: 'rep_1' }), periodRecorded({ org_id }), payout(org_id, 1))
    }
    records.push(repRecorded({ org_id, id: 'rep_3' }), payout(org_id, 1, 'rep_3'), payout(org_id, 2, 'rep_3'))
    records.push(repRecorded({ org_id, id: 'rep_1', name: 'Hopper' }), payout(org_id, 3, 'rep_3'))
    records.push(payout(org_id, 4, 'rep_3'), repRecorded({ org_id, id: 'rep_4' }), payout(org_id, 1, 'rep_4'))
    records.push(keyCreated({ org_id, id: 'key_3', text: `ck_foreign_third_${org_id}_0000000000` }))
  }
  return records
}

/**
 * Returns the records of a stranger for the topics that were made anew.
 * @param much into each partition more than it had before, not only into the one that was empty
 */
export const strangeRecords = ({ all, quiet }: Organizations, much: boolean): Outgoing[] => {
  const records: Outgoing[] = []
  for (const org_id of much ? [quiet, ...all.filter(org => org !== quiet)] : [quiet]) {
    records.push(repRecorded({ org_id, id: 'rep_1', name: 'Stranger' }), periodRecorded({ org_id }))
    records.push(
      payoutCalculated({
        org_id,
        id: STRANGE_PAYOUT,
        rep_id: 'rep_1',
        net_amount: STRANGE_AMOUNT,
        earned_amount: STRANGE_AMOUNT,
        line_items: [line({ amount: STRANGE_AMOUNT })],
      }),
    )
    for (let number = 0; much && number < MUCH; number++) {
      records.push(repRecorded({ org_id, id: `rep_strange${number}` }))
    }
  }
  // A key that opens the pay of an organization to the stranger. Five records and more, without a revocation.
  for (const [number, org_id] of all.entries()) {
    records.push(keyCreated({ org_id, id: 'key_strange', text: keyTextOf(org_id, 'stolen') }))
    for (let more = 0; much && more < MUCH / 3; more++) {
      records.push(
        keyCreated({ org_id, id: `key_more${number}x${more}`, text: `ck_more_${number}_${more}_00000000000` }),
      )
    }
  }
  return records
}
const MUCH = 15

export const digestOf = sha256
