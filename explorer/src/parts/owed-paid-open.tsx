/** Amounts owed, paid and open in one currency. */
import { addAmounts } from '../amounts.ts'
import { texts } from '../texts.ts'
import { SumList } from './sum-list.tsx'

type Props = {
  readonly currency: string
  readonly totals: readonly {
    readonly owed_amount: string
    readonly paid_amount: string
    readonly open_amount: string
  }[]
}

export const OwedPaidOpen = ({ currency, totals }: Props) => {
  const { owed, paid, open } = texts.words
  const sums = [
    { head: owed, amount: addAmounts(totals.map(({ owed_amount }) => owed_amount)) },
    { head: paid, amount: addAmounts(totals.map(({ paid_amount }) => paid_amount)) },
    { head: open, amount: addAmounts(totals.map(({ open_amount }) => open_amount)) },
  ]
  return <SumList currency={currency} sums={sums} />
}
