/** An organization for the explorer: a replaced payout, an amount that no double has, a person who was forgotten. */
import { keyPermissions } from '../../schemas/values.ts'
import {
  keyCreated,
  line,
  newKeyText,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  periodRecorded,
  repRecorded,
  step,
} from './events.ts'
import { seal } from './seal.ts'

export const org_id = 'org_seen'
export const other = 'org_other'

export const keys = { whole: newKeyText(), payoutsOnly: newKeyText(), other: newKeyText() }
/** One key for each permission. */
export const narrowKeys = keyPermissions
  .filter(permission => permission !== 'read')
  .map((permission, at) => ({ permission, id: `key_narrow${at}`, text: newKeyText() }))
/** More digits than a double has. */
export const LARGE = '99999999999999999999999999.01'
const january = [
  line({ id: 'line_1', description: 'Deal 17', amount: '1300000.0000', deal_id: 'deal_17' }),
  line({ id: 'line_2', description: 'Advance', category: 'recovered', amount: '-65432.5' }),
]
export const recalculated = [line({ id: 'line_1', description: 'Deal 17', amount: '1300010.2500', deal_id: 'deal_17' })]
export const trace = [
  step({ step: 1, name: 'Commission', inputs: { rate: '0.1', base: '13000000' }, output_amount: '1300000.00004' }),
  step({ step: 2, name: 'Rounding', strategy: 'half-even', strategy_version: '3', output_amount: '1300000' }),
]
export const records = [
  ...narrowKeys.map(({ permission, ...key }) => keyCreated({ org_id, ...key, permissions: [permission] })),
  keyCreated({ org_id, id: 'key_1', text: keys.whole }),
  keyCreated({ org_id, id: 'key_2', text: keys.payoutsOnly, permissions: ['payouts:read'] }),
  keyCreated({ org_id: other, id: 'key_3', text: keys.other }),
  repRecorded({ org_id, id: 'rep_1', name: 'Canary Ada' }),
  repRecorded({ org_id, id: 'rep_2', name: seal('Bo', { org: org_id, record: 'rep_2', field: 'name', keyId: 'k2' }) }),
  periodRecorded({ org_id, id: 'period_1', name: 'January 2026' }),
  periodRecorded({
    ...{ org_id, id: 'period_2', name: 'February 2026' },
    ...{ starts_at: '2026-02-01T00:00:00+01:00', ends_at: '2026-03-01T00:00:00+01:00' },
  }),
  payoutCalculated({ org_id, net_amount: '1234567.5000', line_items: january, calculation_trace: trace }),
  payrollRecorded({ org_id, amount: '1000000' }),
  payoutCalculated({
    ...{ org_id, id: 'payout_2', supersedes_id: 'payout_1', net_amount: '1300010.25' },
    ...{ line_items: recalculated, calculation_trace: trace },
  }),
  payoutRecorded({ org_id, id: 'payout_3', rep_id: 'rep_2', period_id: 'period_2', net_amount: LARGE }),
  repRecorded({ org_id: other, id: 'rep_9', name: 'Canary Zoe' }),
  periodRecorded({ org_id: other }),
  payoutCalculated({ org_id: other, id: 'payout_9', rep_id: 'rep_9', net_amount: '9.99' }),
]
