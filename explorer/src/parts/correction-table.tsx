/** Payouts that replaced another one: both amounts, how they differ, and what the differences add up to. */
import { addAmounts, subtractAmount, withEqualDecimals } from '../amounts.ts'
import type { Correction } from '../state/corrections.ts'
import { payoutInstant } from '../state/instants.ts'
import { texts } from '../texts.ts'
import { Link, PeriodName, RepName, ShortInstant } from './identity.tsx'
import { SumList } from './sum-list.tsx'
import { Table } from './table.tsx'

type Props = { readonly found: readonly Correction[] }

/** Amounts of two currencies have no difference. */
const hasDifference = ({ before, after }: Correction): boolean => before.currency === after.currency
const differenceOf = ({ before, after }: Correction): string => subtractAmount(after.net_amount, before.net_amount)

export const CorrectionTable = ({ found }: Props) => {
  const { words, overview, history } = texts
  const differences = withEqualDecimals(
    found.flatMap(row => [hasDifference(row) ? differenceOf(row) : '0', row.after.net_amount]),
  )
  return (
    <Table
      caption={overview.corrections}
      rows={found}
      keyOf={({ id }) => id}
      columns={[
        {
          head: `${texts.payout.calculated} / ${texts.payout.recorded}`,
          isPlain: true,
          cell: ({ after }) => <ShortInstant instant={payoutInstant(after)} />,
        },
        { head: words.rep, isPlain: true, cell: ({ after }) => <RepName id={after.rep_id} /> },
        { head: words.period, isPlain: true, cell: ({ after }) => <PeriodName id={after.period_id} /> },
        { head: history.before, amount: ({ before }) => before.net_amount },
        { head: history.after, amount: ({ after }) => after.net_amount },
        {
          head: history.difference,
          isDifference: true,
          amount: (row, at) => (hasDifference(row) ? (differences[2 * at] ?? null) : null),
        },
        {
          head: words.currency,
          isPlain: true,
          cell: row => (hasDifference(row) ? '' : `${row.before.currency} → `) + row.after.currency,
        },
        {
          head: words.payout,
          isPlain: true,
          cell: ({ id }) => (
            <>
              <Link to={{ view: 'payout', id }}>{texts.payouts.explain}</Link>{' '}
              <Link to={{ view: 'history', id }}>{texts.payouts.history}</Link>
            </>
          ),
        },
      ]}
    />
  )
}

/** By currency: what the corrections added to what is owed. */
export const CorrectionSums = ({ found }: Props) => (
  <div class="sum-row">
    {[...Map.groupBy(found.filter(hasDifference), ({ after }) => after.currency)].map(([currency, rows]) => (
      <SumList
        key={currency}
        currency={currency}
        sums={[{ head: texts.corrections.sum, amount: addAmounts(rows.map(differenceOf)) }]}
        isDifference
      />
    ))}
  </div>
)
