/** The current payouts, of a rep, of a period, of a deal or all, page by page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DealFilter, Payout } from '../../../client/src/index.ts'
import { addAmounts, isZero, subtractAmount, withEqualDecimals } from '../amounts.ts'
import { SumsOfLines } from '../parts/deal-sums.tsx'
import { IdText, Link, PayrollLink, PeriodName, RepName, useNames } from '../parts/identity.tsx'
import { OwedPaidOpen } from '../parts/owed-paid-open.tsx'
import { ReadingState, wordsFor } from '../parts/refused.tsx'
import { Table, type TableColumn } from '../parts/table.tsx'
import { fragmentOf, isOfField } from '../state/address.ts'
import { latestPeriodFirst } from '../state/instants.ts'
import { nameOfPeriod, nameOfRep } from '../state/names.ts'
import { PAGE_RECORDS, type PagesBeside, usePages } from '../state/pages.ts'
import { currentOf, PAYOUTS_MAX, PAYROLL_MAX, type PaidOf, type PaidWithoutPayout, readPaid } from '../state/paid.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

/** Payouts of one page where open ones are looked for, and of a rep: the most that the API gives. */
const PAGE_LOOKED_THROUGH = 200

export const PayoutsView = () => {
  const { address } = useReader()
  const { rep, period, deal } = address
  const isOpenOnly = address.open === 'only'
  const filter = {
    ...(rep !== undefined && { repId: rep }),
    ...(period !== undefined && { periodId: period }),
    ...(deal !== undefined && { dealId: deal }),
  }
  // The payouts of a rep come at once, in the order of their periods. To find open ones, more are looked through.
  const limit = rep === undefined && !isOpenOnly ? PAGE_RECORDS : PAGE_LOOKED_THROUGH
  const pages = usePages(
    JSON.stringify(['payouts', rep, period, deal, limit]),
    client => client.payouts({ limit, ...filter }),
    // Payouts of a deal are a part of those of their reps and periods.
    (client, items, hasMore) => readPaid(client, items, filter, !hasMore && deal === undefined),
  )
  const { payouts } = texts
  const names = useNames()
  const title = payouts.titleOf(rep && nameOfRep(names, rep), period && nameOfPeriod(names, period), deal)
  return (
    <>
      <h1 tabIndex={-1}>{title}</h1>
      <Filters />
      {(rep !== undefined || deal !== undefined) && <Sums filter={filter} />}
      <ReadingState reading={pages} what="payouts" />
      {pages.value !== undefined && (
        <Found pages={pages.value} isOpenOnly={isOpenOnly} deal={deal} again={pages.again} />
      )}
      {pages.value?.hasMore && (
        <button type="button" onClick={pages.more} disabled={pages.isReading}>
          {texts.more}
        </button>
      )}
    </>
  )
}

/** The totals of a rep, or the sums of the lines of a deal: nothing is paid for a deal. */
const Sums = ({ filter }: { readonly filter: DealFilter }) => {
  const { repId, periodId, dealId } = filter
  const names = useNames()
  const { payouts } = texts
  const reading = useReading(JSON.stringify(['sums', repId, periodId, dealId]), client => client.totals(filter))
  const { totals = [], line_totals = [] } = reading.value ?? {}
  const ofRep = periodId === undefined ? payouts.totalsOfRep : payouts.totalsOfRepIn(nameOfPeriod(names, periodId))
  const isEmpty = reading.value !== undefined && totals.length === 0 && line_totals.length === 0
  return (
    <section>
      <h2>{dealId === undefined ? ofRep : payouts.sumsOfDeal}</h2>
      <ReadingState reading={reading} what="totals" />
      {isEmpty && <p>{dealId === undefined ? payouts.nothingOf : payouts.noLines}</p>}
      {[...Map.groupBy(totals, ({ currency }) => currency)].map(([currency, all]) => (
        <OwedPaidOpen key={currency} currency={currency} totals={all} />
      ))}
      <SumsOfLines lines={line_totals} />
      {line_totals.length > 0 && <p class="quiet">{payouts.dealHint}</p>}
    </section>
  )
}

