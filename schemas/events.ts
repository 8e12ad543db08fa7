/**
 * The data of every event type, by topic. The order of fields here is the canonical order, in which known fields are
 * stored, compared and served.
 */
import Type, { type Static } from 'typebox'
import { LINE_ITEMS_MAX, TRACE_STEPS_MAX } from './limits.ts'
import {
  CalendarDate,
  Currency,
  Id,
  Instant,
  KeyPermission,
  Money,
  Nullable,
  NullableNetworks,
  NullablePersonalText,
  PersonalText,
  Text,
  Timezone,
} from './values.ts'

export const LineItem = Type.Object({
  id: Id('line'),
  category: Type.Union([Type.Literal('earned'), Type.Literal('recovered'), Type.Literal('adjusted')], {
    description: 'Whether the amount was earned, recovered or adjusted.',
  }),
  description: Text,
  amount: Money,
  deal_id: Nullable(Id('deal')),
})

export const TraceStep = Type.Object({
  step: Type.Integer({ minimum: 1, maximum: TRACE_STEPS_MAX, description: 'The number of the step: 1, 2, 3 …' }),
  name: Text,
  strategy: Text,
  strategy_version: Text,
  // Not Type.Record: its pattern `^.*$` does not match a key with a line break, so that the value would not be checked.
  inputs: Type.Unsafe<Record<string, string>>({
    type: 'object',
    additionalProperties: Text,
    propertyNames: Text,
    description: 'The inputs of the step: names, and values as text.',
  }),
  output_amount: Money,
  deal_id: Nullable(Id('deal')),
})

export const RepRecorded = Type.Object({
  org_id: Id('org'),
  id: Id('rep'),
  name: PersonalText,
  email: NullablePersonalText,
  status: Type.Union([Type.Literal('active'), Type.Literal('departed')]),
  started_on: Nullable(CalendarDate),
  departed_on: Nullable(CalendarDate),
})

export const PeriodRecorded = Type.Object({
  org_id: Id('org'),
  id: Id('period'),
  kind: Type.Union([Type.Literal('month'), Type.Literal('quarter'), Type.Literal('year')]),
  name: Text,
  timezone: Timezone,
  starts_at: Instant,
  ends_at: Instant,
})

const payoutFields = {
  org_id: Id('org'),
  id: Id('payout'),
  rep_id: Id('rep'),
  period_id: Id('period'),
  supersedes_id: Nullable(Id('payout')),
  currency: Currency,
  net_amount: Money,
  earned_amount: Money,
  line_items: Type.Array(LineItem, { maxItems: LINE_ITEMS_MAX }),
}

export const PayoutCalculated = Type.Object({
  ...payoutFields,
  calculation_trace: Type.Array(TraceStep, { maxItems: TRACE_STEPS_MAX }),
  calculated_at: Instant,
})

export const PayoutRecorded = Type.Object({ ...payoutFields, recorded_at: Instant })

export const Destination = Type.Object({
  type: Type.Union([Type.Literal('bank_account'), Type.Literal('payroll_provider'), Type.Literal('other')]),
  label: PersonalText,
})

export const PayrollRecorded = Type.Object({
  org_id: Id('org'),
  id: Id('payroll'),
  rep_id: Id('rep'),
  period_id: Id('period'),
  payout_id: Nullable(Id('payout')),
  amount: Money,
  currency: Currency,
  destination: Destination,
  recorded_at: Instant,
})

export const PayrollVoided = Type.Object({
  org_id: Id('org'),
  id: Id('payroll'),
  reverses_id: Id('payroll'),
  amount: Money,
  currency: Currency,
  recorded_at: Instant,
})

const keyNames = {
  org_id: Id('org'),
  id: Id('key'),
  name: Text,
  secret_sha256: Type.String({
    pattern: '^[0-9a-f]{64}$',
    description: 'SHA-256 of the whole key text, 64 lower-case hex digits.',
  }),
  last4: Type.String({ pattern: '^[0-9A-Za-z_-]{4}$', description: 'The last four characters of the key text.' }),
}

export const ApiKeyCreated = Type.Object({
  ...keyNames,
  permissions: Type.Array(KeyPermission, {
    description: 'What the key may read: a set. `read` stands for everything. An empty set permits nothing.',
  }),
  created_at: Instant,
  // Absent and null mean the same, so that events from before this field keep their meaning and their hash.
  expires_at: Type.Optional({
    ...Nullable(Instant),
    description: 'The API refuses the key from this RFC 3339 instant on. Absent or null: the key does not expire.',
  }),
  allowed_networks: Type.Optional({
    ...NullableNetworks,
    description: [
      'The API refuses the key from an address outside these networks.',
      'An IPv4 address in IPv6 form counts as IPv4. Absent or null: the key works from everywhere.',
    ].join(' '),
  }),
})

/** The data of `commission.api_key.created.v1` under the first version of the rules for keys. */
export const ApiKeyCreatedAtFirst = Type.Object({
  ...keyNames,
  permissions: Type.Array(Type.Literal('read')),
  created_at: Instant,
  // That version does not know networks: without this line, the key would work from everywhere.
  allowed_networks: Type.Optional(Type.Null()),
})

export const ApiKeyRevoked = Type.Object({ org_id: Id('org'), id: Id('key'), revoked_at: Instant })

/** The events of each topic: CloudEvents type → schema of the data. */
export const eventSchemas = {
  events: {
    'commission.rep.recorded.v1': RepRecorded,
    'commission.period.recorded.v1': PeriodRecorded,
    'commission.payout.calculated.v1': PayoutCalculated,
    'commission.payout.recorded.v1': PayoutRecorded,
    'commission.payroll.recorded.v1': PayrollRecorded,
    'commission.payroll.voided.v1': PayrollVoided,
  },
  'api-keys': {
    'commission.api_key.created.v1': ApiKeyCreated,
    'commission.api_key.revoked.v1': ApiKeyRevoked,
  },
} as const

/** One of the two topics: commission events or API keys. */
export type Stream = keyof typeof eventSchemas

type EventsOf<Schemas extends Record<string, Type.TSchema>> = {
  [Name in keyof Schemas & string]: { readonly type: Name; readonly data: Static<Schemas[Name]> }
}[keyof Schemas & string]

/** An event of the commission topic with valid data. */
export type CommissionEvent = EventsOf<(typeof eventSchemas)['events']>
/** An event of the API key topic with valid data. */
export type ApiKeyEvent = EventsOf<(typeof eventSchemas)['api-keys']>
export type AnyEvent = CommissionEvent | ApiKeyEvent
export type EventType = AnyEvent['type']

export const schemaOfType: Readonly<Record<EventType, Type.TSchema>> = {
  ...eventSchemas.events,
  ...eventSchemas['api-keys'],
}

export type LineItem = Static<typeof LineItem>
export type TraceStep = Static<typeof TraceStep>
export type RepData = Static<typeof RepRecorded>
export type PeriodData = Static<typeof PeriodRecorded>
export type PayoutCalculatedData = Static<typeof PayoutCalculated>
export type PayoutRecordedData = Static<typeof PayoutRecorded>
export type PayrollRecordedData = Static<typeof PayrollRecorded>
export type PayrollVoidedData = Static<typeof PayrollVoided>
export type ApiKeyCreatedData = Static<typeof ApiKeyCreated>
export type ApiKeyRevokedData = Static<typeof ApiKeyRevoked>
