/** Mistakes of a publisher, made on purpose. Each must be parked with its code, and change nothing else. */
import { Decimal } from 'decimal.js'
import type { Message } from 'kafkajs'
import type { ParkCode } from '../../schemas/errors.ts'
import type { EventType } from '../../schemas/events.ts'
import { partitionOf } from '../../schemas/partition.ts'
import { applied, type DemoEvent, type DemoRecord, eventAt, streamOf } from './demo-record.ts'
import type { DemoKey } from './keys.ts'
import { toMessage } from './publish.ts'
import type { Random } from './random.ts'

/** Inputs of mistakes: the id of another organization, and the number of partitions. */
type MistakeInputs = { readonly other: string; readonly partitions: number }
type Fields = Readonly<Record<string, unknown>> & { readonly org_id: string }

type Mistake = {
  readonly code: ParkCode
  /** Type of the event that it is made from. */
  readonly of: EventType
  readonly where?: (data: Fields) => boolean
  /** Before the event, which then corrects it; or after the event, which it contradicts. */
  readonly when: 'before' | 'after'
  readonly data?: (data: Fields, random: Random) => Fields
  readonly record?: (message: Message, inputs: MistakeInputs) => Message
}

const calculated = { of: 'commission.payout.calculated.v1' } as const
const paid = { of: 'commission.payroll.recorded.v1' } as const
const money = (data: Fields, field: string): string => String(data[field])

const mistakes: readonly Mistake[] = [
  { ...calculated, code: 'record_undecodable', when: 'before', record: truncateWithinCharacter },
  { ...calculated, code: 'type_unknown', when: 'before', record: ofType('commission.bonus.recorded.v1') },
  {
    ...calculated,
    code: 'data_invalid',
    when: 'before',
    data: data => ({ ...data, net_amount: Number(data.net_amount) }),
  },
  {
    ...calculated,
    code: 'org_mismatch',
    when: 'before',
    record: (message, { other }) => ({ ...message, key: other }),
  },
  { ...calculated, code: 'partition_mismatch', when: 'before', record: inAnotherPartition },
  {
    ...calculated,
    code: 'lines_do_not_sum',
    when: 'before',
    data: data => ({ ...data, net_amount: new Decimal(money(data, 'net_amount')).plus('0.01').toFixed(2) }),
  },
  {
    ...calculated,
    code: 'id_reused',
    when: 'after',
    data: data => ({ ...data, earned_amount: `${money(data, 'earned_amount')}0` }),
  },
  {
    of: 'commission.period.recorded.v1',
    code: 'period_changed',
    when: 'after',
    data: data => ({ ...data, timezone: 'Pacific/Auckland' }),
  },
  { ...calculated, code: 'rep_unknown', when: 'before', data: (data, { id }) => ({ ...data, rep_id: id('rep') }) },
  {
    ...calculated,
    code: 'period_unknown',
    when: 'before',
    data: (data, { id }) => ({ ...data, period_id: id('period') }),
  },
  {
    // Two calculations that replace the same payout: the second one is too late.
    ...calculated,
    code: 'supersedes_mismatch',
    where: data => data.supersedes_id !== null,
    when: 'after',
    data: (data, { id }) => ({ ...data, id: id('payout') }),
  },
  { ...paid, code: 'payout_mismatch', when: 'before', data: (data, { id }) => ({ ...data, payout_id: id('payout') }) },
  {
    ...paid,
    code: 'payroll_already_recorded',
    when: 'after',
    data: (data, { id }) => ({ ...data, id: id('payroll') }),
  },
  {
    of: 'commission.payroll.voided.v1',
    code: 'payroll_reversal_invalid',
    when: 'after',
    data: (data, { id }) => ({ ...data, id: id('payroll') }),
  },
]

function truncateWithinCharacter(message: Message): Message {
  return { ...message, value: Buffer.concat([Buffer.from(String(message.value)).subarray(0, -1), Buffer.of(0xc3)]) }
}
function ofType(type: string): (message: Message) => Message {
  return message => ({ ...message, headers: { ...message.headers, ce_type: type } })
}
function inAnotherPartition(message: Message, { partitions }: MistakeInputs): Message {
  return { ...message, partition: (partitionOf(String(message.key), partitions) + 1) % partitions }
}

/** The events as they are published: every mistake once, and some events twice. */
export const withMistakes = (events: readonly DemoEvent[], inputs: MistakeInputs, random: Random): DemoRecord[] => {
  const before = new Map<DemoEvent, DemoRecord[]>()
  const after = new Map<DemoEvent, DemoRecord[]>()
  for (const mistake of mistakes) {
    const { of, where = () => true, when } = mistake
    const event = random.pick(events.filter(({ type, data }) => type === of && where(data)))
    const around = when === 'before' ? before : after
    around.set(event, [...(around.get(event) ?? []), make(mistake, event, inputs, random)])
  }
  const correct = new Map(events.map(event => [toMessage(event).headers?.ce_id, event]))
  return withDuplicates(events, random).flatMap(sent => {
    const event = sent.outcome === 'applied' ? correct.get(sent.message.headers?.ce_id) : undefined
    return event === undefined ? [sent] : [...(before.get(event) ?? []), sent, ...(after.get(event) ?? [])]
  })
}

const make = (mistake: Mistake, event: DemoEvent, inputs: MistakeInputs, random: Random): DemoRecord => {
  const { code, data = same, record = same } = mistake
  const changed = { ...event, id: `${event.id}-${code}`, data: data(event.data, random) }
  return { stream: streamOf(event), message: record(toMessage(changed), inputs), outcome: code }
}

const same = <Value>(value: Value): Value => value

const DUPLICATES = 12

/**
 * Sends some events again: as a retry does, or in another envelope and spacing, as a publisher that starts over does.
 */
export const withDuplicates = (events: readonly DemoEvent[], random: Random): DemoRecord[] => {
  const again = new Set(Array.from({ length: DUPLICATES }, () => random.pick(events)))
  return events.flatMap((event, index) => {
    if (!again.has(event)) return [applied(event)]
    const message = toMessage(event)
    const rewritten = {
      ...message,
      headers: { ...message.headers, ce_id: `${event.id}-again` },
      value: JSON.stringify(event.data, undefined, 2),
    }
    return [
      applied(event),
      { stream: streamOf(event), message: index % 2 === 0 ? message : rewritten, outcome: 'duplicate' },
    ]
  })
}

/** An organization revokes a key that it never had, and creates a key with the secret of another organization's key. */
export const withKeyMistakes = (
  sent: readonly DemoRecord[],
  others: { readonly reading: DemoKey },
  random: Random,
): DemoRecord[] => {
  const first = sent[0]?.message
  const org_id = String(first?.key)
  const at = others.reading.data.created_at
  const unknown = { org_id, id: random.id('key'), revoked_at: at }
  const stolen = { ...others.reading.data, org_id, id: random.id('key') }
  const bad = (code: ParkCode, event: Parameters<typeof eventAt>[2]): DemoRecord => ({
    stream: 'api-keys',
    message: toMessage(eventAt(Date.parse(at), code, event)),
    outcome: code,
  })
  return [
    ...sent,
    bad('key_unknown', { type: 'commission.api_key.revoked.v1', data: unknown }),
    bad('id_reused', { type: 'commission.api_key.created.v1', data: stolen }),
  ]
}
