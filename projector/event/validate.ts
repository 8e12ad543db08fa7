/**
 * In: an envelope and its record. Out: an event that keeps every rule that needs no other record, or the code of the
 * first rule that it breaks.
 * Promises: the data has exactly the known fields, in canonical order; equal events have equal hashes.
 */
import { hash } from 'node:crypto'
import type { ParkCode } from '../../schemas/errors.ts'
import type {
  AnyEvent,
  LineItem,
  PayoutCalculatedData,
  PayoutRecordedData,
  Stream,
  TraceStep,
} from '../../schemas/events.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { isEventType, matchesFirstKeySchema, matchesSchema } from '../../schemas/validate.ts'
import { instantToNanoseconds } from '../../schemas/values.ts'
import { canonical } from './canonical.ts'
import type { Envelope } from './decode.ts'
import type { FastPayout } from './fast-payout.ts'
import { addUpTo } from './money.ts'
import { JsonText } from './raw-json.ts'
import type { RawRecord } from './raw-record.ts'

/** An event that may be projected. `hash` covers the type and the known fields: equal events have equal hashes. */
export type ValidEvent = (Exclude<AnyEvent, PayoutEvent> | ListsAsText<PayoutEvent>) & { readonly hash: string }

type ListsAsText<Event extends PayoutEvent> = Event extends unknown
  ? { readonly type: Event['type']; readonly data: PayoutData<Event['data']> }
  : never
export type PayoutData<Data> = { [Name in keyof Data]: Data[Name] extends readonly unknown[] ? JsonText : Data[Name] }

/** The partition that a record was read from. */
export type PartitionSource = {
  readonly stream: Stream
  readonly partition: number
  readonly partitions: number
  /** Of API keys: the first version of their rules decides the records before this offset. By default none. */
  readonly firstKeyRulesUntil?: number
}

/** Whether the first version of the rules for API keys decides the record. */
export const hasFirstKeyRules = ({ stream, firstKeyRulesUntil = 0 }: PartitionSource, { offset }: RawRecord): boolean =>
  stream === 'api-keys' && offset < firstKeyRulesUntil

export const validate = (envelope: Envelope, record: RawRecord, source: PartitionSource): ValidEvent | ParkCode => {
  if (!isEventType(source.stream, envelope.type)) return 'type_unknown'
  const known = envelope.plain
    ? plainPayout(envelope.type, envelope.plain, record)
    : knownEvent(envelope, source.stream, hasFirstKeyRules(source, record))
  if (known === undefined) return 'data_invalid'
  const { event, amounts } = known
  // Organization ids are ASCII: only the same bytes, read as latin1, give the same text.
  if (record.key?.toString('latin1') !== event.data.org_id) return 'org_mismatch'
  if (partitionOf(record.key, source.partitions) !== source.partition) return 'partition_mismatch'
  if ('net_amount' in event.data && !addUpTo(amounts, event.data.net_amount)) return 'lines_do_not_sum'
  return event
}

/** A valid event, with the amounts of its line items. */
type Known = { readonly event: ValidEvent; readonly amounts: readonly string[] }

const knownEvent = (given: Envelope, stream: Stream, hasFirstRules: boolean): Known | undefined => {
  const envelope = hasFirstRules ? underFirstKeyRules(given) : given
  if (envelope === undefined || !matchesSchema(stream, envelope)) return undefined
  const event = canonical(envelope)
  if (!keepsValueRules(event)) return undefined
  const hash = eventHash(event.type, Buffer.from(JSON.stringify(event.data)))
  if (!isPayout(event)) return { event: { ...event, hash }, amounts: [] }
  return { event: listsAsText(event, hash), amounts: event.data.line_items.map(line => line.amount) }
}

/** Returns a key event as the first version of the rules reads it: `expires_at` is a field that it does not know. */
const underFirstKeyRules = (envelope: Envelope): Envelope | undefined => {
  if (envelope.type !== 'commission.api_key.created.v1') return envelope
  if (!matchesFirstKeySchema(envelope.data)) return undefined
  const { expires_at: _, ...data } = envelope.data
  return { ...envelope, data }
}

/** The bytes of the record are its canonical JSON. */
const plainPayout = (type: string, { data, amounts }: FastPayout, { value }: RawRecord): Known => ({
  event: { type, data, hash: eventHash(type, value ?? Buffer.alloc(0)) } as unknown as ValidEvent,
  amounts,
})

const eventHash = (type: string, json: Buffer): string =>
  hash('sha256', Buffer.concat([Buffer.from(`${type}\n`), json]), 'base64url')

const listsAsText = (event: PayoutEvent, hash: string): ValidEvent => {
  const line_items = new JsonText(JSON.stringify(event.data.line_items))
  if (event.type === 'commission.payout.recorded.v1') {
    return { type: event.type, data: { ...event.data, line_items }, hash }
  }
  const calculation_trace = new JsonText(JSON.stringify(event.data.calculation_trace))
  return { type: event.type, data: { ...event.data, line_items, calculation_trace }, hash }
}

type PayoutEvent = Extract<AnyEvent, { data: PayoutCalculatedData | PayoutRecordedData }>
const isPayout = (event: AnyEvent): event is PayoutEvent =>
  event.type === 'commission.payout.calculated.v1' || event.type === 'commission.payout.recorded.v1'

/** Checks the rules that span several fields. */
const keepsValueRules = (event: AnyEvent): boolean => {
  switch (event.type) {
    case 'commission.payout.calculated.v1':
      return haveDistinctIds(event.data.line_items) && countUp(event.data.calculation_trace)
    case 'commission.payout.recorded.v1':
      return haveDistinctIds(event.data.line_items)
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

const haveDistinctIds = (lines: readonly LineItem[]): boolean =>
  new Set(lines.map(line => line.id)).size === lines.length

const countUp = (steps: readonly TraceStep[]): boolean => steps.every(({ step }, index) => step === index + 1)

const isBefore = (start: string, end: string): boolean => {
  const [from, to] = [instantToNanoseconds(start), instantToNanoseconds(end)]
  return from !== undefined && to !== undefined && from < to
}
