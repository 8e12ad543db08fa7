/**
 * In: an envelope and its record. Out: an event that keeps every rule that needs no other record, or the code of the
 * first rule that it breaks.
 * Promises: the data has exactly the known fields, in canonical order; equal events have equal hashes.
 */
import { hash } from 'node:crypto'
import type { ParkCode } from '../../../schemas/errors.ts'
import type {
  AnyEvent,
  LineItem,
  PayoutCalculatedData,
  PayoutRecordedData,
  PeriodData,
  Stream,
  TraceStep,
} from '../../../schemas/events.ts'
import { partitionOf } from '../../../schemas/partition.ts'
import { isEventType, matchesFirstKeySchema, matchesSchema } from '../../../schemas/validate.ts'
import { instantToNanoseconds } from '../../../schemas/values.ts'
import { canonical } from './canonical.ts'
import type { Envelope, RawRecord } from './decode.ts'
import type { FastPayout } from './fast-payout.ts'
import { JsonText } from './json-text.ts'
import { addUpTo } from './money.ts'

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
  if (brokenValueRule(event) !== undefined) return undefined
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

/** Returns the first rule of several fields that the event breaks, in words that have nothing of its content. */
export const brokenValueRule = (event: AnyEvent): string | undefined => {
  switch (event.type) {
    case 'commission.payout.calculated.v1':
      return repeatedId(event.data.line_items) ?? wrongStep(event.data.calculation_trace)
    case 'commission.payout.recorded.v1':
      return repeatedId(event.data.line_items)
    case 'commission.period.recorded.v1':
      return wrongBoundaries(event.data)
    case 'commission.rep.recorded.v1':
    case 'commission.payroll.recorded.v1':
    case 'commission.payroll.voided.v1':
    case 'commission.api_key.created.v1':
    case 'commission.api_key.revoked.v1':
      return undefined
    default:
      return event satisfies never
  }
}

const repeatedId = (lines: readonly LineItem[]): string | undefined => {
  if (new Set(lines.map(({ id }) => id)).size === lines.length) return undefined
  const indexOf = new Map<string, number>()
  for (const [index, { id }] of lines.entries()) {
    const first = indexOf.get(id)
    if (first !== undefined) {
      return `/line_items/${index}/id: expected an id that no other line has, got that of /line_items/${first}`
    }
    indexOf.set(id, index)
  }
  return undefined
}

const wrongStep = (steps: readonly TraceStep[]): string | undefined => {
  const index = steps.findIndex(({ step }, at) => step !== at + 1)
  if (index === -1) return undefined
  return `/calculation_trace/${index}/step: expected ${index + 1}, got ${steps[index]?.step}`
}

const wrongBoundaries = ({ starts_at, ends_at }: PeriodData): string | undefined => {
  const [from, to] = [instantToNanoseconds(starts_at), instantToNanoseconds(ends_at)]
  if (from !== undefined && to !== undefined && from < to) return undefined
  return `/ends_at: expected an instant after /starts_at, got ${from === to ? 'the same one' : 'an earlier one'}`
}
