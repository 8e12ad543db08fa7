/** The tool that reads amounts owed, paid and open. The API adds them exactly, so that no agent has to. */
import type { Totals } from '../../src/index.ts'
import { firstOf, LIMIT_DEFAULT } from './bounded.ts'
import { arraySchema, contractObject, contractSchema } from './contract.ts'
import {
  ArgumentsError,
  type AsOfArgument,
  asOfInput,
  clientAt,
  defineTool,
  filterOptions,
  type PageArguments,
  type PayoutFilterArguments,
  pageInput,
  payoutFilterInput,
  unknownDeal,
} from './tool.ts'

/** The identity of a row. The rows of a deal have a category, too. */
type Row = { readonly period_id: string; readonly currency: string; readonly category?: string }
const cursorOf = ({ period_id, currency, category }: Row): string =>
  [period_id, currency, ...(category === undefined ? [] : [category])].join(':')

export const getTotals = defineTool<PageArguments & PayoutFilterArguments & AsOfArgument>({
  name: 'get_totals',
  title: 'Read totals',
  description:
    'Amounts owed, paid and open, by period and currency: of all reps and periods, of one rep, or of one period, now or as of a moment. With `deal_id` only `line_totals`: the lines of this deal by category; no payment is for a deal. An unknown id gives no rows, not an error: check it before you say that nothing is owed. The sums are exact. Never add amounts of different currencies. To read on with `starting_after`, send `last_change_id` as `as_of`, so that all rows show one moment.',
  input: {
    ...payoutFilterInput,
    deal_id: {
      ...payoutFilterInput.deal_id,
      description: `Adds up the lines of this deal in current payouts. ${unknownDeal}`,
    },
    ...asOfInput,
    ...pageInput,
  },
  output: contractObject('Totals', {
    totals: arraySchema(
      contractSchema('Total'),
      'The rows of this page, by period and currency. Empty with `deal_id`.',
    ),
    has_more: { type: 'boolean', description: 'Whether more rows follow.' },
    next_cursor: { type: ['string', 'null'], description: 'Send it as `starting_after` to read on. Null at the end.' },
  }),
  run: async (client, given) => {
    const { totals, line_totals, ...then }: Totals = await clientAt(client, given).totals(filterOptions(given))
    if (line_totals === undefined) {
      const { rows, ...more } = pageOfRows(totals, given)
      return { structured: { ...then, totals: rows, ...more } }
    }
    const { rows, ...more } = pageOfRows(line_totals, given)
    return { structured: { ...then, totals, line_totals: rows, ...more } }
  },
})

/** @throws ArgumentsError if no row has the cursor */
const pageOfRows = <Of extends Row>(all: readonly Of[], { limit = LIMIT_DEFAULT, starting_after }: PageArguments) => {
  const before = starting_after === undefined ? -1 : all.findIndex(row => cursorOf(row) === starting_after)
  if (starting_after !== undefined && before === -1)
    throw new ArgumentsError('`starting_after` is no row of these totals: begin without it')
  const rows = firstOf(all.slice(before + 1, before + 1 + limit))
  const last = rows.at(-1)
  const hasMore = before + 1 + rows.length < all.length
  return { rows, has_more: hasMore, next_cursor: hasMore && last !== undefined ? cursorOf(last) : null }
}
