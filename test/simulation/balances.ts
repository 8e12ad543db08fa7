/** Balances of totals among the stored documents: each must be what the model has after its change. */
import type { BalanceDocument } from '../../schemas/stored/documents.ts'
import type { Item } from '../support/model.ts'
import { balanceRowsOf } from '../support/totals.ts'
import { textOf } from './history.ts'
import type { Stored } from './stored.ts'

export const isBalance = ({ fields }: Pick<Stored, 'fields'>): boolean => 'sequence' in fields

type Records = { readonly payouts: readonly Item[]; readonly payroll_files: readonly Item[] }

/**
 * Returns what is wrong with a stored balance; undefined if it is right.
 * @param viewOf the current payouts and the payroll records of an organization at a position
 * @param changesOf the number of its changes before a position
 */
export const wrongBalance = (
  { id, version, fields }: Stored,
  viewOf: (org: string, position: number) => Records,
  changesOf: (org: string, position: number) => number,
): string | undefined => {
  const { org_id: org, seq, sequence, body } = fields as BalanceDocument
  const { payouts, payroll_files } = viewOf(org, seq + 1)
  if (changesOf(org, seq + 1) !== sequence || changesOf(org, seq) !== sequence - 1 || version !== seq) {
    return `the balance ${id} of version ${version} is not after change ${sequence}`
  }
  const [got, wanted] = [textOf(body.rows), textOf(balanceRowsOf(payouts, payroll_files))]
  return got === wanted ? undefined : `the balance ${id} at ${seq} has ${got}, and not ${wanted}`
}
