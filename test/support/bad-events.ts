/** Refused events by code, each with one error. Sent for an organization of its own with `rep_1` and `period_1`. */
import type { ParkCode } from '../../schemas/errors.ts'
import { refusedAlone } from './bad-alone.ts'
import { type Make, neighbourOf, payout, rep } from './bad-event.ts'
import {
  keyCreated,
  keyRevoked,
  line,
  newKeyText,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  withData,
} from './events.ts'

export const refused: Readonly<Record<Exclude<ParkCode, 'chain_too_long'>, Readonly<Record<string, Make>>>> = {
  ...refusedAlone,
  id_reused: {
    'a payout with another amount': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, net_amount: '100.01' }),
    }),
    'the same amount in other characters': org => ({
      before: [payout(org)],
      bad: withData(payout(org), { earned_amount: '100.0' }),
    }),
    'a payout recorded that was calculated': org => ({ before: [payout(org)], bad: payoutRecorded({ org_id: org }) }),
    'a payout of another rep': org => ({
      before: [payout(org), rep(org)],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_2' }),
    }),
    'a payout of a rep that nobody knows': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_9' }),
    }),
    'lines in another order': org => {
      const lines = [line({ amount: '40' }), line({ id: 'line_2', amount: '60' })]
      return {
        before: [payoutCalculated({ org_id: org, net_amount: '100', line_items: lines })],
        bad: payoutCalculated({ org_id: org, net_amount: '100', line_items: lines.toReversed() }),
      }
    },
    'a payout that was superseded': org => ({
      before: [payout(org), payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })],
      bad: payoutCalculated({ org_id: org, supersedes_id: 'payout_2' }),
    }),
    'a payroll record with another label': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, destination: { type: 'bank_account', label: 'CANARY' } }),
    }),
    'a void with the id of the payment it reverses': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_1' }),
    }),
    'a key with another name': org => {
      const created = keyCreated({ org_id: org })
      return { before: [created], bad: withData(created, { name: 'CANARY' }) }
    },
    'a secret that another organization has': org => {
      const text = newKeyText()
      return { before: [keyCreated({ org_id: neighbourOf(org), text })], bad: keyCreated({ org_id: org, text }) }
    },
    'a secret that was revoked': org => {
      const text = newKeyText()
      return {
        before: [keyCreated({ org_id: org, text }), keyRevoked({ org_id: org })],
        bad: keyCreated({ org_id: org, id: 'key_2', text }),
      }
    },
  },

  period_changed: {
    'another kind': org => periodRecorded({ org_id: org, kind: 'quarter' }),
    'another time zone': org => periodRecorded({ org_id: org, timezone: 'Europe/Paris' }),
    'another beginning': org => periodRecorded({ org_id: org, starts_at: '2026-01-02T00:00:00+01:00' }),
    'another end': org => periodRecorded({ org_id: org, ends_at: '2026-03-01T00:00:00+01:00' }),
    'the same instant in other characters': org => periodRecorded({ org_id: org, starts_at: '2025-12-31T23:00:00Z' }),
    'another name as well': org => periodRecorded({ org_id: org, name: 'CANARY', kind: 'year' }),
  },

  rep_unknown: {
    'a calculated payout': org => payoutCalculated({ org_id: org, rep_id: 'rep_9' }),
    'a recorded payout': org => payoutRecorded({ org_id: org, rep_id: 'rep_9' }),
    'a payroll record': org => payrollRecorded({ org_id: org, rep_id: 'rep_9' }),
    'a rep that was parked': org => ({
      before: [withData(rep(org), { status: 'retired' })],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_2', supersedes_id: 'payout_9' }),
    }),
    'a rep in another case': org => payoutCalculated({ org_id: org, rep_id: 'rep_A', period_id: 'period_9' }),
    'a rep whose name looks alike': org => payoutCalculated({ org_id: org, rep_id: 'rep_l' }),
    'a rep of another organization': org => {
      const other = neighbourOf(org)
      return {
        before: [repRecorded({ org_id: other, id: 'rep_3' })],
        bad: payoutCalculated({ org_id: org, rep_id: 'rep_3' }),
      }
    },
  },

  period_unknown: {
    'a calculated payout': org => payoutCalculated({ org_id: org, period_id: 'period_9' }),
    'a recorded payout': org => payoutRecorded({ org_id: org, period_id: 'period_9', supersedes_id: 'payout_9' }),
    'a payroll record': org => payrollRecorded({ org_id: org, period_id: 'period_9', payout_id: 'payout_9' }),
    'a period whose name looks alike': org => payoutCalculated({ org_id: org, period_id: 'period_l' }),
    'a period that was parked': org => ({
      before: [periodRecorded({ org_id: org, id: 'period_2', timezone: 'CANARY' })],
      bad: payrollRecorded({ org_id: org, period_id: 'period_2' }),
    }),
    'a period of another organization': org => ({
      before: [periodRecorded({ org_id: neighbourOf(org), id: 'period_3' })],
      bad: payoutRecorded({ org_id: org, period_id: 'period_3' }),
    }),
  },

  supersedes_mismatch: {
    'null while there is one': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, id: 'payout_2' }),
    }),
    'set while there is none': org => payoutCalculated({ org_id: org, supersedes_id: 'payout_9' }),
    'the payout itself': org => payoutCalculated({ org_id: org, supersedes_id: 'payout_1' }),
    'one that was replaced already: a fork': org => ({
      before: [payout(org), payoutRecorded({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_3', supersedes_id: 'payout_1' }),
    }),
    'the current one of another period': org => ({
      before: [periodRecorded({ org_id: org, id: 'period_2' }), payoutRecorded({ org_id: org, period_id: 'period_2' })],
      bad: payoutRecorded({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    }),
    'two that replace each other: a cycle': org => ({
      before: [payoutCalculated({ org_id: org, supersedes_id: 'payout_2' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    }),
    'a payout that was parked': org => ({
      before: [payoutCalculated({ org_id: org, net_amount: '100', line_items: [] })],
      bad: payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    }),
    'the current one of another organization': org => {
      const other = neighbourOf(org)
      return {
        before: [repRecorded({ org_id: other }), periodRecorded({ org_id: other }), payout(other)],
        bad: payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
      }
    },
    'the current one of another rep': org => ({
      before: [rep(org), payoutCalculated({ org_id: org, rep_id: 'rep_2' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    }),
    'the current one of another rep, while there is another': org => ({
      before: [rep(org), payout(org), payoutCalculated({ org_id: org, id: 'payout_2', rep_id: 'rep_2' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_3', supersedes_id: 'payout_2' }),
    }),
  },

  payout_mismatch: {
    'a payout that nobody knows': org => payrollRecorded({ org_id: org, payout_id: 'payout_9' }),
    'a payout of another rep': org => ({
      before: [rep(org), payout(org)],
      bad: payrollRecorded({ org_id: org, rep_id: 'rep_2', payout_id: 'payout_1' }),
    }),
    'a payout of another period': org => ({
      before: [periodRecorded({ org_id: org, id: 'period_2' }), payout(org)],
      bad: payrollRecorded({ org_id: org, period_id: 'period_2', payout_id: 'payout_1' }),
    }),
    'a payout of another organization': org => {
      const other = neighbourOf(org)
      return {
        before: [repRecorded({ org_id: other }), periodRecorded({ org_id: other }), payout(other)],
        bad: payrollRecorded({ org_id: org, payout_id: 'payout_1' }),
      }
    },
    'a payout that was parked': org => ({
      before: [payoutCalculated({ org_id: org, net_amount: '1', line_items: [] })],
      bad: payrollRecorded({ org_id: org, payout_id: 'payout_1' }),
    }),
    'a pair that is paid already, too': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', payout_id: 'payout_9' }),
    }),
  },

  payroll_already_recorded: {
    'a second payment': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2' }),
    }),
    'a payment for the payout that replaced the paid one': org => ({
      before: [
        payout(org),
        payrollRecorded({ org_id: org, payout_id: 'payout_1' }),
        payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
      ],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', payout_id: 'payout_2' }),
    }),
    'a third payment, where the first was voided': org => ({
      before: [
        payrollRecorded({ org_id: org }),
        payrollVoided({ org_id: org }),
        payrollRecorded({ org_id: org, id: 'payroll_3' }),
      ],
      bad: payrollRecorded({ org_id: org, id: 'payroll_4' }),
    }),
    'a payment back, which is no void': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', amount: '-100.00' }),
    }),
    'the same payment under another id': org => ({
      before: [payout(org), payrollRecorded({ org_id: org, payout_id: 'payout_1' })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', payout_id: 'payout_1' }),
    }),
    'a payment of nothing in another currency': org => ({
      before: [payrollRecorded({ org_id: org, amount: '0' })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', amount: '0', currency: 'USD' }),
    }),
  },

  payroll_reversal_invalid: {
    'a record that nobody knows': org => payrollVoided({ org_id: org }),
    'the void itself': org => payrollVoided({ org_id: org, reverses_id: 'payroll_2' }),
    'a void': org => ({
      before: [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_3', reverses_id: 'payroll_2', amount: '100.00' }),
    }),
    'a void, by an amount of its own sign': org => ({
      before: [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_3', reverses_id: 'payroll_2' }),
    }),
    'a payment of another organization': org => {
      const other = neighbourOf(org)
      return {
        before: [repRecorded({ org_id: other }), periodRecorded({ org_id: other }), payrollRecorded({ org_id: other })],
        bad: payrollVoided({ org_id: org }),
      }
    },
    'a payment that was parked': org => ({
      before: [payrollRecorded({ org_id: org, currency: 'eur' })],
      bad: payrollVoided({ org_id: org }),
    }),
    'one that is voided already': org => ({
      before: [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_3' }),
    }),
    'another currency': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, currency: 'USD' }),
    }),
    'a cent less': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: '-99.99' }),
    }),
    'the same sign': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: '100.00' }),
    }),
    'a difference in the 40th place': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: `-100.${'0'.repeat(39)}1` }),
    }),
  },

  key_unknown: {
    'a key that was never created': org => keyRevoked({ org_id: org, id: 'key_9' }),
    'a key of another organization': org => ({
      before: [keyCreated({ org_id: neighbourOf(org), id: 'key_8' })],
      bad: keyRevoked({ org_id: org, id: 'key_8' }),
    }),
    'a key in another case': org => ({
      before: [keyCreated({ org_id: org, id: 'key_a' })],
      bad: keyRevoked({ org_id: org, id: 'key_A' }),
    }),
    'a key whose creation is among the events': org => ({
      before: [{ ...keyCreated({ org_id: org, id: 'key_2' }), stream: 'events' }],
      bad: keyRevoked({ org_id: org, id: 'key_2' }),
    }),
    'a key whose creation was parked': org => ({
      before: [withData(keyCreated({ org_id: org, id: 'key_2' }), { last4: '' })],
      bad: keyRevoked({ org_id: org, id: 'key_2' }),
    }),
  },
}
