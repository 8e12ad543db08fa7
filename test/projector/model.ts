/** The rules as simple lists, without documents, offsets or caches. Tests compare the projector's decisions with it. */
import type { CommissionEvent } from '../../schemas/events.ts'

type Payout = { readonly id: string; readonly pair: string; readonly text: string }
type Payroll = {
  readonly id: string
  readonly pair: string
  readonly text: string
  readonly reverses: string | null
  readonly cents: bigint
  readonly currency: string
}

class Organization {
  readonly reps = new Map<string, string>()
  readonly periods = new Map<string, { readonly text: string; readonly boundaries: string }>()
  readonly payouts: Payout[] = []
  readonly payroll: Payroll[] = []
}

/** Amounts in this model have two digits after the point. */
const toCents = (amount: string): bigint => BigInt(amount.replace('.', ''))

export class Model {
  readonly #organizations = new Map<string, Organization>()

  organization(id: string): Organization {
    const organization = this.#organizations.get(id) ?? new Organization()
    this.#organizations.set(id, organization)
    return organization
  }

  currentPayout(org: string, rep: string, period: string): string | null {
    return this.organization(org).payouts.findLast(({ pair }) => pair === `${rep} ${period}`)?.id ?? null
  }

  unvoidedPayment(org: string, rep: string, period: string): Payroll | undefined {
    const { payroll } = this.organization(org)
    return payroll.find(
      ({ id, pair, reverses }) =>
        pair === `${rep} ${period}` && reverses === null && !payroll.some(record => record.reverses === id),
    )
  }

  decide({ type, data }: CommissionEvent): string {
    const org = this.organization(data.org_id)
    const text = `${type} ${JSON.stringify(data)}`
    const unknown = (pair: { rep_id: string; period_id: string }): string | undefined => {
      if (!org.reps.has(pair.rep_id)) return 'rep_unknown'
      return org.periods.has(pair.period_id) ? undefined : 'period_unknown'
    }
    switch (type) {
      case 'commission.rep.recorded.v1': {
        if (org.reps.get(data.id) === text) return 'duplicate'
        org.reps.set(data.id, text)
        return 'applied'
      }
      case 'commission.period.recorded.v1': {
        const before = org.periods.get(data.id)
        const boundaries = [data.kind, data.timezone, data.starts_at, data.ends_at].join()
        if (before?.text === text) return 'duplicate'
        if (before !== undefined && before.boundaries !== boundaries) return 'period_changed'
        org.periods.set(data.id, { text, boundaries })
        return 'applied'
      }
      case 'commission.payout.calculated.v1':
      case 'commission.payout.recorded.v1': {
        const existing = org.payouts.find(({ id }) => id === data.id)
        if (existing) return existing.text === text ? 'duplicate' : 'id_reused'
        const refusal = unknown(data)
        if (refusal) return refusal
        if (data.supersedes_id !== this.currentPayout(data.org_id, data.rep_id, data.period_id))
          return 'supersedes_mismatch'
        org.payouts.push({ id: data.id, pair: `${data.rep_id} ${data.period_id}`, text })
        return 'applied'
      }
      case 'commission.payroll.recorded.v1': {
        const existing = org.payroll.find(({ id }) => id === data.id)
        if (existing) return existing.text === text ? 'duplicate' : 'id_reused'
        const refusal = unknown(data)
        if (refusal) return refusal
        const pair = `${data.rep_id} ${data.period_id}`
        const named = org.payouts.some(payout => payout.id === data.payout_id && payout.pair === pair)
        if (data.payout_id !== null && !named) return 'payout_mismatch'
        if (this.unvoidedPayment(data.org_id, data.rep_id, data.period_id)) return 'payroll_already_recorded'
        const { id, amount, currency } = data
        org.payroll.push({ id, pair, text, reverses: null, cents: toCents(amount), currency })
        return 'applied'
      }
      case 'commission.payroll.voided.v1': {
        const existing = org.payroll.find(({ id }) => id === data.id)
        if (existing) return existing.text === text ? 'duplicate' : 'id_reused'
        const reversed = org.payroll.find(({ id }) => id === data.reverses_id)
        const valid =
          reversed?.reverses === null &&
          !org.payroll.some(({ reverses }) => reverses === data.reverses_id) &&
          reversed.currency === data.currency &&
          reversed.cents + toCents(data.amount) === 0n
        if (!reversed || !valid) return 'payroll_reversal_invalid'
        const { id, reverses_id: reverses, amount, currency } = data
        org.payroll.push({ id, pair: reversed.pair, text, reverses, cents: toCents(amount), currency })
        return 'applied'
      }
    }
  }
}
