/**
 * Rules to try: what would be owed if no payout had been adjusted by hand. Every calculated payout loses its `adjusted`
 * lines, and their amounts.
 */
import { total } from '../../commands/documents/sums.ts'
import { JsonText } from '../../projector/event/raw-json.ts'
import type { AnyRules, RulesTable } from '../../projector/rules/rules.ts'
import type { LineItem } from '../../schemas/events.ts'

export default (rules: RulesTable): RulesTable => {
  const calculated = rules['commission.payout.calculated.v1']
  return {
    ...rules,
    'commission.payout.calculated.v1': {
      ...calculated,
      decide: (event, state) => calculated.decide({ ...event, data: withoutAdjustments(event.data) }, state),
    },
  }
}

type AnyData = Parameters<AnyRules['decide']>[0]['data']
/** The lists of a payout come as text, and go as text. */
type Payout = { readonly line_items: JsonText; readonly net_amount: string }

const withoutAdjustments = (data: AnyData): AnyData => {
  const { line_items } = data as unknown as Payout
  const kept = (JSON.parse(line_items.text) as LineItem[]).filter(({ category }) => category !== 'adjusted')
  const changed: Payout = {
    line_items: new JsonText(JSON.stringify(kept)),
    net_amount: total(kept.map(({ amount }) => amount)),
  }
  return { ...data, ...changed } as unknown as AnyData
}
