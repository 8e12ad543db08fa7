/** One payout, explained: its lines from nothing to what is owed, the steps of its calculation, and what was paid. */
import { useState } from 'preact/hooks'
import type { Client, PayrollRecord, Statement } from '../../../client/src/index.ts'
import { runningSums, subtractAmount, withEqualDecimals } from '../amounts.ts'
import { Amount } from '../parts/amount.tsx'
import {
  DealLink,
  IdText,
  Link,
  PayrollLink,
  PeriodName,
  RepName,
  SealedMark,
  ShortInstant,
  useNames,
} from '../parts/identity.tsx'
import { PayoutState } from '../parts/payout-then.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { Table } from '../parts/table.tsx'
import { WaterfallStep, waterfallOf } from '../pictures/waterfall.tsx'
import { lacksPermission } from '../refusals.ts'
import { nameOfPeriod, nameOfRep } from '../state/names.ts'
import { paidIn } from '../state/paid.ts'
import { useReading, type ViewReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

/** Lines and steps that are shown at first: a payout can have ten thousand. */
const ROWS_SHOWN = 100

type Explained = Omit<Statement, 'calculation_trace' | 'calculation_trace_recorded'>

export const PayoutView = ({ id }: { readonly id: string }) => {
  const names = useNames()
  const payout = useReading(`payout ${id}`, client => readPayout(client, id))
  const statement = useReading(`statement ${id}`, client => client.statement(id))
  const { value } = payout
  const title = value && texts.payout.title(nameOfRep(names, value.rep_id), nameOfPeriod(names, value.period_id))
  return (
    <>
      <h1 tabIndex={-1}>{title ?? texts.views.payout}</h1>
      <PayoutState id={id} reading={payout} view="payout" />
      {value !== undefined && <Found payout={value} statement={statement} />}
    </>
  )
}

type FoundProps = { readonly payout: Explained; readonly statement: ViewReading<Statement> }

const Found = ({ payout, statement }: FoundProps) => {
  const { rep_id, period_id } = payout
  const payroll = useReading(JSON.stringify(['payroll', rep_id, period_id]), client =>
    Array.fromAsync(client.payrollRecords({ repId: rep_id, periodId: period_id })),
  )
  // Read at once, and shown below the steps: they would move it.
  const isTraced = statement.value !== undefined || statement.error !== undefined
  return (
    <>
      <Summary payout={payout} payroll={payroll} />
      <Lines payout={payout} />
      <Trace statement={statement} />
      <div hidden={!isTraced}>
        <Payroll payout={payout} reading={payroll} />
      </div>
    </>
  )
}

/** A statement is the payout and its steps: a key may be allowed to read only one of the two. */
const readPayout = (client: Client, id: string): Promise<Explained> =>
  client.payout(id).catch((why: unknown) => {
    if (!lacksPermission(why)) throw why
    return client.statement(id).catch((other: unknown) => Promise.reject(lacksPermission(other) ? why : other))
  })

type SummaryProps = { readonly payout: Explained; readonly payroll: ViewReading<PayrollRecord[]> }

const Summary = ({ payout, payroll }: SummaryProps) => {
  const words = texts.payout
  const { net_amount, earned_amount, currency, supersedes_id, superseded_by_id, calculated_at, recorded_at } = payout
  const sums = payroll.value && sumsOf(payout, payroll.value)
  const column = [net_amount, earned_amount, ...(sums ? Object.values(sums) : [])]
  // The payroll records of the rep and the period belong to the current payout.
  const isPaidShown = superseded_by_id === null && payroll.error === undefined
  return (
    <>
      {superseded_by_id !== null && (
        <p class="notice">
          {words.isReplaced} <Link to={{ view: 'payout', id: superseded_by_id }}>{superseded_by_id}</Link>.
        </p>
      )}
      <dl class="facts">
        <dt>{superseded_by_id === null ? words.owed : words.owedThen}</dt>
        <dd>
          <strong>
            <Amount amount={net_amount} column={column} />
          </strong>{' '}
          {currency}
        </dd>
        {isPaidShown && <Fact head={texts.words.paid} amount={sums?.paid} column={column} currency={currency} />}
        {isPaidShown && <Fact head={texts.words.open} amount={sums?.open} column={column} currency={currency} />}
        <Fact head={words.earnedAmount} amount={earned_amount} column={column} currency={currency} />
        <dt>{texts.words.rep}</dt>
        <dd>
          <RepName id={payout.rep_id} />
        </dd>
        <dt>{texts.words.period}</dt>
        <dd>
          <Link to={{ view: 'payouts', period: payout.period_id }}>
            <PeriodName id={payout.period_id} />
          </Link>
        </dd>
        {calculated_at !== null && <dt>{words.calculated}</dt>}
        {calculated_at !== null && (
          <dd>
            <ShortInstant instant={calculated_at} />
          </dd>
        )}
        {recorded_at !== null && <dt>{words.recorded}</dt>}
        {recorded_at !== null && (
          <dd>
            <ShortInstant instant={recorded_at} />
          </dd>
        )}
        <dt>{texts.words.payout}</dt>
        <dd>
          <IdText id={payout.id} />
        </dd>
        <dt>{words.compared}</dt>
        <dd class="links">
          <Link to={{ view: 'history', id: payout.id }}>{words.history}</Link>{' '}
          <Link to={{ view: 'compare', id: payout.id }}>{words.periodBefore}</Link>
        </dd>
        {supersedes_id !== null && <dt>{words.replaces}</dt>}
        {supersedes_id !== null && (
          <dd>
            <Link to={{ view: 'payout', id: supersedes_id }}>
              <IdText id={supersedes_id} />
            </Link>
          </dd>
        )}
      </dl>
    </>
  )
}

type FactProps = {
  readonly head: string
  readonly amount: string | undefined
  readonly column: readonly string[]
  readonly currency: string
}

/** An amount of the summary. Its cell is empty until the amount is read, so that the page does not move. */
const Fact = ({ head, amount, column, currency }: FactProps) => (
  <>
    <dt>{head}</dt>
    {amount === undefined ? (
      <dd>{'\u00a0'}</dd>
    ) : (
      <dd>
        <Amount amount={amount} column={column} /> {currency}
      </dd>
    )}
  </>
)

const Lines = ({ payout: { line_items: lines } }: { readonly payout: Explained }) => {
  const [shown, setShown] = useState(ROWS_SHOWN)
  const words = texts.payout
  const sums = runningSums(lines.map(({ amount }) => amount))
  const rows = lines.slice(0, shown)
  const shownSums = sums.slice(0, shown)
  const even = withEqualDecimals(shownSums)
  // Positions of nothing, then of each sum: a step goes from one position to the next.
  const positions = waterfallOf(shownSums)
  const [zero = 0] = positions
  return (
    <section>
      <h2>{words.lines}</h2>
      {lines.length === 0 && <p>{words.noLines}</p>}
      {lines.length > 0 && (
        <Table
          caption={words.lines}
          rows={rows}
          keyOf={line => line.id}
          columns={[
            { head: words.line, isPlain: true, cell: line => line.description || <IdText id={line.id} /> },
            { head: texts.words.kind, isPlain: true, cell: line => words.category[line.category] },
            {
              head: texts.words.deal,
              isPlain: true,
              cell: line => <DealLink id={line.deal_id} />,
            },
            {
              head: words.picture,
              isPicture: true,
              cell: ({ category }, at) => (
                <WaterfallStep from={positions[at] ?? 0} to={positions[at + 1] ?? 0} zero={zero} name={category} />
              ),
            },
            { head: texts.words.amount, amount: line => line.amount },
            { head: words.sum, amount: (_, at) => even[at] ?? null },
          ]}
        />
      )}
      <More shown={shown} of={lines.length} onMore={() => setShown(10 * shown)} />
    </section>
  )
}

const More = (props: { readonly shown: number; readonly of: number; readonly onMore: () => void }) =>
  props.of <= props.shown ? null : (
    <p>
      {texts.payout.linesShown(props.shown, props.of)}{' '}
      <button type="button" onClick={props.onMore}>
        {texts.more}
      </button>
    </p>
  )

const Trace = ({ statement }: { readonly statement: ViewReading<Statement> }) => {
  const [shown, setShown] = useState(ROWS_SHOWN)
  const words = texts.payout
  const { value } = statement
  const steps = value?.calculation_trace ?? []
  return (
    <section>
      <h2>{words.trace}</h2>
      <ReadingState reading={statement} what="statements" />
      {value?.calculation_trace_recorded === false && <p class="notice">{words.notCalculated}</p>}
      {value?.calculation_trace_recorded === true && steps.length === 0 && <p>{words.noSteps}</p>}
      {steps.length > 0 && <p class="quiet">{words.traceHint}</p>}
      <ol class="trace">
        {steps.slice(0, shown).map(({ step, name, strategy, strategy_version, inputs, output_amount, deal_id }) => (
          <li key={step} value={step}>
            <h3>{name}</h3>
            <p class="quiet">
              {words.strategy(strategy, strategy_version)} {deal_id !== null && <DealLink id={deal_id} />}
            </p>
            <dl class="inputs">
              {Object.entries(inputs).map(([input, text]) => (
                <div key={input}>
                  <dt>{input}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
            <p>
              <span class="quiet">{words.output}</span> <Amount amount={output_amount} />
            </p>
          </li>
        ))}
      </ol>
      <More shown={shown} of={steps.length} onMore={() => setShown(10 * shown)} />
    </section>
  )
}

/** Of the payroll records in the currency of the payout, with as many decimals as the payout has. */
const sumsOf = (payout: Explained, records: readonly PayrollRecord[]) => {
  const paid = paidIn(records)(payout)
  const open = subtractAmount(payout.net_amount, paid)
  const [paidEven = '', openEven = ''] = withEqualDecimals([paid, open, payout.net_amount])
  return { paid: paidEven, open: openEven }
}

type PayrollProps = { readonly payout: Explained; readonly reading: ViewReading<PayrollRecord[]> }

const Payroll = ({ payout, reading }: PayrollProps) => {
  const { currency, superseded_by_id } = payout
  const words = texts.payout
  const rows = reading.value ?? []
  const sums = sumsOf(payout, rows)
  return (
    <section>
      <h2>{words.payroll}</h2>
      <ReadingState reading={reading} what="payroll records" />
      {reading.value !== undefined && rows.length === 0 && <p>{words.noPayroll}</p>}
      {rows.length > 0 && (
        <Table
          caption={words.payroll}
          rows={rows}
          keyOf={({ id }) => id}
          columns={[
            { head: words.recorded, isPlain: true, cell: ({ recorded_at }) => <ShortInstant instant={recorded_at} /> },
            { head: words.destination, isPlain: true, cell: record => <Destination record={record} /> },
            { head: texts.words.amount, amount: ({ amount }) => amount },
            { head: texts.words.currency, isPlain: true, cell: record => record.currency },
            { head: texts.changes.kind.payroll_files, isPlain: true, cell: ({ id }) => <PayrollLink id={id} /> },
          ]}
        />
      )}
      {reading.value !== undefined && superseded_by_id === null && (
        <dl class="facts paid-and-open">
          <dt>{words.paidSum(currency)}</dt>
          <dd>
            <Amount amount={sums.paid} column={Object.values(sums)} />
          </dd>
          <dt>{words.openSum(currency)}</dt>
          <dd>
            <Amount amount={sums.open} column={Object.values(sums)} />
          </dd>
        </dl>
      )}
    </section>
  )
}

const Destination = ({ record: { destination, reverses_id } }: { readonly record: PayrollRecord }) => (
  <>
    {reverses_id !== null && (
      <>
        {texts.payout.void} <PayrollLink id={reverses_id} />{' '}
      </>
    )}
    {destination.label} <SealedMark of={destination} />
  </>
)
