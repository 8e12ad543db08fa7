/** Of a payout that was not there yet at the moment of the page: the payout of its rep and period that was. */
import { RefusedError } from '../../../client/src/index.ts'
import { useReader, useReading, type ViewReading } from '../state/reading.ts'
import { texts } from '../texts.ts'
import { IdText, Link } from './identity.tsx'

type Props = { readonly id: string; readonly reading: ViewReading<unknown>; readonly view: 'payout' | 'history' }

/** @param reading that of the payout as of the moment */
export const PayoutThen = ({ id, reading: { error }, view }: Props) => {
  const { asOf } = useReader().address
  const isUnknown = error instanceof RefusedError && error.status === 404
  return isUnknown && asOf !== undefined ? <Found id={id} view={view} /> : null
}

const Found = ({ id, view }: Omit<Props, 'reading'>) => {
  const { now } = useReader()
  const { value } = useReading(JSON.stringify(['then', id]), async client => {
    const { rep_id, period_id } = await now.payout(id)
    return Array.fromAsync(client.payouts({ repId: rep_id, periodId: period_id }))
  })
  // Nothing if the payout is not there now either: the refusal above says it.
  if (value === undefined) return null
  const [then] = value
  const { noneThen, wasThen } = texts.payout
  if (then === undefined) return <p class="notice">{noneThen}</p>
  return (
    <p class="notice">
      {wasThen}{' '}
      <Link to={{ view, id: then.id }}>
        <IdText id={then.id} />
      </Link>
    </p>
  )
}
