/** The model of the API's comparison of a payout with its replacement: differences of amounts, and lines by id. */
import type { Static } from 'typebox'
import { differenceOf } from '../../schemas/money.ts'
import type { Difference, Payout } from '../../schemas/resources.ts'

type Compared = Pick<Static<typeof Payout>, 'net_amount' | 'earned_amount' | 'currency' | 'line_items'>
type Line = Compared['line_items'][number]

export const differenceBetween = (before: Compared, after: Compared): Static<typeof Difference> => {
  const isOneCurrency = before.currency === after.currency
  const linesBefore = new Map(before.line_items.map(line => [line.id, line]))
  const idsAfter = new Set(after.line_items.map(({ id }) => id))
  const added: Line[] = []
  const changed: { before: Line; after: Line }[] = []
  for (const line of after.line_items) {
    const same = linesBefore.get(line.id)
    if (same === undefined) added.push(line)
    else if (!isEqual(same, line)) changed.push({ before: same, after: line })
  }
  return {
    net_amount: isOneCurrency ? differenceOf(before.net_amount, after.net_amount) : null,
    earned_amount: isOneCurrency ? differenceOf(before.earned_amount, after.earned_amount) : null,
    line_items_added: added,
    line_items_removed: before.line_items.filter(({ id }) => !idsAfter.has(id)),
    line_items_changed: changed,
  }
}

/** Compares texts: 10.0 and 10.00 differ. */
const isEqual = (a: Line, b: Line): boolean =>
  a.category === b.category && a.description === b.description && a.amount === b.amount && a.deal_id === b.deal_id
