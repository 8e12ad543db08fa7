/** Amounts owed, paid and open, by period and currency: a picture and a table that say the same. */
import { useMemo, useState } from 'preact/hooks'
import type { Total } from '../../../client/src/index.ts'
import { groupDigits, withEqualDecimals } from '../amounts.ts'
import { ChangeTable } from '../parts/change-table.tsx'
import { CorrectionTable } from '../parts/correction-table.tsx'
import { Link, PeriodName, useNames } from '../parts/identity.tsx'
import { OwedPaidOpen } from '../parts/owed-paid-open.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { Table } from '../parts/table.tsx'
import { Bars } from '../pictures/bars.tsx'
import { refusesMoment } from '../refusals.ts'
import { CHANGES_LOOKED_AT, createCorrections } from '../state/corrections.ts'
import { useOneByOne, useUnchanged } from '../state/drawing.ts'
import { latestPeriodFirst } from '../state/instants.ts'
import { type Names, nameOfPeriod } from '../state/names.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

/** Periods that are shown at first: a year of months. */
const PERIODS_SHOWN = 12
/** Changes of the overview; the view of changes has more. */
const CHANGES_SHOWN = 5

type Row = { readonly period: string; readonly owed: string; readonly paid: string; readonly open: string }

export const OverviewView = () => {
  const reading = useReading('totals', client => client.totals())
  const { latest } = useReader()
  const names = useNames()
  const value = useUnchanged(reading.value)
  // The page is drawn again for each change. A section is the same object, and not drawn, until totals or names differ.
  const sections = useMemo(() => {
    const byCurrency = Map.groupBy(value?.totals ?? [], ({ currency }) => currency)
    return [...byCurrency].map(([currency, totals]) => (
      <CurrencySection key={currency} currency={currency} totals={totals} names={names} />
    ))
  }, [value, names])
  const drawn = useOneByOne(sections.length)
  const isDrawn = reading.value !== undefined && drawn === sections.length
  return (
    <>
      <h1 tabIndex={-1}>{texts.views.overview}</h1>
      <ReadingState reading={reading} what="totals" />
      {reading.value?.totals.length === 0 && <p>{texts.overview.nothing}</p>}
      {sections.slice(0, drawn)}
      {/* Read at once, and shown below what is above: the totals would move it. A refused moment is said once. */}
      <div hidden={!isDrawn && (reading.error === undefined || refusesMoment(reading.error))}>
        <Corrected />
      </div>
      {latest.length > 0 && (
        <section>
          <h2>{texts.overview.latest}</h2>
          <ChangeTable changes={latest.slice(0, CHANGES_SHOWN)} caption={texts.overview.latest} />
        </section>
      )}
    </>
  )
}

const rowsOf = (totals: readonly Total[]): Row[] => {
  const amounts = withEqualDecimals(
    totals.flatMap(({ owed_amount, paid_amount, open_amount }) => [owed_amount, paid_amount, open_amount]),
  )
  return totals.map(({ period_id }, at) => {
    const [owed = '', paid = '', open = ''] = amounts.slice(3 * at)
    return { period: period_id, owed, paid, open }
  })
}

type SectionProps = { readonly currency: string; readonly totals: readonly Total[]; readonly names: Names }

const CurrencySection = ({ currency, totals, names }: SectionProps) => {
  const [isWhole, setIsWhole] = useState(false)
  const { words, overview } = texts
  const ordered = latestPeriodFirst(totals, names.periods)
  const all = rowsOf(ordered ?? totals)
  const shown = isWhole ? all : all.slice(0, PERIODS_SHOWN)
  const heads = [words.owed, words.paid, words.open]
  const titleOf = ({ period, owed, paid, open }: Row): string =>
    `${nameOfPeriod(names, period)}: ${[owed, paid, open].map((amount, at) => `${heads[at]} ${groupDigits(amount)}`).join(', ')}`
  return (
    <section data-currency={currency}>
      <h2>{overview.totalOf(currency)}</h2>
      <OwedPaidOpen currency={currency} totals={totals} />
      <figure>
        <Bars
          caption={overview.picture(currency)}
          bars={shown.toReversed().map(row => ({
            key: row.period,
            label: [nameOfPeriod(names, row.period)],
            title: titleOf(row),
            amount: row.owed,
            within: row.paid,
          }))}
        />
        <figcaption>
          <span class="swatch outer" /> {words.owed} <span class="swatch inner" /> {words.paid}
          <br />
          {overview.pictureOf(shown.length, all.length, ordered !== undefined)}. {overview.explained}
        </figcaption>
      </figure>
      <Table
        caption={overview.picture(currency)}
        rows={shown}
        keyOf={row => row.period}
        columns={[
          {
            head: words.period,
            isPlain: true,
            cell: ({ period }) => (
              <Link to={{ view: 'payouts', period }}>
                <PeriodName id={period} />
              </Link>
            ),
          },
          { head: words.owed, amount: row => row.owed },
          { head: words.paid, amount: row => row.paid },
          { head: words.open, amount: row => row.open },
        ]}
      />
      {all.length > PERIODS_SHOWN && (
        <button type="button" onClick={() => setIsWhole(!isWhole)}>
          {isWhole ? overview.fewPeriods(PERIODS_SHOWN, ordered !== undefined) : overview.allPeriods(all.length)}
        </button>
      )}
    </section>
  )
}

/** The latest payouts that replaced another one: both amounts, and how they differ. */
const Corrected = () => {
  const { client, latest, round } = useReader()
  const { overview } = texts
  // Another moment and another generation have others.
  const read = useMemo(() => createCorrections(), [client, round])
  const reading = useReading('corrections', noting => read(noting, latest))
  const { found = [], isPartial = false } = reading.value ?? {}
  return (
    <section>
      <h2>{overview.corrections}</h2>
      <ReadingState reading={reading} what="corrections" />
      {reading.value !== undefined && found.length === 0 && (
        <p>{isPartial ? overview.noneFound(CHANGES_LOOKED_AT) : overview.noCorrections}</p>
      )}
      {found.length > 0 && (
        <>
          <p class="quiet">{isPartial ? overview.someFound(CHANGES_LOOKED_AT) : overview.correctionsHint}</p>
          <CorrectionTable found={found} />
        </>
      )}
      {reading.value !== undefined && (
        <p>
          <Link to={{ view: 'corrections' }}>{overview.allCorrections}</Link>
        </p>
      )}
    </section>
  )
}
