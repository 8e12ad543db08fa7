/** Works out what the API must return, from the published records only, and without code of the projector. */
import { Decimal } from 'decimal.js'
import type { ParkCode } from '../../schemas/errors.ts'
import type {
  AnyEvent,
  PayoutCalculatedData,
  PayoutRecordedData,
  PayrollRecordedData,
  PayrollVoidedData,
} from '../../schemas/events.ts'
import type { DemoRecord } from './demo-record.ts'

/** A record as the API returns it. */
export type ApiRecord = Readonly<Record<string, unknown>> & { readonly id: string }

/** Of one organization. Every list is in the order in which the API must return it. */
export type Expected = {
  readonly reps: readonly ApiRecord[]
  readonly periods: readonly ApiRecord[]
  readonly payouts: readonly ApiRecord[]
  readonly payroll_files: readonly ApiRecord[]
  /** Superseded payouts: on no list, readable by id. */
  readonly superseded: readonly ApiRecord[]
  /** By payout id, current and superseded. */
  readonly statements: ReadonlyMap<string, ApiRecord>
}

/** Returns the records that the API must return to one organization. */
export const expectedOf = (org_id: string, sent: readonly DemoRecord[]): Expected => {
  const books = openBooks()
  for (const { message, outcome } of sent) {
    if (outcome !== 'applied') continue
    const event = { type: message.headers?.ce_type, data: JSON.parse(String(message.value)) } as AnyEvent
    if (event.data.org_id === org_id) enter(books, event)
  }
  const payouts = [...books.payouts.values()]
  return {
    reps: [...books.reps.values()],
    periods: [...books.periods.values()],
    payouts: payouts.filter(payout => payout.superseded_by_id === null),
    payroll_files: [...books.payroll.values()],
    superseded: payouts.filter(payout => payout.superseded_by_id !== null),
    statements: new Map(payouts.map(payout => [payout.id, { ...payout, ...books.traces.get(payout.id) }])),
  }
}

type Payroll = Omit<PayrollRecordedData, 'org_id'> & { readonly reverses_id: string | null }
// A map keeps the first position of a key that is set again, as the lists of reps and periods do.
const openBooks = () => ({
  reps: new Map<string, ApiRecord>(),
  periods: new Map<string, ApiRecord>(),
  payouts: new Map<string, ApiRecord>(),
  traces: new Map<string, object>(),
  payroll: new Map<string, Payroll>(),
})
type Books = ReturnType<typeof openBooks>

const enter = (books: Books, event: AnyEvent): void => {
  switch (event.type) {
    case 'commission.rep.recorded.v1':
      books.reps.set(event.data.id, withoutOrg(event.data))
      break
    case 'commission.period.recorded.v1':
      books.periods.set(event.data.id, withoutOrg(event.data))
      break
    case 'commission.payout.calculated.v1':
    case 'commission.payout.recorded.v1':
      enterPayout(books, event.data)
      break
    case 'commission.payroll.recorded.v1':
      books.payroll.set(event.data.id, { ...withoutOrg(event.data), reverses_id: null })
      break
    case 'commission.payroll.voided.v1':
      enterVoid(books, event.data)
      break
    case 'commission.api_key.created.v1':
    case 'commission.api_key.revoked.v1':
      break
    default:
      event satisfies never
  }
}

const enterPayout = (books: Books, data: PayoutCalculatedData | PayoutRecordedData): void => {
  const { calculated_at = null, recorded_at = null, calculation_trace, ...fields } = { ...unset, ...withoutOrg(data) }
  books.payouts.set(data.id, { ...fields, superseded_by_id: null, calculated_at, recorded_at })
  books.traces.set(data.id, {
    calculation_trace_recorded: calculation_trace !== undefined,
    calculation_trace: calculation_trace ?? [],
  })
  if (data.supersedes_id === null) return
  const replaced = books.payouts.get(data.supersedes_id)
  if (replaced === undefined) throw new Error(`${data.id} replaces ${data.supersedes_id}, which was not published`)
  books.payouts.set(replaced.id, { ...replaced, superseded_by_id: data.id })
}

/** Fields that only one of the two kinds of payout has. */
const unset: { calculated_at?: string; recorded_at?: string; calculation_trace?: object[] } = {}

const enterVoid = (books: Books, data: PayrollVoidedData): void => {
  const reversed = books.payroll.get(data.reverses_id)
  if (reversed === undefined) throw new Error(`${data.id} reverses ${data.reverses_id}, which was not published`)
  books.payroll.set(data.id, { ...reversed, ...withoutOrg(data) })
}

const withoutOrg = <Data extends { readonly org_id: string }>({ org_id: _, ...rest }: Data): Omit<Data, 'org_id'> =>
  rest

/** A record that must be parked, with its code and bytes. The id of its event identifies it. */
export type ExpectedParked = { readonly event_id: string; readonly code: ParkCode; readonly value: string }

/** Returns the records that must be parked. */
export const expectedParked = (sent: readonly DemoRecord[]): ExpectedParked[] =>
  sent.flatMap(({ message, outcome }) =>
    outcome === 'applied' || outcome === 'duplicate'
      ? []
      : [
          {
            event_id: String(message.headers?.ce_id),
            code: outcome,
            value: Buffer.from(message.value ?? '').toString('base64'),
          },
        ],
  )

const Exact = Decimal.clone({ precision: 100, toExpNeg: -9e15, toExpPos: 9e15 })

/** Exact sums of an amount by currency, ordered by currency. */
export const sumByCurrency = (records: readonly ApiRecord[], field: 'net_amount' | 'amount'): Map<string, string> => {
  const sums = new Map<string, Decimal>()
  for (const record of records) {
    const currency = String(record.currency)
    sums.set(currency, (sums.get(currency) ?? new Exact(0)).plus(String(record[field])))
  }
  return new Map([...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([currency, sum]) => [currency, sum.toFixed()]))
}
