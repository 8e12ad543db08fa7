/** Changes: when each was published, and what it was. Each is also a moment of the whole page. */
import type { Change } from '../../../client/src/index.ts'
import { fragmentOf } from '../state/address.ts'
import { useReader } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { IdText, Link, PeriodName, RepName, SealedMark, ShortInstant } from './identity.tsx'
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
  return (
    <Table
      caption={caption}
      rows={changes}
      keyOf={({ id }) => id}
      columns={[
        { head: texts.changes.when, cell: ({ published_at }) => <ShortInstant instant={published_at} /> },
        { head: texts.changes.what, cell: change => <What change={change} /> },
        { head: words.rep, cell: change => ('rep_id' in change.record ? <RepName id={change.record.rep_id} /> : '–') },
        {
          head: words.period,
          cell: change => ('period_id' in change.record ? <PeriodName id={change.record.period_id} /> : '–'),
        },
        { head: words.amount, amount: amountOf },
        { head: words.currency, cell: ({ record }) => ('currency' in record ? record.currency : '–') },
        {
          head: texts.moment.label,
          cell: ({ id }) => <a href={fragmentOf({ ...address, asOf: id })}>{texts.moment.asOfThis}</a>,
        },
      ]}
    />
  )
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
          {change.reverses_id === null ? kind.payroll_files : `${voids} `}
          {change.reverses_id !== null && <IdText id={change.reverses_id} />}
        </>
      )
    case 'reps':
      return (
        <>
          {kind.reps}: {change.record.name || <SealedMark of={change.record} />}
        </>
      )
    case 'periods':
      return (
        <>
          {kind.periods}: {change.record.name}
        </>
      )
  }
}
