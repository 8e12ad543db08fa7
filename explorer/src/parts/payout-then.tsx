/** The state of a payout, or what was there in its place: at the moment of the page, it may not have been there yet. */
import { RefusedError } from '../../../client/src/index.ts'
import { useReader, useReading, type ViewReading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { IdText, Link } from './identity.tsx'
import { ReadingState } from './refused.tsx'

type Props = { readonly id: string; readonly reading: ViewReading<unknown>; readonly view: 'payout' | 'history' }

/** @param reading that of the payout as of the moment */
export const PayoutState = (props: Props) => {
  const { error } = props.reading
  const { asOf } = useReader().address
  const isUnknown = error instanceof RefusedError && error.code === 'not_found'
  if (!isUnknown || asOf === undefined) return <ReadingState reading={props.reading} what="payouts" />
  return <PayoutThen {...props} />
}

/** Of a payout that is not there at the moment: the payout of its rep and period that is. */
const PayoutThen = ({ id, reading, view }: Props) => {
  const { now } = useReader()
  const { value, error } = useReading(JSON.stringify(['then', id]), async client => {
    const { rep_id, period_id } = await now.payout(id)
    return Array.fromAsync(client.payouts({ repId: rep_id, periodId: period_id }))
  })
  // It is not there now either, or nobody knows: the refusal says what to do.
  if (error !== undefined) return <ReadingState reading={reading} what="payouts" />
  if (value === undefined) return <p class="quiet">{texts.reading}</p>
  const [then] = value
  const { noneThen, wasThen } = texts.payout
  if (then === undefined)
    return (
      <p class="notice" role="status">
        {noneThen}
      </p>
    )
  return (
    <p class="notice" role="status">
      {wasThen}{' '}
      <Link to={{ view, id: then.id }}>
        <IdText id={then.id} />
      </Link>
    </p>
  )
}
