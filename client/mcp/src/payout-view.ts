/** How an agent sees a payout: its amounts and the number of its lines. The lines are read in parts. */
import type { Payout, PayoutStep } from '../../src/index.ts'
import { firstOf } from './bounded.ts'
import { arraySchema, contractObject, contractSchema, countSchema, type JsonSchema } from './contract.ts'

type Line = Payout['line_items'][number]

export type PayoutSummary = Omit<Payout, 'line_items'> & {
  readonly line_count: number
  readonly lines_of_deal?: readonly Line[]
  readonly lines_of_deal_count?: number
}

/** Characters of the lines of one deal in a payout of a list, and of each list of lines in a step of a history. */
const LINES_CHARACTERS_MAX = 4_000

/** @param dealId shows the lines of this deal */
export const viewPayout = ({ line_items, ...payout }: Payout, dealId?: string): PayoutSummary => {
  const view = { ...payout, line_count: line_items.length }
  if (dealId === undefined) return view
  const ofDeal = line_items.filter(({ deal_id }) => deal_id === dealId)
  return { ...view, lines_of_deal: firstOf(ofDeal, LINES_CHARACTERS_MAX), lines_of_deal_count: ofDeal.length }
}

const lineSchema = contractSchema('LineItem')
const viewFields = {
  line_count: countSchema('The number of its lines. `get_payout` has them.'),
  lines_of_deal: arraySchema(
    lineSchema,
    'Only with `deal_id`: the first lines of this deal. Other lines have other deals.',
  ),
  lines_of_deal_count: countSchema('Only with `deal_id`: the number of lines of this deal.'),
}

const ofView = { without: ['line_items'], optional: ['lines_of_deal', 'lines_of_deal_count'] }

export const payoutViewSchema: JsonSchema = contractObject('Payout', viewFields, ofView)

/** A payout of a change, as it was then: nothing had replaced it, but that does not make it a current one. */
export const viewPayoutThen = (payout: Payout): Omit<PayoutSummary, 'superseded_by_id'> => {
  const { superseded_by_id: _, ...view } = viewPayout(payout)
  return view
}

export const payoutThenSchema: JsonSchema = contractObject('Payout', viewFields, {
  ...ofView,
  without: [...ofView.without, 'superseded_by_id'],
})

/** A payout of a history: the amounts that changed, and the first lines that did. */
export const viewStep = ({ difference, ...payout }: PayoutStep) => {
  if (difference === null) return { ...viewPayout(payout), difference }
  const { line_items_added, line_items_removed, line_items_changed, ...amounts } = difference
  const changed = {
    line_items_added: firstOf(line_items_added, LINES_CHARACTERS_MAX),
    line_items_removed: firstOf(line_items_removed, LINES_CHARACTERS_MAX),
    line_items_changed: firstOf(line_items_changed, LINES_CHARACTERS_MAX),
  }
  const all = line_items_added.length + line_items_removed.length + line_items_changed.length
  const shown = Object.values(changed).reduce((sum, { length }) => sum + length, 0)
  return { ...viewPayout(payout), difference: { ...amounts, ...changed, line_items_left_out: all - shown } }
}

const differenceSchema = contractObject('Difference', {
  line_items_left_out: countSchema('Changed lines that had no room. `get_payout` of both payouts has all lines.'),
})

export const stepViewSchema: JsonSchema = contractObject(
  'Payout',
  {
    ...viewFields,
    difference: {
      anyOf: [differenceSchema, { type: 'null' }],
      description: 'The differences from the payout before; null on the first.',
    },
  },
  ofView,
)
