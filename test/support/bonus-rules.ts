/** Rules as an analyst writes them: every calculated payout in EUR gets a bonus line of 10.00. */
import { type DataOf, defineRules, type LineItem, lineItemsOf, withLineItems } from '../../tools/rules.ts'

export const BONUS: LineItem = {
  id: 'line_bonus',
  category: 'adjusted',
  description: '=Bonus',
  amount: '10.00',
  deal_id: null,
}

type Calculated = DataOf<'commission.payout.calculated.v1'>

const withBonus = (data: Calculated): Calculated =>
  data.currency === 'EUR' ? withLineItems(data, [...lineItemsOf(data), BONUS]) : data

export default defineRules(rules => {
  const calculated = rules['commission.payout.calculated.v1']
  return {
    ...rules,
    'commission.payout.calculated.v1': {
      ...calculated,
      decide: (event, state) => calculated.decide({ ...event, data: withBonus(event.data) }, state),
    },
  }
})
