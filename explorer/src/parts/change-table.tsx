/** Changes: when each was published, and what it was. Each is also a moment of the whole page. */
import { useRef } from 'preact/hooks'
import type { Change, Client } from '../../../client/src/index.ts'
import { subtractAmount, withEqualDecimals } from '../amounts.ts'
import { lacksPermission } from '../refusals.ts'
import { fragmentOf } from '../state/address.ts'
import { shownName } from '../state/names.ts'
import { useReader, useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { IdText, Link, PayrollLink, PeriodName, RepName, SealedMark, ShortInstant } from './identity.tsx'
import { wordsFor } from './refused.tsx'
import { Table } from './table.tsx'

export const ChangeTable = ({
  changes,
  caption,
}: {
  readonly changes: readonly Change[]
  readonly caption: string
}) => {
  const { address } = useReader()
  const { words } = texts
  const { replaced, error, again } = useReplaced(changes)
  const differences = differencesOf(changes, replaced)
  const difference = {
    head: texts.history.difference,
    isDifference: true,
    amount: (_: Change, at: number) => differences[at] ?? null,
  }
  const table = (
    <Table
      caption={caption}
      rows={changes}
      keyOf={({ id }) => id}
      columns={[
        {
          head: texts.changes.when,
          isPlain: true,
          cell: ({ published_at }) => <ShortInstant instant={published_at} />,
        },
        { head: texts.changes.what, isPlain: true, cell: change => <What change={change} /> },
        {
          head: words.rep,
          isPlain: true,
          cell: change => ('rep_id' in change.record ? <RepName id={change.record.rep_id} /> : '–'),
        },
        {
          head: words.period,
          isPlain: true,
          cell: change => ('period_id' in change.record ? <PeriodName id={change.record.period_id} /> : '–'),
        },
        { head: words.amount, amount: amountOf },
        ...(error === undefined ? [difference] : []),
        { head: words.currency, isPlain: true, cell: ({ record }) => ('currency' in record ? record.currency : '–') },
        {
          head: texts.moment.label,
          cell: ({ id }) => <a href={fragmentOf({ ...address, asOf: id })}>{texts.moment.asOfThis}</a>,
        },
      ]}
    />
  )
  if (error === undefined) return table
  return (
    <>
      <p class="quiet">
        {texts.changes.noDifferences(wordsFor(error, 'payouts'))}{' '}
        {!lacksPermission(error) && (
          <button type="button" onClick={again}>
            {texts.tryAgain}
          </button>
        )}
      </p>
      {table}
    </>
  )
}

type Replaced = ReadonlyMap<string, { readonly net_amount: string; readonly currency: string }>

/** `error`: a difference that is not known would look like that of a first payout. */
type ReadReplaced = { readonly replaced: Replaced; readonly error: unknown; readonly again: () => void }

/** The payouts that were replaced by these changes. A payout never changes, so each is read once. */
const useReplaced = (changes: readonly Change[]): ReadReplaced => {
  const known = useRef(new Map<string, { readonly net_amount: string; readonly currency: string }>())
  for (const { kind, record } of changes) if (kind === 'payouts') known.current.set(record.id, record)
  const missing = changes.flatMap(({ kind, supersedes_id }) =>
    kind === 'payouts' && supersedes_id !== null && !known.current.has(supersedes_id) ? [supersedes_id] : [],
  )
  const read = async (client: Client): Promise<void> => {
    for await (const payout of client.payouts({ ids: missing })) known.current.set(payout.id, payout)
  }
  const { error, again } = useReading(JSON.stringify(['replaced', missing]), read)
  // A key that may not read payouts will not do so for the next change either.
  const forbidden = useRef<unknown>(undefined)
  if (lacksPermission(error)) forbidden.current = error
  return { replaced: known.current, error: forbidden.current ?? error, again }
}

/** Of each change, as texts that stand below one another; null without a payout before, and between two currencies. */
const differencesOf = (changes: readonly Change[], replaced: Replaced): (string | null)[] => {
  const differences = changes.map(({ kind, supersedes_id, record }) => {
    const before = kind === 'payouts' ? replaced.get(supersedes_id ?? '') : undefined
    if (kind !== 'payouts' || before === undefined || before.currency !== record.currency) return null
    return subtractAmount(record.net_amount, before.net_amount)
  })
  const even = withEqualDecimals([
    ...differences.map(amount => amount ?? '0'),
    ...changes.map(change => amountOf(change) ?? '0'),
  ])
  return differences.map((amount, at) => (amount === null ? null : (even[at] ?? null)))
}

const amountOf = (change: Change): string | null => {
  if (change.kind === 'payouts') return change.record.net_amount
  return change.kind === 'payroll_files' ? change.record.amount : null
}

const What = ({ change }: { readonly change: Change }) => {
  const { kind, recalculated, void: voids } = texts.changes
  switch (change.kind) {
    case 'payouts': {
      const { supersedes_id } = change
      return (
        <>
          {supersedes_id === null ? kind.payouts : `${recalculated} `}
          {supersedes_id !== null && <IdText id={supersedes_id} />}{' '}
          <Link to={{ view: 'payout', id: change.record.id }}>{texts.payouts.explain}</Link>
        </>
      )
    }
    case 'payroll_files':
      return (
        <>
          <Link to={{ view: 'payroll', id: change.record.id }}>
            {change.reverses_id === null ? kind.payroll_files : voids}
          </Link>{' '}
          {change.reverses_id !== null && <PayrollLink id={change.reverses_id} />}
          {change.record.payout_id !== null && (
            <>
              {texts.changes.ofPayout}{' '}
              <Link to={{ view: 'payout', id: change.record.payout_id }}>
                <IdText id={change.record.payout_id} />
              </Link>
            </>
          )}
        </>
      )
    case 'reps':
      return (
        <>
          {kind.reps}:{' '}
          {shownName(change.record.name) || (
            <>
              <SealedMark of={change.record} /> <IdText id={change.record.id} />
            </>
          )}
        </>
      )
    case 'periods':
      return (
        <>
          {kind.periods}: {shownName(change.record.name) || <IdText id={change.record.id} />}
        </>
      )
  }
}
