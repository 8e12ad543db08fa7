/** One payroll record, found by its id: what left, for which payout, what it reverses, and whether it was reversed. */
import type { PayrollRecord } from '../../../client/src/index.ts'
import { Amount } from '../parts/amount.tsx'
import { IdText, Link, PayrollLink, PeriodName, RepName, SealedMark, ShortInstant } from '../parts/identity.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { shownName } from '../state/names.ts'
import { useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

type Props = { readonly record: PayrollRecord }

export const PayrollRecordView = ({ id }: { readonly id: string }) => {
  const reading = useReading(`payroll record ${id}`, client => client.payrollRecord(id))
  const record = reading.value
  return (
    <>
      <h1 tabIndex={-1}>{texts.views.payroll}</h1>
      <ReadingState reading={reading} what="payroll records" />
      {record?.reverses_id === null && <Payment record={record} />}
      {record && record.reverses_id !== null && <Facts record={record} head={texts.payroll.reversed} />}
    </>
  )
}

/** A payment, and the void that reverses it: it is among the payroll records of the rep and period. */
const Payment = ({ record }: Props) => {
  const { id, rep_id, period_id } = record
  const beside = useReading(JSON.stringify(['payroll', rep_id, period_id]), client =>
    Array.fromAsync(client.payrollRecords({ repId: rep_id, periodId: period_id })),
  )
  const { words, payroll } = texts
  const reversal = beside.value?.find(({ reverses_id }) => reverses_id === id)
  const isKnown = beside.value !== undefined && beside.error === undefined
  const head = isKnown ? words.paid : words.amount
  return (
    <>
      <Facts
        record={record}
        head={reversal === undefined ? head : payroll.paidThen}
        {...(reversal && { reversedBy: reversal.id })}
      />
      {reversal === undefined && beside.error !== undefined && <p class="notice">{payroll.reversalUnknown}</p>}
      <ReadingState reading={beside} what="payroll records" />
    </>
  )
}

/** @param head of the amount */
const Facts = ({ record, head, reversedBy }: Props & { readonly head: string; readonly reversedBy?: string }) => {
  const { words, payout, payroll } = texts
  return (
    <dl class="facts">
      <dt>{head}</dt>
      <dd>
        <strong>
          <Amount amount={record.amount} />
        </strong>{' '}
        {record.currency}
      </dd>
      <dt>{words.rep}</dt>
      <dd>
        <RepName id={record.rep_id} />
      </dd>
      <dt>{words.period}</dt>
      <dd>
        <Link to={{ view: 'payouts', period: record.period_id }}>
          <PeriodName id={record.period_id} />
        </Link>
      </dd>
      <dt>{words.payout}</dt>
      <dd>
        {record.payout_id === null ? (
          <Link to={{ view: 'payouts', rep: record.rep_id, period: record.period_id }}>{payroll.noPayout}</Link>
        ) : (
          <Link to={{ view: 'payout', id: record.payout_id }}>
            <IdText id={record.payout_id} />
          </Link>
        )}
      </dd>
      <dt>{payout.recorded}</dt>
      <dd>
        <ShortInstant instant={record.recorded_at} />
      </dd>
      <dt>{payout.destination}</dt>
      <dd>
        {shownName(record.destination.label)} <SealedMark of={record.destination} />
      </dd>
      {reversedBy !== undefined && <dt>{payroll.reversedBy}</dt>}
      {reversedBy !== undefined && (
        <dd>
          <PayrollLink id={reversedBy} />
        </dd>
      )}
      {record.reverses_id !== null && <dt>{payroll.reverses}</dt>}
      {record.reverses_id !== null && (
        <dd>
          <PayrollLink id={record.reverses_id} />
        </dd>
      )}
      <dt>{texts.changes.kind.payroll_files}</dt>
      <dd>
        <IdText id={record.id} />
      </dd>
    </dl>
  )
}
