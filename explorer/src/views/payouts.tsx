/** The current payouts, of a rep, of a period, of a deal or all, page by page. */
import { useEffect, useRef } from 'preact/hooks'
import type { Payout, Total } from '../../../client/src/index.ts'
import { addAmounts, groupDigits, withEqualDecimals } from '../amounts.ts'
import { IdText, Link, nameOfPeriod, nameOfRep, PeriodName, RepName, useNames } from '../parts/identity.tsx'
import { OwedPaidOpen } from '../parts/owed-paid-open.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { Table, type TableColumn } from '../parts/table.tsx'
import { fragmentOf } from '../state/address.ts'
import { PAGE_RECORDS, usePages } from '../state/pages.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

export const PayoutsView = () => {
  const { address } = useReader()
  const { rep, period, deal } = address
  const filter = {
    ...(rep !== undefined && { repId: rep }),
    ...(period !== undefined && { periodId: period }),
    ...(deal !== undefined && { dealId: deal }),
  }
  const pages = usePages(JSON.stringify(['payouts', rep, period, deal]), client =>
    client.payouts({ limit: PAGE_RECORDS, ...filter }),
  )
  // The totals of a rep are those of its payouts. A deal is only a part of them.
  const ofRep = deal === undefined ? rep : undefined
  const totals = useReading(JSON.stringify(['totals of a rep', ofRep, period]), async client =>
    ofRep === undefined ? [] : (await client.totals(filter)).totals,
  )
  const { words, payouts } = texts
  const names = useNames()
  const title = payouts.titleOf(rep && nameOfRep(names, rep), period && nameOfPeriod(names, period), deal)
  const rows = currentOf(pages.value?.items ?? [])
  const parts = deal === undefined ? [] : withEqualDecimals(rows.map(payout => partOf(payout, deal)))
  const ofDeal =
    deal === undefined ? [] : [{ head: words.ofDeal, amount: (_: Payout, at: number) => parts[at] ?? null }]
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <Filters />
      {ofRep !== undefined && (
        <section>
          <h2>{period === undefined ? payouts.totalsOfRep : payouts.totalsOfRepIn(nameOfPeriod(names, period))}</h2>
          <ReadingState reading={totals} what="the totals of a rep" />
          {totals.value?.length === 0 && <p>{texts.overview.nothing}</p>}
          {[...Map.groupBy(totals.value ?? [], ({ currency }) => currency)].map(([currency, all]) => (
            <OwedPaidOpen key={currency} currency={currency} totals={all} />
          ))}
        </section>
      )}
      <ReadingState reading={pages} what="payouts" />
      {pages.value !== undefined && rows.length === 0 && <p>{payouts.none}</p>}
      {rows.length > 0 && (
        <Table
          caption={payouts.title}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { head: words.rep, cell: payout => <RepName id={payout.rep_id} /> },
            { head: words.period, cell: payout => <PeriodName id={payout.period_id} /> },
            { head: words.owed, amount: payout => payout.net_amount },
            ...ofDeal,
            ...(ofRep === undefined || totals.value === undefined ? [] : paidAndOpen(rows, totals.value)),
            { head: words.currency, cell: payout => payout.currency },
            {
              head: words.payout,
              cell: ({ id, supersedes_id }) => (
                <>
                  <Link to={{ view: 'payout', id }}>{payouts.explain}</Link>
                  {supersedes_id !== null && (
                    <>
                      {' '}
                      <Link to={{ view: 'history', id }}>{payouts.history}</Link>
                    </>
                  )}{' '}
                  <IdText id={id} />
                </>
              ),
            },
          ]}
        />
      )}
      {pages.value !== undefined && rows.length > 0 && (
        <p class="quiet" aria-live="polite">
          {payouts.shown(rows.length, pages.value.hasMore)}
          {deal !== undefined && !pages.value.hasMore && `. ${payouts.sumOfDeal(sumsOf(rows, deal))}`}
        </p>
      )}
      {pages.value?.hasMore && (
        <button type="button" onClick={pages.more} disabled={pages.isReading}>
          {texts.more}
        </button>
      )}
    </>
  )
}

