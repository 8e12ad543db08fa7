/** Rules as an analyst writes them: every calculated payout in EUR gets a bonus line of 10.00. */
import { total } from '../../commands/documents/sums.ts'
import { JsonText } from '../../projector/event/raw-json.ts'
import type { AnyRules, RulesTable } from '../../projector/rules/rules.ts'
import type { LineItem, PayoutCalculatedData } from '../../schemas/events.ts'

export const BONUS: LineItem = {
  id: 'line_bonus',
  category: 'adjusted',
  description: '=Bonus',
  amount: '10.00',
  deal_id: null,
}

export default (rules: RulesTable): RulesTable => {
  const calculated = rules['commission.payout.calculated.v1']
  return {
    ...rules,
    'commission.payout.calculated.v1': {
      ...calculated,
      decide: (event, state) => calculated.decide({ ...event, data: withBonus(event.data) }, state),
    },
  }
}

type AnyData = Parameters<AnyRules['decide']>[0]['data']
type Data = Omit<PayoutCalculatedData, 'line_items'> & { readonly line_items: JsonText }

const withBonus = (given: AnyData): AnyData => {
  const data = given as unknown as Data
  if (data.currency !== 'EUR') return given
  const lines = [...(JSON.parse(data.line_items.text) as LineItem[]), BONUS]
  const net_amount = total([data.net_amount, BONUS.amount])
  const changed: Data = { ...data, net_amount, line_items: new JsonText(JSON.stringify(lines)) }
  return changed as unknown as AnyData
}
