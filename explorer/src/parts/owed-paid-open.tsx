/** What is owed, paid and open in one currency, in large type. */
import { addAmounts, withEqualDecimals } from '../amounts.ts'
import { texts } from '../texts.ts'
import { Amount } from './amount.tsx'

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
  const sums = withEqualDecimals([
    addAmounts(totals.map(({ owed_amount }) => owed_amount)),
    addAmounts(totals.map(({ paid_amount }) => paid_amount)),
    addAmounts(totals.map(({ open_amount }) => open_amount)),
  ])
  return (
    <dl class="sums">
      {[owed, paid, open].map((head, at) => (
        <div key={head}>
          <dt>{head}</dt>
          <dd>
            <Amount amount={sums[at] ?? ''} /> <span class="quiet">{currency}</span>
          </dd>
        </div>
      ))}
    </dl>
  )
}