/** A rep has one current payout for a period: what was paid and is open for the period is that of the payout. */
const paidAndOpen = (rows: readonly Payout[], totals: readonly Total[]): TableColumn<Payout>[] => {
  const found = rows.map(({ period_id, currency }) =>
    totals.find(total => total.period_id === period_id && total.currency === currency),
  )
  const even = withEqualDecimals(
    rows.flatMap(({ net_amount }, at) => [found[at]?.paid_amount ?? '0', found[at]?.open_amount ?? '0', net_amount]),
  )
  const amountOf = (at: number, of: 0 | 1): string | null => (found[at] && even[3 * at + of]) ?? null
  return [
    { head: texts.words.paid, amount: (_, at) => amountOf(at, 0) },
    { head: texts.words.open, amount: (_, at) => amountOf(at, 1) },
  ]
}

/** The sum of the lines of a deal. */
const partOf = ({ line_items }: Payout, deal: string): string =>
  addAmounts(line_items.filter(({ deal_id }) => deal_id === deal).map(({ amount }) => amount))

/** The sums of a deal by currency, in words. */
const sumsOf = (payouts: readonly Payout[], deal: string): string => {
  const byCurrency = Map.groupBy(payouts, ({ currency }) => currency)
  const sums = withEqualDecimals([...byCurrency.values()].map(all => addAmounts(all.map(one => partOf(one, deal)))))
  return [...byCurrency.keys()].map((currency, at) => `${groupDigits(sums[at] ?? '')} ${currency}`).join(', ')
}

/** A payout that is recalculated during the walk moves to the end of the list: the walk may return both. */
const currentOf = (payouts: readonly Payout[]): Payout[] => {
  const replaced = new Set(payouts.map(({ supersedes_id }) => supersedes_id))
  return payouts.filter(({ id }) => !replaced.has(id))
}

const Filters = () => {
  const { address } = useReader()
  const names = useNames()
  const dealInput = useRef<HTMLInputElement>(null)
  // Set here: a value would be set again while somebody types, because a change came.
  useEffect(() => {
    if (dealInput.current !== null) dealInput.current.value = address.deal ?? ''
  }, [address.deal])
  const go = (field: 'rep' | 'period' | 'deal', value: string): void => {
    const { [field]: _, ...others } = address
    location.hash = fragmentOf(value === '' ? others : { ...others, [field]: value })
  }
  const find = (id: string): void => {
    const { asOf } = address
    if (!id.startsWith('payout_')) go('deal', id)
    else location.hash = fragmentOf({ view: 'payout', id, ...(asOf !== undefined && { asOf }) })
  }
  const repsByName = Map.groupBy(names.reps.keys(), id => nameOfRep(names, id))
  const reps = [...repsByName].flatMap(([name, ids]) =>
    ids.map(id => [id, ids.length === 1 ? name : `${name} (${names.reps.get(id)?.email || id})`] as const),
  )
  const periods = [...names.periods.values()].map(({ id, name }) => [id, name || id] as const)
  const { words, payouts } = texts
  return (
    <form class="filters" aria-label={payouts.filter} onSubmit={event => event.preventDefault()}>
      <Choice
        label={words.rep}
        any={payouts.anyRep}
        value={address.rep}
        options={reps}
        onChoice={id => go('rep', id)}
      />
      <Choice
        label={words.period}
        any={payouts.anyPeriod}
        value={address.period}
        options={periods}
        onChoice={id => go('period', id)}
      />
      <div>
        <label for="deal">{words.deal}</label>
        <input
          ref={dealInput}
          id="deal"
          placeholder={payouts.anyDeal}
          autocomplete="off"
          spellcheck={false}
          onChange={event => find(event.currentTarget.value.trim())}
        />
      </div>
    </form>
  )
}

type ChoiceProps = {
  readonly label: string
  readonly any: string
  readonly value: string | undefined
  readonly options: readonly (readonly [id: string, name: string])[]
  readonly onChoice: (id: string) => void
}

const Choice = ({ label, any, value = '', options, onChoice }: ChoiceProps) => {
  // An id of the address stays, also when its name is not known.
  const all = value === '' || options.some(([id]) => id === value) ? options : [[value, value] as const, ...options]
  const id = `choice-${label}`
  return (
    <div>
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={event => onChoice(event.currentTarget.value)}>
        <option value="">{any}</option>
        {all.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    </div>
  )
}
