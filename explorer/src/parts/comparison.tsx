/** Two payouts compared: what each kind of line adds to the difference, and the lines that differ. */
import type { Payout } from '../../../client/src/index.ts'
import { addAmounts, subtractAmount, withEqualDecimals } from '../amounts.ts'
import { compareLines, type LineDifference } from '../state/compare-lines.ts'
import { payoutInstant } from '../state/instants.ts'
import { texts } from '../texts.ts'
import { Amount } from './amount.tsx'
import { DealLink, IdText, ShortInstant } from './identity.tsx'
import { Table } from './table.tsx'

type Compared = Pick<Payout, 'id' | 'net_amount' | 'currency' | 'line_items' | 'calculated_at' | 'recorded_at'>

type Props = {
  readonly from: Compared
  readonly to: Compared
  /** The names of their periods. Absent: both are of one rep and period. */
  readonly periods?: Periods
}

export const ComparedPayouts = ({ from, to, periods }: Props) => {
  const words = texts.history
  const rows = compareLines(from, to, periods === undefined)
  const isSameCurrency = from.currency === to.currency
  const heads = headsOf(periods)
  const [difference = ''] = withEqualDecimals([
    subtractAmount(to.net_amount, from.net_amount),
    from.net_amount,
    to.net_amount,
  ])
  return (
    <>
      {/* On paper, the fields that choose the two are not there. */}
      <dl class="facts">
        <Side head={heads[0]} payout={from} other={to} />
        <Side head={heads[1]} payout={to} other={from} />
      </dl>
      {isSameCurrency ? (
        <p class="compared">
          {words.difference}:{' '}
          <strong>
            <Amount amount={difference} isDifference />
          </strong>{' '}
          {to.currency}
        </p>
      ) : (
        <p class="notice">{words.otherCurrency(from.currency, to.currency)}</p>
      )}
      {isSameCurrency && rows.length > 1 && <Kinds from={from} to={to} heads={heads} />}
      {isSameCurrency && rows.length === 0 && <p>{words.same}</p>}
      {rows.length > 0 && <Lines from={from} to={to} rows={rows} periods={periods} heads={heads} />}
    </>
  )
}

type SideProps = { readonly head: string; readonly payout: Compared; readonly other: Compared }

const Side = ({ head, payout, other }: SideProps) => (
  <>
    <dt>{head}</dt>
    <dd>
      <Amount amount={payout.net_amount} column={[payout.net_amount, other.net_amount]} /> {payout.currency}{' '}
      <IdText id={payout.id} /> <ShortInstant instant={payoutInstant(payout)} />
    </dd>
  </>
)

type Periods = readonly [from: string, to: string] | undefined
type Heads = readonly [before: string, after: string]

/** Of two columns: the names of the periods, if they tell the columns apart. */
const headsOf = (periods: Periods): Heads =>
  periods === undefined || periods[0] === periods[1] ? [texts.history.before, texts.history.after] : periods

/** In another period nothing was added or removed: the lines are others. */
const ofPeriods = (kind: LineDifference['kind'], [from, to]: readonly [string, string]): string => {
  if (kind === 'changed') return texts.compare.inBoth
  return texts.compare.onlyIn(kind === 'added' ? to : from)
}

/** The sums of earned, recovered and adjusted lines in both. Of one kind alone, the difference says it. */
const Kinds = ({ from, to, heads: [before, after] }: Props & { readonly heads: Heads }) => {
  const sumOf = ({ line_items }: Compared, kind: string): string =>
    addAmounts(line_items.filter(({ category }) => category === kind).map(({ amount }) => amount))
  const present = new Set([...from.line_items, ...to.line_items].map(({ category }) => category))
  const rows = (['earned', 'recovered', 'adjusted'] as const)
    .filter(kind => present.has(kind))
    .map(kind => ({ kind, before: sumOf(from, kind), after: sumOf(to, kind) }))
  if (rows.length < 2) return null
  const words = texts.history
  const even = withEqualDecimals(rows.flatMap(({ before, after }) => [before, after, subtractAmount(after, before)]))
  return (
    <Table
      caption={words.byKind}
      rows={rows}
      keyOf={({ kind }) => kind}
      columns={[
        { head: texts.words.kind, isPlain: true, cell: ({ kind }) => texts.payout.category[kind] },
        { head: before, amount: (_, at) => even[3 * at] ?? null },
        { head: after, amount: (_, at) => even[3 * at + 1] ?? null },
        { head: words.difference, isDifference: true, amount: (_, at) => even[3 * at + 2] ?? null },
      ]}
    />
  )
}

type LinesProps = Omit<Props, 'periods'> & {
  readonly periods: Periods
  readonly heads: Heads
  readonly rows: readonly LineDifference[]
}

const Lines = ({ from, to, rows, periods, heads: [before, after] }: LinesProps) => {
  const words = texts.history
  const isSameCurrency = from.currency === to.currency
  const withCurrency = (head: string, { currency }: Compared): string =>
    isSameCurrency ? head : words.inCurrency(head, currency)
  const amounts = rows.flatMap(({ before, after }) => [before ?? '0', after ?? '0'])
  const even = withEqualDecimals([...rows.map(({ difference }) => difference), ...amounts])
  const difference = {
    head: words.difference,
    isDifference: true,
    amount: (_: LineDifference, at: number) => even[at] ?? null,
  }
  return (
    <Table
      caption={words.compare}
      rows={rows}
      keyOf={({ id }) => id}
      columns={[
        {
          head: texts.payout.line,
          isPlain: true,
          cell: ({ line, kind }) => {
            const text = line.description || <IdText id={line.id} />
            return kind === 'removed' && periods === undefined ? <s>{text}</s> : text
          },
        },
        {
          head: words.change,
          isPlain: true,
          cell: ({ kind }) => (periods === undefined ? words[kind] : ofPeriods(kind, periods)),
        },
        { head: texts.words.deal, isPlain: true, cell: ({ line }) => <DealLink id={line.deal_id} /> },
        { head: withCurrency(before, from), amount: row => row.before },
        { head: withCurrency(after, to), amount: row => row.after },
        // Amounts of two currencies have no difference.
        ...(isSameCurrency ? [difference] : []),
      ]}
    />
  )
}

type ChoiceProps = {
  readonly label: string
  /** The id of a payout; undefined if none is chosen. */
  readonly value: string | undefined
  readonly options: readonly (readonly [id: string, text: string])[]
  readonly onChoice: (id: string) => void
}

/** One of the two payouts. */
export const PayoutChoice = ({ label, value, options, onChoice }: ChoiceProps) => {
  const id = `choice-${label}`
  return (
    <div>
      <label for={id}>{label}</label>
      <select id={id} value={value ?? ''} onChange={event => onChoice(event.currentTarget.value)}>
        {value === undefined && <option value="">{texts.compare.choose}</option>}
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </div>
  )
}
