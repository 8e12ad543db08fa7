/**
 * Rules to try: what would be owed if no payout had been adjusted by hand. Every calculated payout loses its `adjusted`
 * lines, and their amounts.
 */
import { type DataOf, defineRules, lineItemsOf, withLineItems } from '../../tools/rules.ts'

type Calculated = DataOf<'commission.payout.calculated.v1'>

const withoutAdjustments = (data: Calculated): Calculated =>
  withLineItems(
    data,
    lineItemsOf(data).filter(({ category }) => category !== 'adjusted'),
  )

export default defineRules(rules => {
  const calculated = rules['commission.payout.calculated.v1']
  return {
    ...rules,
    'commission.payout.calculated.v1': {
      ...calculated,
      decide: (event, state) => calculated.decide({ ...event, data: withoutAdjustments(event.data) }, state),
    },
  }
})
