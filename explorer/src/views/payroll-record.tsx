/** One payroll record, found by its id: what left, for which payout, and what it reverses. */
import { Amount } from '../parts/amount.tsx'
import { IdText, Link, PayrollLink, PeriodName, RepName, SealedMark, ShortInstant } from '../parts/identity.tsx'
import { ReadingState } from '../parts/refused.tsx'
import { useReading } from '../state/reading.ts'
import { texts } from '../texts.ts'

export const PayrollRecordView = ({ id }: { readonly id: string }) => {
  const reading = useReading(`payroll record ${id}`, client => client.payrollRecord(id))
  const { words, payout, payroll } = texts
  const record = reading.value
  return (
    <>
      <h1 tabIndex={-1}>{texts.views.payroll}</h1>
      <ReadingState reading={reading} what="payroll records" />
      {record !== undefined && (
        <dl class="facts">
          <dt>{record.reverses_id === null ? words.paid : payroll.reversed}</dt>
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
            {record.destination.label} <SealedMark of={record.destination} />
          </dd>
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
      )}
    </>
  )
}