type FoundProps = {
  readonly pages: PagesBeside<Payout, PaidOf>
  readonly isOpenOnly: boolean
  readonly deal: string | undefined
  readonly again: () => void
}

const Found = ({ pages, isOpenOnly, deal, again }: FoundProps) => {
  const { address } = useReader()
  const names = useNames()
  const { words, payouts } = texts
  const { items, hasMore, beside } = pages
  const current = currentOf(items)
  const openOf = (payout: Payout): string =>
    beside.state === 'known' ? subtractAmount(payout.net_amount, beside.paid(payout)) : '0'
  const withoutPayout = beside.state === 'known' ? beside.withoutPayout : []
  const hasOthers = withoutPayout !== undefined && withoutPayout.length > 0
  const isFiltered = isOpenOnly && beside.state === 'known'
  const wanted = isFiltered ? current.filter(payout => !isZero(openOf(payout))) : current
  const ordered = hasMore ? undefined : latestPeriodFirst(wanted, names.periods)
  const rows = ordered ?? wanted
  const parts = deal === undefined ? [] : withEqualDecimals(rows.map(payout => partOf(payout, deal)))
  const isOfSome = address.rep !== undefined || address.period !== undefined || deal !== undefined
  const noRows = isOfSome ? payouts.noneOf : payouts.none
  const ofDeal =
    deal === undefined ? [] : [{ head: words.ofDeal, amount: (_: Payout, at: number) => parts[at] ?? null }]
  const repAndPeriod = useRepAndPeriod()
  const { open: _, ...others } = address
  const toggle = (isOnly: boolean): void => {
    location.hash = fragmentOf({ ...others, ...(isOnly && { open: 'only' }) })
  }
  return (
    <>
      {beside.state === 'known' && (
        <label class="only">
          <input type="checkbox" checked={isOpenOnly} onChange={event => toggle(event.currentTarget.checked)} />{' '}
          {payouts.openOnly}
        </label>
      )}
      {beside.state === 'too many' && <p class="notice">{payouts.tooManyPaid(PAYOUTS_MAX, PAYROLL_MAX)}</p>}
      {isOpenOnly && beside.state !== 'known' && <p class="notice">{payouts.openOnlyOff}</p>}
      {'why' in beside && (
        <p class="notice">
          {wordsFor(beside.why, 'payroll records')}{' '}
          {beside.state === 'failed' && (
            <button type="button" onClick={again}>
              {texts.tryAgain}
            </button>
          )}
        </p>
      )}
      {rows.length === 0 && !hasOthers && <p>{isFiltered && current.length > 0 ? payouts.noneOpen : noRows}</p>}
      {rows.length > 0 && (
        <Table
          caption={payouts.title}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            ...repAndPeriod,
            { head: words.owed, amount: payout => payout.net_amount },
            ...ofDeal,
            ...(beside.state === 'known' ? paidAndOpen(rows, beside.paid, openOf) : []),
            { head: words.currency, isPlain: true, cell: payout => payout.currency },
            {
              head: words.payout,
              isPlain: true,
              cell: ({ id, supersedes_id }) => (
                <>
                  <Link to={{ view: 'payout', id }}>{payouts.explain}</Link>
                  {address.rep !== undefined && (
                    <>
                      {' '}
                      <Link to={{ view: 'compare', id }}>{payouts.compare}</Link>
                    </>
                  )}
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
      {current.length > 0 && (
        <p class="quiet" aria-live="polite">
          {isFiltered ? payouts.openShown(rows.length, current.length, hasMore) : payouts.shown(rows.length, hasMore)}{' '}
          {ordered === undefined ? payouts.publishedOrder : payouts.periodOrder}
        </p>
      )}
      {withoutPayout === undefined && !hasMore && deal === undefined && (
        <p class="notice">{payouts.withoutPayoutUnknown(PAYROLL_MAX)}</p>
      )}
      {hasOthers && <WithoutPayout rows={withoutPayout} />}
    </>
  )
}

/** The title of the page has the rep and the period that are chosen: these have no column. */
const useRepAndPeriod = (): TableColumn<Pick<Payout, 'rep_id' | 'period_id'>>[] => {
  const { rep, period } = useReader().address
  const { words } = texts
  return [
    ...(rep === undefined ? [{ head: words.rep, isPlain: true, cell: repOf }] : []),
    ...(period === undefined ? [{ head: words.period, isPlain: true, cell: periodOf }] : []),
  ]
}
const repOf = ({ rep_id }: Pick<Payout, 'rep_id'>) => <RepName id={rep_id} />
const periodOf = ({ period_id }: Pick<Payout, 'period_id'>) => <PeriodName id={period_id} />

const WithoutPayout = ({ rows }: { readonly rows: readonly PaidWithoutPayout[] }) => {
  const repAndPeriod = useRepAndPeriod()
  const { words, payouts, changes } = texts
  const even = withEqualDecimals(rows.map(({ paid }) => paid))
  return (
    <section>
      <Table
        caption={payouts.withoutPayout}
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          ...repAndPeriod,
          { head: words.paid, amount: (_, at) => even[at] ?? null },
          { head: words.currency, isPlain: true, cell: ({ currency }) => currency },
          { head: changes.kind.payroll_files, isPlain: true, cell: ({ id }) => <PayrollLink id={id} /> },
        ]}
      />
      <p class="quiet">{payouts.withoutPayoutHint}</p>
    </section>
  )
}

/** A rep has one current payout for a period: what was paid and is open for the period is that of the payout. */
const paidAndOpen = (
  rows: readonly Payout[],
  paidOf: (payout: Payout) => string,
  openOf: (payout: Payout) => string,
): TableColumn<Payout>[] => {
  const even = withEqualDecimals(rows.flatMap(payout => [paidOf(payout), openOf(payout), payout.net_amount]))
  return [
    { head: texts.words.paid, amount: (_, at) => even[3 * at] ?? null },
    { head: texts.words.open, amount: (_, at) => even[3 * at + 1] ?? null },
  ]
}

/** The sum of the lines of a deal in one payout: the API has it for all payouts together only. */
const partOf = ({ line_items }: Payout, deal: string): string =>
  addAmounts(line_items.filter(({ deal_id }) => deal_id === deal).map(({ amount }) => amount))

const Filters = () => {
  const { address } = useReader()
  const names = useNames()
  const dealInput = useRef<HTMLInputElement>(null)
  const [isWrong, setIsWrong] = useState(false)
  // Set here: a value would be set again while somebody types, because a change came.
  useEffect(() => {
    setIsWrong(false)
    if (dealInput.current !== null) dealInput.current.value = address.deal ?? ''
  }, [address.deal])
  const go = (field: 'rep' | 'period' | 'deal', value: string): void => {
    const { [field]: _, ...others } = address
    location.hash = fragmentOf(value === '' ? others : { ...others, [field]: value })
  }
  const goToDeal = (text: string): void => {
    const isDeal = text === '' || isOfField.deal(text)
    setIsWrong(!isDeal)
    if (isDeal) go('deal', text)
  }
  const reps = [...names.reps.keys()].map(id => [id, nameOfRep(names, id)] as const)
  const periods = [...names.periods.keys()].map(id => [id, nameOfPeriod(names, id)] as const)
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
          {...(isWrong && { 'aria-invalid': true, 'aria-describedby': 'deal-wrong' })}
          autocomplete="off"
          spellcheck={false}
          onChange={event => goToDeal(event.currentTarget.value.trim())}
        />
        {isWrong && (
          <p class="notice" id="deal-wrong" role="alert">
            {payouts.wrongDeal}
          </p>
        )}
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
