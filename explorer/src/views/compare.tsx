/** Two payouts of a rep for different periods, compared: one with that of the period before, or with any other. */
import type { Client, Payout } from '../../../client/src/index.ts'
import { groupDigits } from '../amounts.ts'
import { ComparedPayouts, PayoutChoice } from '../parts/comparison.tsx'
import { Link, useNames } from '../parts/identity.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { fragmentOf } from '../state/address.ts'
import { latestPeriodFirst } from '../state/instants.ts'
import { type Names, nameOfPeriod, nameOfRep } from '../state/names.ts'
import { payoutBefore } from '../state/period-before.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

type Read = {
  readonly to: Payout
  /** The payouts of the rep, and the two that are compared, which may be replaced. */
  readonly all: readonly Payout[]
}

const readPayouts = async (client: Client, id: string, from: string | undefined): Promise<Read> => {
  const to = await client.payout(id)
  const current = await Array.fromAsync(client.payouts({ repId: to.rep_id }))
  const asked = from === undefined ? [] : [await client.payout(from)]
  // An address can name the payout of another rep: amounts of two people have no difference.
  const ofRep = asked.filter(({ rep_id }) => rep_id === to.rep_id)
  const byId = new Map([...current, to, ...ofRep].map(payout => [payout.id, payout]))
  return { to, all: [...byId.values()] }
}

export const CompareView = ({ id }: { readonly id: string }) => {
  const { address } = useReader()
  const names = useNames()
  const reading = useReading(JSON.stringify(['compare', id, address.from]), client =>
    readPayouts(client, id, address.from),
  )
  const words = texts.compare
  const { to, all = [] } = reading.value ?? {}
  const asked = address.from
  const found = to && (asked === undefined ? payoutBefore(to, all, names.periods) : all.find(({ id }) => id === asked))
  const from = found === 'unknown' ? undefined : found
  const whyNone =
    asked === undefined ? (found === 'unknown' ? words.beforeUnknown : words.noneBefore) : words.ofOtherRep(asked)
  const periodOf = (payout: Payout): string => nameOfPeriod(names, payout.period_id)
  return (
    <>
      <h1 tabIndex={-1}>
        {to ? words.title(nameOfRep(names, to.rep_id), periodOf(to), from && periodOf(from)) : texts.views.compare}
      </h1>
      <ReadingState reading={reading} what="payouts" />
      {to !== undefined && (
        <section>
          <Choices to={to} from={from} all={all} names={names} />
          {from === undefined ? <p>{whyNone}</p> : <Compared from={from} to={to} periodOf={periodOf} />}
        </section>
      )}
    </>
  )
}

type ComparedProps = {
  readonly from: Payout
  readonly to: Payout
  readonly periodOf: (payout: Payout) => string
}

const Compared = ({ from, to, periodOf }: ComparedProps) => {
  const words = texts.compare
  const isOnePeriod = from.period_id === to.period_id
  const periods = [periodOf(from), periodOf(to)] as const
  // One name for both says nothing.
  const [nameOfFrom, nameOfTo] = isOnePeriod ? [from.id, to.id] : periods
  return (
    <>
      <p class="quiet">
        {from.currency === to.currency && `${words.which(nameOfFrom, nameOfTo)} `}
        <Link to={{ view: 'payout', id: from.id }}>{words.explain(nameOfFrom)}</Link>{' '}
        <Link to={{ view: 'payout', id: to.id }}>{words.explain(nameOfTo)}</Link>
      </p>
      <ComparedPayouts from={from} to={to} {...(!isOnePeriod && { periods })} />
    </>
  )
}

type ChoicesProps = Read & { readonly from: Payout | undefined; readonly names: Names }

const Choices = ({ to, from, all, names }: ChoicesProps) => {
  const { address } = useReader()
  const options = (latestPeriodFirst(all, names.periods) ?? all).map(
    ({ id, period_id, net_amount, currency }): readonly [string, string] => [
      id,
      `${nameOfPeriod(names, period_id)}: ${groupDigits(net_amount)} ${currency}`,
    ],
  )
  const { from: _, ...others } = address
  const choose = (next: { readonly id: string; readonly from: string }): void => {
    location.hash = fragmentOf({ ...others, id: next.id, ...(next.from !== '' && { from: next.from }) })
  }
  return (
    <form class="filters" aria-label={texts.views.compare} onSubmit={event => event.preventDefault()}>
      <PayoutChoice
        label={texts.history.from}
        value={from?.id}
        options={options}
        onChoice={id => choose({ id: to.id, from: id })}
      />
      <PayoutChoice
        label={texts.history.to}
        value={to.id}
        options={options}
        onChoice={id => choose({ id, from: from?.id ?? '' })}
      />
    </form>
  )
}
