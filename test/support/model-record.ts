/** The contract for a single record, written from the documents. Shares only the time zones with the projector. */
import { isIP, isIPv4 } from 'node:net'
import kafkajs from 'kafkajs'
import { type Json, type JsonObject, parseJson } from './model-json.ts'
import {
  type Check,
  isCurrency,
  isDate,
  isId,
  isInstant,
  isLast4,
  isMoney,
  isNullOr,
  isOneOf,
  isPersonalText,
  isSha256,
  isText,
  isTimezone,
  nanoseconds,
  sumsTo,
} from './model-values.ts'

export type ModelStream = 'events' | 'api-keys'

export type ModelRecord = {
  readonly offset: number
  readonly key: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
  readonly value: Buffer | null
}

/** An event that keeps all rules for a single record. `text` is equal for equal events, whatever their format. */
export type ModelEvent = { readonly type: string; readonly org: string; readonly data: Data; readonly text: string }
/** The known fields. Amounts, ids and texts are strings; absent optional fields are null. */
export type Data = Readonly<Record<string, Plain>>
export type Plain = null | string | number | readonly Plain[] | { readonly [name: string]: Plain }

export type Refused =
  | 'batch_undecodable'
  | 'record_undecodable'
  | 'type_unknown'
  | 'data_invalid'
  | 'org_mismatch'
  | 'partition_mismatch'
  | 'lines_do_not_sum'

/** Returns the event, or the first matching code of the contract's table. */
export const readRecord = (
  record: ModelRecord,
  stream: ModelStream,
  partition: number,
  partitions: number,
): ModelEvent | Refused => {
  const envelope = openEnvelope(record)
  if (envelope === undefined) return isOfBatch(record) ? 'batch_undecodable' : 'record_undecodable'
  const { type, json } = envelope
  const fields = types[stream].get(type)
  if (fields === undefined) return 'type_unknown'
  const data = pick(json, fields)
  if (data === undefined || !keepsRules(data)) return 'data_invalid'
  const org = String(data.org_id)
  if (record.key === null || !record.key.equals(Buffer.from(org))) return 'org_mismatch'
  if (stream === 'events' && partitionOf(org, partitions) !== partition) return 'partition_mismatch'
  if ('net_amount' in data) {
    const amounts = rows(data.line_items).map(line => String(line.amount))
    if (!sumsTo(amounts, String(data.net_amount))) return 'lines_do_not_sum'
  }
  return { type, org, data, text: `${type} ${JSON.stringify(data)}` }
}

/** Whether a record stands for an offset of a batch that nobody can read. */
const isOfBatch = ({ headers, offset }: ModelRecord): boolean => {
  const texts = headers.flatMap(([name, value]) => (name === 'commission-undecodable-batch' ? [utf8(value) ?? ''] : []))
  const [first, last, codec, reason, ...more] = texts[0]?.split(' ') ?? []
  const isNumber = (text = ''): boolean => /^[0-9]{1,16}$/.test(text)
  const isWhole = texts.length === 1 && more.length === 0 && isNumber(first) && isNumber(last)
  if (!isWhole || !/^[0-9]$/.test(codec ?? '') || !reasons.includes(reason ?? '')) return false
  return Number(first) <= offset && offset <= Number(last)
}
const reasons = [
  ...['not_decompressed', 'too_large', 'record_too_large', 'records_malformed', 'count_wrong', 'codec_unknown'],
]

const partitioner = kafkajs.Partitioners.DefaultPartitioner()

/** Returns the partition of an organization by Kafka's default partitioner. */
export const partitionOf = (org: string, partitions: number): number =>
  partitioner({
    topic: '',
    partitionMetadata: Array.from({ length: partitions }, (_, partitionId) => ({
      partitionErrorCode: 0,
      partitionId,
      leader: 0,
      replicas: [],
      isr: [],
    })),
    message: { key: org, value: null },
  })

// --- the envelope

const LEVELS = 32
const VALUE_BYTES = 8 * 1024 * 1024

const openEnvelope = (record: ModelRecord): { type: string; json: Json | undefined } | undefined => {
  const contentTypes = record.headers.filter(([name]) => name === 'content-type').map(([, value]) => utf8(value))
  if (contentTypes.length > 1) return undefined
  const [contentType] = contentTypes.length === 0 ? ['application/json'] : contentTypes
  const text = utf8(record.value)
  if ((record.value?.length ?? 0) > VALUE_BYTES || text === undefined || contentType === undefined) return undefined
  if (isMedia(contentType, 'application/json')) return openBinary(record, text)
  if (isMedia(contentType, 'application/cloudevents+json')) return openStructured(text)
  return undefined
}

