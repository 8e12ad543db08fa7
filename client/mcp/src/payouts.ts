/** Tools that find payouts, read one with its lines, and read how the payout of a rep and period changed. */
import { answerPart, answerPartSchema, LIMIT_DEFAULT, LIMIT_MAX, pageSchema, readPage } from './bounded.ts'
import { contractSchema, objectSchema } from './contract.ts'
import { payoutViewSchema, stepViewSchema, viewPayout, viewStep } from './payout-view.ts'
import {
  ArgumentsError,
  type AsOfArgument,
  asOfInput,
  clientAt,
  defineTool,
  type FilterArguments,
  filterInput,
  filterOptions,
  type IdsArguments,
  idsAlone,
  idsInput,
  type PageArguments,
  type PayoutFilterArguments,
  pageInput,
  pageOptions,
  payoutFilterInput,
} from './tool.ts'

export const listPayouts = defineTool<PageArguments & PayoutFilterArguments & IdsArguments & AsOfArgument>({
  name: 'list_payouts',
  title: 'Find payouts',
  description:
    'Payouts of a rep, of a period, of a deal, or by their ids. A payout is the amount owed to a rep for a period; there is one current payout for each. Replaced payouts are found by `ids` and in `payout_history`. For sums use `get_totals`.',
  input: { ...payoutFilterInput, ...idsInput('payout'), ...asOfInput, ...pageInput },
  output: pageSchema(payoutViewSchema),
  run: async (client, given) => {
    const options = idsAlone(given) ?? { ...pageOptions(given), ...filterOptions(given) }
    return {
      structured: await readPage(clientAt(client, given).payouts(options), payout => viewPayout(payout, given.deal_id)),
    }
  },
})

export const payoutIdInput = {
  id: { type: 'string', pattern: '^payout_[0-9A-Za-z]{1,64}$', description: 'The id of a payout.' },
}

/** Where the lines of a payout begin, and how many. */
export const linesInput = {
  lines_from: { type: 'integer', minimum: 1, description: 'The number of the first line; 1 by default.' },
  limit: {
    type: 'integer',
    minimum: 1,
    maximum: LIMIT_MAX,
    description: `Lines, and steps, of one answer; ${LIMIT_DEFAULT} by default.`,
  },
}
export const linesSchema = answerPartSchema(contractSchema('LineItem'), 'lines', 'lines_from')

export const getPayout = defineTool<{ id: string; lines_from?: number; limit?: number } & AsOfArgument>({
  name: 'get_payout',
  title: 'Read a payout',
  description:
    'One payout with its lines: what was earned, recovered and adjusted. Its lines add up to `net_amount` exactly. Also replaced payouts: `superseded_by_id` names the next one.',
  input: { ...payoutIdInput, ...linesInput, ...asOfInput },
  required: ['id'],
  record: 'id',
  output: objectSchema({ payout: payoutViewSchema, lines: linesSchema }),
  run: async (client, given) => {
    const payout = await clientAt(client, given).payout(given.id)
    const lines = answerPart(payout.line_items, given.lines_from ?? 1, given.limit ?? LIMIT_DEFAULT)
    return { structured: { payout: viewPayout(payout), lines } }
  },
})

type HistoryArguments = PageArguments & AsOfArgument & FilterArguments & { payout_id?: string }

export const payoutHistory = defineTool<HistoryArguments>({
  name: 'payout_history',
  title: 'Read the history of a payout',
  description:
    'All payouts of one rep and period, oldest first, each with what changed from the one before. Name any payout of them, or the rep and the period.',
  input: {
    payout_id: {
      ...payoutIdInput.id,
      description: 'Any payout of the rep and period, in place of `rep_id` and `period_id`.',
    },
    ...filterInput,
    ...asOfInput,
    ...pageInput,
  },
  output: pageSchema(stepViewSchema),
  record: 'payout_id',
  run: async (client, given) => {
    const then = clientAt(client, given)
    const { payout_id, rep_id, period_id } = given
    const isWhole = payout_id === undefined ? rep_id !== undefined && period_id !== undefined : !(rep_id ?? period_id)
    if (!isWhole) throw new ArgumentsError('expected either `payout_id`, or both `rep_id` and `period_id`')
    const [payout] =
      payout_id === undefined
        ? (await readPage(then.payouts({ limit: 1, ...filterOptions(given) }), ({ id }) => ({ id }))).data
        : [{ id: payout_id }]
    if (payout === undefined)
      throw new ArgumentsError('there is no payout of this rep and period that this key can read')
    return { structured: await readPage(then.history(payout.id, pageOptions(given)), viewStep) }
  },
})
