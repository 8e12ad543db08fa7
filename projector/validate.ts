/**
 * In: an envelope and the record it came in. Out: an event that keeps every rule that needs no other record, or the code
 * of the first rule it breaks.
 * Promises: the data carries exactly the known fields, in canonical order; the same event always has the same hash.
 */
import { hash } from 'node:crypto'
import type { ParkCode } from '../schemas/errors.ts'
import type {
  AnyEvent,
  LineItem,
  PayoutCalculatedData,
  PayoutRecordedData,
  Stream,
  TraceStep,
} from '../schemas/events.ts'
import { partitionOf } from '../schemas/partition.ts'
import { isEventType, matchesSchema } from '../schemas/validate.ts'
import { instantToNanoseconds } from '../schemas/values.ts'
import { canonical } from './canonical.ts'
import type { Envelope, RawRecord } from './decode.ts'
import { JsonText } from './json-text.ts'
import { addUpTo } from './money.ts'

/** An event that may be projected. `hash` is of its type and known fields: equal for the same event, however it came. */
export type ValidEvent = (Exclude<AnyEvent, PayoutEvent> | ListsAsText<PayoutEvent>) & { readonly hash: string }

/** The same event, its lists as text. */
type ListsAsText<Event extends PayoutEvent> = Event extends unknown
  ? { readonly type: Event['type']; readonly data: PayoutData<Event['data']> }
  : never
export type PayoutData<Data> = { [Name in keyof Data]: Data[Name] extends readonly unknown[] ? JsonText : Data[Name] }

/** Where a record was read. */
export type Source = { readonly stream: Stream; readonly partition: number; readonly partitions: number }

export const validate = (envelope: Envelope, record: RawRecord, source: Source): ValidEvent | ParkCode => {
  if (!isEventType(source.stream, envelope.type)) return 'type_unknown'
  if (!matchesSchema(source.stream, envelope)) return 'data_invalid'
  const event = canonical(envelope)
  // What canonical returns as it was given needs no other text than its own.
  const text = (): string => (event.data === envelope.data && envelope.text) || JSON.stringify(event.data)
  if (!keepsValueRules(event)) return 'data_invalid'
  // An organization's id is ASCII: no other bytes than its own read as it.
  if (record.key?.toString('latin1') !== event.data.org_id) return 'org_mismatch'
  if (partitionOf(record.key, source.partitions) !== source.partition) return 'partition_mismatch'
  if (!isPayout(event)) return { ...event, hash: hashOf(event.type, text()) }
  const { line_items, net_amount } = event.data
  const amounts = line_items.map(line => line.amount)
  return addUpTo(amounts, net_amount) ? listsAsText(event, text()) : 'lines_do_not_sum'
}

const hashOf = (type: string, text: string): string => hash('sha256', `${type}\n${text}`, 'base64url')

/**
 * The lists as they stand in the canonical text of the data: each between its own name and the name of the next field. Within a
 * string a quote is escaped, and a line has no fields of such names: the first is the list's. Of the last field it is the last.
 */
const listsAsText = (event: PayoutEvent, text: string): ValidEvent => {
  const hash = hashOf(event.type, text)
  if (event.type === 'commission.payout.recorded.v1') {
    const line_items = between(text, from(text, 'line_items'), text.lastIndexOf(',"recorded_at":'))
    return { type: event.type, data: { ...event.data, line_items }, hash }
  }
  const line_items = between(text, from(text, 'line_items'), text.indexOf(',"calculation_trace":'))
  const trace = between(text, from(text, 'calculation_trace'), text.lastIndexOf(',"calculated_at":'))
  return { type: event.type, data: { ...event.data, line_items, calculation_trace: trace }, hash }
}

const from = (text: string, name: string): number => {
  const member = `,"${name}":`
  return text.indexOf(member) + member.length
}
const between = (text: string, from: number, to: number): JsonText => new JsonText(text.slice(from, to))

type PayoutEvent = Extract<AnyEvent, { data: PayoutCalculatedData | PayoutRecordedData }>
const isPayout = (event: AnyEvent): event is PayoutEvent =>
  event.type === 'commission.payout.calculated.v1' || event.type === 'commission.payout.recorded.v1'

/** The rules of the data that span several fields. */
const keepsValueRules = (event: AnyEvent): boolean => {
  switch (event.type) {
    case 'commission.payout.calculated.v1':
      return haveOwnIds(event.data.line_items) && countUp(event.data.calculation_trace)
    case 'commission.payout.recorded.v1':
      return haveOwnIds(event.data.line_items)
    case 'commission.period.recorded.v1':
      return isBefore(event.data.starts_at, event.data.ends_at)
    case 'commission.rep.recorded.v1':
    case 'commission.payroll.recorded.v1':
    case 'commission.payroll.voided.v1':
    case 'commission.api_key.created.v1':
    case 'commission.api_key.revoked.v1':
      return true
    default:
      return event satisfies never
  }
}

const haveOwnIds = (lines: readonly LineItem[]): boolean => new Set(lines.map(line => line.id)).size === lines.length

const countUp = (steps: readonly TraceStep[]): boolean => steps.every(({ step }, index) => step === index + 1)

const isBefore = (start: string, end: string): boolean => {
  const [from, to] = [instantToNanoseconds(start), instantToNanoseconds(end)]
  return from !== undefined && to !== undefined && from < to
}