const openBinary = ({ headers }: ModelRecord, text: string) => {
  const attributes = new Map<string, string | undefined>()
  for (const name of ['specversion', 'id', 'type', 'source', 'time']) {
    const values = headers.filter(([candidate]) => candidate === `ce_${name}`).map(([, value]) => utf8(value))
    if (values.length > 1 || (values.length === 1 && values[0] === undefined)) return undefined
    if (values.length === 1) attributes.set(name, values[0])
  }
  const parsed = parseJson(text, LEVELS)
  if (parsed === undefined || !areAttributes(attributes)) return undefined
  return { type: String(attributes.get('type')), json: parsed.json }
}

const openStructured = (text: string) => {
  const event = parseJson(text, LEVELS + 1)?.json
  if (!(event instanceof Map) || !areAttributes(event)) return undefined
  const dataType = event.get('datacontenttype') ?? 'application/json'
  if (typeof dataType !== 'string' || !isMedia(dataType, 'application/json')) return undefined
  return { type: String(event.get('type')), json: event.get('data') }
}

const areAttributes = (attributes: ReadonlyMap<string, Json | undefined>): boolean => {
  const time = attributes.get('time') ?? null
  return (
    attributes.get('specversion') === '1.0' &&
    isCloudString(attributes.get('id')) &&
    isCloudString(attributes.get('type')) &&
    isUriReference(attributes.get('source')) &&
    (time === null || isCloudTime(time))
  )
}

const isCloudString: Check = json =>
  typeof json === 'string' && json !== '' && json.isWellFormed() && !/\p{Cc}/u.test(json)
