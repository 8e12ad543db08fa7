/**
 * The changes between a balance and a later position. In: the offset of the last change in the balance, or none; the
 * position. Out: up to three searches whose amounts lead from the balance to the totals at the position. Without a
 * balance they find everything that totals add.
 */
import { listKinds } from '../../../schemas/stored/documents.ts'
import type { GenerationLayout, SearchTarget } from '../../../schemas/stored/layout.ts'
import type { SumName } from './sums.ts'

export type DifferencePart = {
  readonly what: SumName
  readonly sign: 1 | -1
  readonly where: SearchTarget
  readonly filters: readonly object[]
}

/** @param after the offset of the last change that is counted already @param before the position: a first offset */
export const partsSince = (
  { searchOf }: Pick<GenerationLayout, 'searchOf'>,
  org: string,
  after: number | undefined,
  before: number,
): DifferencePart[] => {
  const since = after === undefined ? { lt: before } : { gt: after, lt: before }
  const [payouts, payroll] = [searchOf(['payouts'], org), searchOf(['payroll_files'], org)]
  const part = (what: SumName, sign: 1 | -1, where: SearchTarget, ...ranges: object[]): DifferencePart => ({
    what,
    sign,
    where,
    filters: [...where.filters, ...ranges.map(range => ({ range }))],
  })
  return [
    part('owed', 1, payouts, { seq: since }, { until_seq: { gte: before } }),
    // Payouts of the balance that were replaced since. One that came and was replaced since is in neither.
    ...(after === undefined ? [] : [part('owed', -1, payouts, { seq: { lte: after } }, { until_seq: since })]),
    part('paid', 1, payroll, { seq: since }),
  ]
}

/** Finds the last balance before a position. @param more further conditions */
export const lastBalance = (
  { indexOf }: Pick<GenerationLayout, 'indexOf'>,
  org: string,
  before: number,
  more: readonly object[] = [],
) => {
  const filter = [{ term: { org_id: org } }, { range: { seq: { lt: before } } }, ...more]
  const body = { size: 1, sort: [{ seq: 'desc' }], query: { bool: { filter } } }
  return { where: { index: indexOf('balances'), routing: undefined }, body }
}

/** Finds the last balance of fewer changes, before a position. Only in layouts that have sequences. */
export const lastBalanceBelow = (
  layout: Pick<GenerationLayout, 'indexOf'>,
  org: string,
  sequence: number,
  before: number,
) => lastBalance(layout, org, before, [{ range: { sequence: { lt: sequence } } }])

/** Finds the change that comes `changes` changes after an offset, if it is before the position. */
export const changeAfter = (
  { searchOf }: Pick<GenerationLayout, 'searchOf'>,
  org: string,
  after: number | undefined,
  changes: number,
  before: number,
) => {
  const where = searchOf(listKinds, org)
  const range = { seq: { ...(after !== undefined && { gt: after }), lt: before } }
  const query = { bool: { filter: [...where.filters, { range }] } }
  return { where, body: { size: 1, from: changes - 1, _source: ['ordinal', 'seq'], sort: [{ seq: 'asc' }], query } }
}
