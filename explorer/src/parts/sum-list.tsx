/** Sums in one currency, in large type: each with its head, and with as many decimals as the others. */
import { withEqualDecimals } from '../amounts.ts'
import { Amount } from './amount.tsx'

type Props = {
  readonly currency: string
  readonly sums: readonly { readonly head: string; readonly amount: string }[]
  readonly isDifference?: boolean
}

export const SumList = ({ currency, sums, isDifference = false }: Props) => {
  const even = withEqualDecimals(sums.map(({ amount }) => amount))
  return (
    <dl class="sums">
      {sums.map(({ head }, at) => (
        <div key={head}>
          <dt>{head}</dt>
          <dd>
            <Amount amount={even[at] ?? ''} isDifference={isDifference} /> <span class="quiet">{currency}</span>
          </dd>
        </div>
      ))}
    </dl>
  )
}
