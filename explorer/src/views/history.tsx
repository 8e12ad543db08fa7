/** All payouts of a rep and period, oldest first, the difference of each to the one before, and of any two. */
import type { PayoutStep } from '../../../client/src/index.ts'
import { groupDigits, withEqualDecimals } from '../amounts.ts'
import { ComparedPayouts, PayoutChoice } from '../parts/comparison.tsx'
import { IdText, Link, ShortInstant, useNames } from '../parts/identity.tsx'
import { PayoutState } from '../parts/payout-then.tsx'
import { Table } from '../parts/table.tsx'
import { Bars } from '../pictures/bars.tsx'
import { labelsOf } from '../pictures/labels.ts'
import { fragmentOf } from '../state/address.ts'
import { payoutInstant } from '../state/instants.ts'
import { nameOfPeriod, nameOfRep } from '../state/names.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

export const HistoryView = ({ id }: { readonly id: string }) => {
  const names = useNames()
  const reading = useReading(`history ${id}`, client => Array.fromAsync(client.history(id)))
  const words = texts.history
  const steps = reading.value ?? []
  const labels = labelsOf(steps.map(payoutInstant))
  const isMixed = new Set(steps.map(({ currency }) => currency)).size > 1
  const [first] = steps
  const title = first && words.title(nameOfRep(names, first.rep_id), nameOfPeriod(names, first.period_id))
  return (
    <>
      <h1 tabIndex={-1}>{title ?? texts.views.history}</h1>
      <PayoutState id={id} reading={reading} view="history" />
      {steps.length > 0 && (
        <section>
          <figure>
            <Bars
              caption={words.picture}
              bars={steps.map((step, at) => ({
                key: step.id,
                label: [...(labels[at] ?? []), ...(isMixed ? [step.currency] : [])],
                title: `${step.id}: ${groupDigits(step.net_amount)} ${step.currency}`,
                amount: step.net_amount,
              }))}
            />
            <figcaption>
              {words.picture}. {isMixed && words.mixed}
            </figcaption>
          </figure>
          <Steps steps={steps} />
        </section>
      )}
      {steps.length > 0 && <Comparison steps={steps} />}
    </>
  )
}

const Steps = ({ steps }: { readonly steps: readonly PayoutStep[] }) => {
  const words = texts.history
  // A difference has no zeros at its end: it gets as many decimals as the amounts have.
  const even = withEqualDecimals(
    steps.flatMap(({ difference, net_amount }) => [difference?.net_amount ?? '0', net_amount]),
  )
  return (
    <Table
      caption={texts.views.history}
      rows={steps}
      keyOf={({ id }) => id}
      columns={[
        {
          head: texts.words.payout,
          isPlain: true,
          cell: ({ id }) => (
            <>
              <Link to={{ view: 'payout', id }}>
                <IdText id={id} />
              </Link>{' '}
              <a href={fragmentOf({ view: 'payout', id, asOf: id })}>{words.asThen}</a>
            </>
          ),
        },
        {
          head: `${texts.payout.calculated} / ${texts.payout.recorded}`,
          isPlain: true,
          cell: step => <ShortInstant instant={payoutInstant(step)} />,
        },
        { head: texts.words.owed, amount: ({ net_amount }) => net_amount },
        {
          head: words.difference,
          isDifference: true,
          amount: ({ difference }, at) => (difference?.net_amount ? (even[2 * at] ?? null) : null),
        },
        { head: texts.words.currency, isPlain: true, cell: ({ currency }) => currency },
        {
          head: texts.words.status,
          isPlain: true,
          cell: ({ supersedes_id, superseded_by_id }) => (
            <>
              {supersedes_id === null ? words.first : <Replaced id={supersedes_id} />}
              {superseded_by_id === null && <strong> {texts.payout.current}</strong>}
            </>
          ),
        },
      ]}
    />
  )
}

const Replaced = ({ id }: { readonly id: string }) => (
  <>
    {texts.payout.replaces} <IdText id={id} />
  </>
)

/** Any two payouts of the history: the last two at first. An address can name others. */
const Comparison = ({ steps }: { readonly steps: readonly PayoutStep[] }) => {
  const { address } = useReader()
  const words = texts.history
  const byId = (id: string): PayoutStep | undefined => steps.find(step => step.id === id)
  const others = new Set([address.from, address.to].flatMap(id => (id === undefined || byId(id) ? [] : [id])))
  if (steps.length < 2 && others.size === 0) return null
  const to = address.to === undefined ? steps.at(-1) : byId(address.to)
  const before = steps[Math.max(0, steps.findIndex(({ id }) => id === to?.id) - 1)]
  const from = address.from === undefined ? before : byId(address.from)
  const choose = (field: 'from' | 'to', id: string): void => {
    const chosen = { ...(from && { from: from.id }), ...(to && { to: to.id }), [field]: id }
    location.hash = fragmentOf({ ...address, ...chosen })
  }
  const labels = labelsOf(steps.map(payoutInstant))
  const options = steps.map(({ id, net_amount, currency }, at): readonly [string, string] => [
    id,
    `${labels[at]?.join(' ')}: ${groupDigits(net_amount)} ${currency}`,
  ])
  return (
    <section>
      <h2>{words.compare}</h2>
      <form class="filters" aria-label={words.compare} onSubmit={event => event.preventDefault()}>
        <PayoutChoice label={words.from} value={from?.id} options={options} onChoice={id => choose('from', id)} />
        <PayoutChoice label={words.to} value={to?.id} options={options} onChoice={id => choose('to', id)} />
      </form>
      {[...others].map(id => (
        <p key={id}>{words.notInHistory(id)}</p>
      ))}
      {from !== undefined && to !== undefined && <ComparedPayouts from={from} to={to} />}
    </section>
  )
}
