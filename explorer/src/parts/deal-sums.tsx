/** The lines of a deal in current payouts, added up by the API: by currency, and by kind where there are several. */
import type { Totals } from '../../../client/src/index.ts'
import { addAmounts, withEqualDecimals } from '../amounts.ts'
import { texts } from '../texts.ts'
import { Amount } from './amount.tsx'

type LineTotal = NonNullable<Totals['line_totals']>[number]

export const SumsOfLines = ({ lines }: { readonly lines: readonly LineTotal[] }) => (
  <>
    {[...Map.groupBy(lines, ({ currency }) => currency)].map(([currency, ofCurrency]) => {
      const kinds = [...Map.groupBy(ofCurrency, ({ category }) => category)]
      const sums = withEqualDecimals([ofCurrency, ...kinds.map(([, rows]) => rows)].map(sumOf))
      const heads = [texts.payouts.allLines, ...kinds.map(([kind]) => texts.payout.category[kind])]
      return (
        <dl key={currency} class="sums">
          {(kinds.length > 1 ? heads : heads.slice(0, 1)).map((head, at) => (
            <div key={head}>
              <dt>{head}</dt>
              <dd>
                <Amount amount={sums[at] ?? ''} /> <span class="quiet">{currency}</span>
              </dd>
            </div>
          ))}
        </dl>
      )
    })}
  </>
)

/** The API has a row for each period: they add up to the sum over all of them. */
const sumOf = (lines: readonly LineTotal[]): string => addAmounts(lines.map(({ amount }) => amount))
