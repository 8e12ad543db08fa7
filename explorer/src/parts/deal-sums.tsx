/** The lines of a deal in current payouts, added up by the API: by currency, and by kind where there are several. */
import type { Totals } from '../../../client/src/index.ts'
import { addAmounts } from '../amounts.ts'
import { texts } from '../texts.ts'
import { SumList } from './sum-list.tsx'

type LineTotal = NonNullable<Totals['line_totals']>[number]

export const SumsOfLines = ({ lines }: { readonly lines: readonly LineTotal[] }) => (
  <>
    {[...Map.groupBy(lines, ({ currency }) => currency)].map(([currency, ofCurrency]) => {
      const all = { head: texts.payouts.allLines, amount: sumOf(ofCurrency) }
      const kinds = [...Map.groupBy(ofCurrency, ({ category }) => category)].map(([kind, rows]) => ({
        head: texts.payout.category[kind],
        amount: sumOf(rows),
      }))
      return <SumList key={currency} currency={currency} sums={kinds.length > 1 ? [all, ...kinds] : [all]} />
    })}
  </>
)

/** The API has a row for each period: they add up to the sum over all of them. */
const sumOf = (lines: readonly LineTotal[]): string => addAmounts(lines.map(({ amount }) => amount))
