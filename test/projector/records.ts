/** Records as the consumer delivers them, by default in binary mode. */
import { type Assessed, assess as assessRecord } from '../../core/ledger/decide/project.ts'
import { decode, type RawRecord } from '../../core/ledger/event/decode.ts'
import type { PartitionSource } from '../../core/ledger/event/validate.ts'
import { builtInRules } from '../../core/ledger/rules/rules.ts'
import { encodeHeaders } from '../../core/log/kafka/encoded-headers.ts'
import type { EventType } from '../../schemas/events.ts'

export type Headers = readonly (readonly [name: string, value: string | Buffer | null])[]

export const binaryHeaders = (type: string): Headers => [
  ['content-type', 'application/json'],
  ['ce_specversion', '1.0'],
  ['ce_id', 'event-1'],
  ['ce_type', type],
  ['ce_source', '/payouts'],
]

const bytes = (value: string | Buffer | null): Buffer | null => (typeof value === 'string' ? Buffer.from(value) : value)

type RecordParts = {
  readonly offset?: number
  readonly timestamp?: number
  readonly key?: string | Buffer | null
  readonly value?: string | Buffer | null
  readonly headers?: Headers
}

export const record = ({
  offset = 0,
  timestamp = 0,
  key = 'org_1',
  value = '{}',
  headers = [],
}: RecordParts): RawRecord => ({
  offset,
  timestamp,
  key: bytes(key),
  value: bytes(value),
  headers: encodeHeaders(headers.map(([name, header]) => [name, bytes(header)])),
})

export type Event = { readonly type: EventType; readonly data: { readonly org_id: string } }

export const eventRecord = ({ type, data }: Event, offset = 0, timestamp = 0): RawRecord =>
  record({ offset, timestamp, key: data.org_id, value: JSON.stringify(data), headers: binaryHeaders(type) })

/** Assesses a record without any other: the first stages of the flow. */
export const assess = (record: RawRecord, source: PartitionSource): Assessed =>
  assessRecord(record, { decode, source, rules: builtInRules })
