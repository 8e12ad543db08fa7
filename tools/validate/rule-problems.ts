/**
 * Finds documents that no rules may make. In: the documents after a decision, as stored. Out: sentences. The projector
 * checks amounts before the rules see an event, so only rules can break these sums.
 */
import { Exact } from '../../schemas/money.ts'
import type { ChainBody } from '../../schemas/stored/documents.ts'
import type { Fields } from '../documents/as-of.ts'
import { isAmount } from '../documents/sums.ts'

/** A document as it is stored: `key` is its kind and id, as `payouts/org_1:payout_1`. */
export type StoredDocument = { readonly key: string; readonly kind: string; readonly source: Fields }
/** All documents after the decision, by key. */
type Documents = ReadonlyMap<string, StoredDocument>

const isSum = (amounts: readonly string[], sum: string): boolean =>
  amounts.reduce((total, amount) => total.plus(amount), new Exact(0)).eq(sum)

/** @param organization of the event @param changed documents that the decision wrote */
export const problemsOf = (organization: string, changed: readonly StoredDocument[], all: Documents): string[] =>
  changed.flatMap(document => {
    const { key, kind, source } = document
    const problems: string[] = []
    if (kind !== 'parked' && (source.org_id !== organization || !key.startsWith(`${kind}/${organization}:`))) {
      problems.push('a document of another organization')
    }
    if (kind === 'payouts') problems.push(...payoutProblems(document))
    if (kind === 'statements') problems.push(...statementProblems(document, all))
    if (kind === 'payroll_files') problems.push(...payrollProblems(document, organization, all))
    if (kind === 'chains') problems.push(...chainProblems(document, organization, all))
    return problems
  })

const bodyOf = ({ source }: StoredDocument): Readonly<Record<string, unknown>> => source.body ?? {}
const itemsIn = (list: unknown): readonly Fields[] => (Array.isArray(list) ? list : [])

const payoutProblems = (document: StoredDocument): string[] => {
  const { net_amount, earned_amount, line_items, currency } = bodyOf(document)
  const lines = itemsIn(line_items).map(({ amount }) => amount)
  if (!Array.isArray(line_items)) return ['a payout without a list of line items']
  if (!isAmount(net_amount) || !isAmount(earned_amount) || !lines.every(isAmount)) {
    return ['a payout with an amount that is no decimal text']
  }
  const { amount, currency: stored } = document.source
  return [
    ...(isSum(lines, net_amount) ? [] : ['a payout whose line items do not add up to its net amount']),
    ...(amount === net_amount && stored === currency
      ? []
      : ['a payout whose amount for totals is not its net amount and currency']),
  ]
}

const statementProblems = (document: StoredDocument, all: Documents): string[] => {
  const { calculation_trace } = bodyOf(document)
  if (!itemsIn(calculation_trace).every(({ output_amount }) => isAmount(output_amount))) {
    return ['a step of a calculation with an amount that is no decimal text']
  }
  return all.has(document.key.replace('statements/', 'payouts/')) ? [] : ['a statement without its payout']
}

const payrollProblems = (document: StoredDocument, organization: string, all: Documents): string[] => {
  const { amount, currency, reverses_id } = bodyOf(document)
  if (!isAmount(amount)) return ['a payroll record with an amount that is no decimal text']
  const { amount: stored, currency: storedCurrency } = document.source
  const problems =
    stored === amount && storedCurrency === currency
      ? []
      : ['a payroll record whose amount for totals is not its amount and currency']
  if (typeof reverses_id !== 'string') return problems
  const reversed = all.get(`payroll_files/${organization}:${reverses_id}`)
  const before = reversed && bodyOf(reversed)
  const isReversed = isAmount(before?.amount) && isSum([before.amount, amount], '0') && before.currency === currency
  return isReversed ? problems : [...problems, 'a void that is not the opposite of the record that it reverses']
}

/** Each record of a chain exists, and the last payout alone is current. */
const chainProblems = (document: StoredDocument, organization: string, all: Documents): string[] => {
  const { payouts = [], payroll = [] } = bodyOf(document) as Partial<ChainBody>
  if (payroll.some(({ id }) => !all.has(`payroll_files/${organization}:${id}`))) {
    return ['a payroll record that a chain names, and that does not exist']
  }
  const successors = payouts.map(({ id }) => all.get(`payouts/${organization}:${id}`)?.source.superseded_by_id)
  const expected = payouts.map((_, index) => payouts[index + 1]?.id ?? null)
  return successors.every((successor, index) => successor === expected[index])
    ? []
    : ['a rep and period without exactly one current payout']
}