const isUriReference: Check = json =>
  typeof json === 'string' && /^(?:%[0-9A-Fa-f]{2}|[\w.~!$&'()*+,;=:@/?#[\]-])+$/.test(json)
const isCloudTime: Check = json =>
  typeof json === 'string' &&
  isDate(json.slice(0, 10)) &&
  /^[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/.test(json.slice(10))

const isMedia = (text: string, type: string): boolean => text.replace(/;.*$/s, '').trim().toLowerCase() === type

const utf8 = (bytes: Buffer | null): string | undefined => {
  try {
    return bytes === null ? undefined : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

// --- the data

/** A field has a check, or is a list of objects, an object, or a map of texts. */
type Field =
  | Check
  | { readonly rows: Fields; readonly most: number }
  | { readonly object: Fields }
  | { readonly optional: Check }
  | 'texts'
type Fields = Readonly<Record<string, Field>>

const lineItem: Fields = {
  id: isId('line'),
  category: isOneOf('earned', 'recovered', 'adjusted'),
  description: isText,
  amount: isMoney,
  deal_id: isNullOr(isId('deal')),
}

const traceStep: Fields = {
  step: json => typeof json === 'number' && Number.isInteger(json),
  name: isText,
  strategy: isText,
  strategy_version: isText,
  inputs: 'texts',
  output_amount: isMoney,
  deal_id: isNullOr(isId('deal')),
}

const payout: Fields = {
  org_id: isId('org'),
  id: isId('payout'),
  rep_id: isId('rep'),
  period_id: isId('period'),
  supersedes_id: isNullOr(isId('payout')),
  currency: isCurrency,
  net_amount: isMoney,
  earned_amount: isMoney,
  line_items: { rows: lineItem, most: 10_000 },
}

const ofEvents: Readonly<Record<string, Fields>> = {
  'commission.rep.recorded.v1': {
    org_id: isId('org'),
    id: isId('rep'),
    name: isPersonalText,
    email: isNullOr(isPersonalText),
    status: isOneOf('active', 'departed'),
    started_on: isNullOr(isDate),
    departed_on: isNullOr(isDate),
  },
  'commission.period.recorded.v1': {
    org_id: isId('org'),
    id: isId('period'),
    kind: isOneOf('month', 'quarter', 'year'),
    name: isText,
    timezone: isTimezone,
    starts_at: isInstant,
    ends_at: isInstant,
  },
  'commission.payout.calculated.v1': {
    ...payout,
    calculation_trace: { rows: traceStep, most: 100_000 },
    calculated_at: isInstant,
  },
  'commission.payout.recorded.v1': { ...payout, recorded_at: isInstant },
  'commission.payroll.recorded.v1': {
    org_id: isId('org'),
    id: isId('payroll'),
    rep_id: isId('rep'),
    period_id: isId('period'),
    payout_id: isNullOr(isId('payout')),
    amount: isMoney,
    currency: isCurrency,
    destination: { object: { type: isOneOf('bank_account', 'payroll_provider', 'other'), label: isPersonalText } },
    recorded_at: isInstant,
  },
  'commission.payroll.voided.v1': {
    org_id: isId('org'),
    id: isId('payroll'),
    reverses_id: isId('payroll'),
    amount: isMoney,
    currency: isCurrency,
    recorded_at: isInstant,
  },
}

const isPermission = isOneOf(
  'read',
  'reps:read',
  'periods:read',
  'payouts:read',
  'statements:read',
  'payroll:read',
  'totals:read',
  'changes:read',
)

/** A network in CIDR notation. An IPv6 address must have no zone, and no IPv4 address in it. */
const isNetwork = (json: Json | undefined): boolean => {
  const [, address = '', bits = ''] =
    (typeof json === 'string' && /^([0-9A-Fa-f.:]+)\/(0|[1-9][0-9]*)$/.exec(json)) || []
  const isMixed = address.includes(':') && address.includes('.')
  return !isMixed && isIP(address) !== 0 && Number(bits) <= (isIPv4(address) ? 32 : 128)
}

const ofApiKeys: Readonly<Record<string, Fields>> = {
  'commission.api_key.created.v1': {
    org_id: isId('org'),
    id: isId('key'),
    name: isText,
    secret_sha256: isSha256,
    last4: isLast4,
    permissions: json => Array.isArray(json) && json.every(isPermission),
    created_at: isInstant,
    expires_at: { optional: isInstant },
    allowed_networks: {
      optional: json => Array.isArray(json) && json.length >= 1 && json.length <= 20 && json.every(isNetwork),
    },
  },
  'commission.api_key.revoked.v1': { org_id: isId('org'), id: isId('key'), revoked_at: isInstant },
}

const types: Readonly<Record<ModelStream, ReadonlyMap<string, Fields>>> = {
  events: new Map(Object.entries(ofEvents)),
  'api-keys': new Map(Object.entries(ofApiKeys)),
}

/** Returns the known fields in the contract's order; undefined if one is missing or invalid. */
const pick = (json: Json | undefined, fields: Fields): Data | undefined => {
  if (!(json instanceof Map)) return undefined
  const picked: [string, Plain][] = []
  for (const [name, field] of Object.entries(fields)) {
    // Absent and null are one event.
    if (isOptional(field) && ((json as JsonObject).get(name) ?? null) === null) continue
    const value = pickField((json as JsonObject).get(name), field)
    if (value === undefined) return undefined
    picked.push([name, value])
  }
  return Object.fromEntries(picked)
}

const isOptional = (field: Field): boolean => typeof field === 'object' && 'optional' in field

const pickField = (json: Json | undefined, field: Field): Plain | undefined => {
  if (typeof field === 'function') return field(json) ? (json as Plain) : undefined
  if (field === 'texts') return pickTexts(json)
  if ('object' in field) return pick(json, field.object)
  if ('optional' in field) return pickField(json, field.optional)
  if (!Array.isArray(json) || json.length > field.most) return undefined
  const items = json.map(item => pick(item, field.rows))
  return items.every(item => item !== undefined) ? items : undefined
}

/** Keeps every key, also the empty one and `__proto__`, sorted. */
const pickTexts = (json: Json | undefined): Plain | undefined => {
  if (!(json instanceof Map)) return undefined
  const entries = [...(json as JsonObject)].sort(([a], [b]) => (a < b ? -1 : 1))
  if (!entries.every(([name, text]) => isText(name) && isText(text))) return undefined
  return Object.fromEntries(entries.map(([name, text]) => [name, String(text)]))
}

/** Casts a list of objects that `pick` returned. */
export const rows = (plain: Plain | undefined): readonly Data[] => (Array.isArray(plain) ? plain : [])

const keepsRules = (data: Data): boolean => {
  const lines = rows(data.line_items).map(line => line.id)
  if (new Set(lines).size !== lines.length) return false
  if (!rows(data.calculation_trace).every(({ step }, place) => step === place + 1)) return false
  if (data.starts_at === undefined) return true
  return (nanoseconds(String(data.starts_at)) ?? 0n) < (nanoseconds(String(data.ends_at)) ?? 0n)
}
