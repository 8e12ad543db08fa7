/**
 * In: the values that a client filters a list by. Out: the conditions of the search.
 * Promises: these fields of a record never change, so a record that matches always matches, and a cursor stays valid
 *   under any filter.
 * Can go wrong: the generation cannot be searched by deal → `invalid_request`, never an empty list.
 */
import type { GenerationLayout } from '../../../schemas/stored/layout.ts'
import { Refusal } from '../../runtime/index.ts'

/** The values that the records of a list must have. `deal_id`: one line of the payout has it. */
export type ListFilter = { rep_id?: string; period_id?: string; deal_id?: string }

const storedFields = {
  rep_id: 'rep_id',
  period_id: 'period_id',
  deal_id: 'body.line_items.deal_id',
} as const satisfies Record<keyof ListFilter, string>

/** Returns the conditions of a search. */
export const termsOf = (filter: ListFilter): object[] =>
  Object.entries(filter).map(([field, value]) => ({ term: { [storedFields[field as keyof ListFilter]]: value } }))

/** @throws Refusal `invalid_request` if the generation cannot be searched by deal */
export const requireSearchable = (filter: ListFilter, { hasDeals }: Pick<GenerationLayout, 'hasDeals'>): void => {
  if (filter.deal_id === undefined || hasDeals) return
  const message = [
    '`deal_id` cannot be used yet: an older version made the stored payouts, and they cannot be searched by deal.',
    'It can be used after the next rebuild of the projection.',
  ].join(' ')
  throw new Refusal('invalid_request', { message })
}
