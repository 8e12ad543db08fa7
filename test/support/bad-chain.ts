/** The longest allowed chain, and records that exceed it. The only code that needs 20,000 records. */
import {
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
} from './events.ts'

/** A void cannot exceed the maximum: a chain of 10,000 ends with a void, and no payment is left to void. */
export const tooLongChain = (org: string): { readonly before: Outgoing[]; readonly bad: Outgoing[] } => ({
  before: [
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
    ...upTo(LONGEST).flatMap(place => [payoutAt(org, place), payrollAt(org, place)]),
    // `supersedes_mismatch` is checked before `chain_too_long`.
    payoutCalculated({ org_id: org, id: 'payout_x', supersedes_id: 'payout_1' }),
  ],
  bad: [
    payoutCalculated({ org_id: org, id: 'payout_a', supersedes_id: `payout_${LONGEST}` }),
    payoutRecorded({ org_id: org, id: 'payout_b', supersedes_id: `payout_${LONGEST}` }),
    payrollRecorded({ org_id: org, id: 'payroll_a' }),
    payrollRecorded({ org_id: org, id: 'payroll_b', payout_id: `payout_${LONGEST}`, amount: '0.01' }),
    payoutCalculated({ org_id: org, id: 'payout_c', supersedes_id: `payout_${LONGEST}`, currency: 'USD' }),
  ],
})

const LONGEST = 10_000
const upTo = (last: number): number[] => Array.from({ length: last }, (_, place) => place + 1)

const payoutAt = (org: string, place: number): Outgoing =>
  payoutRecorded({
    org_id: org,
    id: `payout_${place}`,
    supersedes_id: place === 1 ? null : `payout_${place - 1}`,
    net_amount: '0',
    line_items: [],
  })

const payrollAt = (org: string, place: number): Outgoing =>
  place % 2 === 1
    ? payrollRecorded({ org_id: org, id: `payroll_${place}` })
    : payrollVoided({ org_id: org, id: `payroll_${place}`, reverses_id: `payroll_${place - 1}` })
