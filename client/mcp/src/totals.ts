/** The tool that reads amounts owed, paid and open. The API adds them exactly, so that no agent has to. */
import type { Total } from '../../src/index.ts'
import { firstOf, LIMIT_DEFAULT } from './bounded.ts'
import { arraySchema, contractFields, contractSchema, objectSchema } from './contract.ts'
import {
  ArgumentsError,
  type AsOfArgument,
  asOfInput,
  clientAt,
  defineTool,
  type FilterArguments,
  filterInput,
  filterOptions,
  type PageArguments,
  pageInput,
} from './tool.ts'

const { totals: _, ...moment } = contractFields('Totals')

const cursorOf = ({ period_id, currency }: Total): string => `${period_id}:${currency}`

export const getTotals = defineTool<PageArguments & FilterArguments & AsOfArgument>({
  name: 'get_totals',
  title: 'Read totals',
  description:
    'What is owed, paid and open, by period and currency: of all reps and periods, of one rep, or of one period, now or as of a moment. The sums are exact. Never add amounts of different currencies. To read on with `starting_after`, send `last_change_id` as `as_of`, so that all rows show one moment.',
  input: { ...filterInput, ...asOfInput, ...pageInput },
  output: objectSchema({
    ...moment,
    totals: arraySchema(contractSchema('Total'), 'The rows of this page, by period and currency.'),
    has_more: { type: 'boolean', description: 'Whether more rows follow.' },
    next_cursor: { type: ['string', 'null'], description: 'Send it as `starting_after` to read on. Null at the end.' },
  }),
  run: async (client, given) => {
    const { limit = LIMIT_DEFAULT, starting_after } = given
    const { totals, ...then } = await clientAt(client, given).totals(filterOptions(given))
    const before = starting_after === undefined ? -1 : totals.findIndex(row => cursorOf(row) === starting_after)
    if (starting_after !== undefined && before === -1)
      throw new ArgumentsError('`starting_after` is no row of these totals: begin without it')
    const rows = firstOf(totals.slice(before + 1, before + 1 + limit))
    const last = rows.at(-1)
    const hasMore = before + 1 + rows.length < totals.length
    const next_cursor = hasMore && last !== undefined ? cursorOf(last) : null
    return { structured: { ...then, totals: rows, has_more: hasMore, next_cursor } }
  },
})
