/**
 * The records of the API and the shape of its answers, built from the values and fields of the events. The order of
 * fields here is the order in answers.
 */
import Type, { type Static } from 'typebox'
import { refusals } from './errors.ts'
import {
  LineItem,
  PayoutCalculated,
  PeriodRecorded,
  Destination as PublishedDestination,
  RepRecorded,
  TraceStep,
} from './events.ts'
import { keysOf } from './objects.ts'
import { Currency, Id, Instant, idPattern, Money, Nullable, Sum, Text } from './values.ts'

/** Marks beside texts that were published sealed. They are absent in nearly all records. */
const marks = {
  erased: Type.Optional(
    Type.Literal(true, {
      description: [
        'Present if the key of a sealed text was destroyed.',
        'The person was forgotten: the text is lost for ever, and the field is null,',
        'or empty where it may not be null.',
      ].join(' '),
    }),
  ),
  unreadable: Type.Optional(
    Type.Literal(true, {
      description: [
        'Present if a sealed text does not open with its key, so that its content is not known:',
        'the publisher sealed it wrongly, or for another field.',
        'The field is null, or empty where it may not be null.',
      ].join(' '),
    }),
  ),
}

const rep = RepRecorded.properties
export const Rep = Type.Object(
  {
    id: rep.id,
    name: {
      ...Text,
      description: 'Its text, opened if it was published sealed. Empty if `erased` or `unreadable`.',
    },
    email: {
      ...Nullable(Text),
      description:
        'Its text, opened if it was published sealed. Null if there is none, or if `erased` or `unreadable`.',
    },
    status: rep.status,
    started_on: rep.started_on,
    departed_on: rep.departed_on,
    ...marks,
  },
  { description: 'A sales rep. Departed reps stay readable, because older payouts name them.' },
)

const period = PeriodRecorded.properties
export const Period = Type.Object(
  {
    id: period.id,
    kind: period.kind,
    name: period.name,
    timezone: period.timezone,
    starts_at: period.starts_at,
    ends_at: period.ends_at,
  },
  {
    description: [
      'A commission period, from `starts_at` (included) to `ends_at` (excluded). Both were decided in `timezone`.',
      'They tell on which side of a boundary a deal falls.',
    ].join(' '),
  },
)

const payoutFields = {
  id: Id('payout'),
  rep_id: Id('rep'),
  period_id: Id('period'),
  net_amount: {
    ...Money,
    description: 'The amount owed. The sum over the list of payouts counts each amount owed once.',
  },
  earned_amount: {
    ...Money,
    description:
      'The amount that the period earned. It already counts recovered amounts and corrections to earlier months.',
  },
  currency: Currency,
  supersedes_id: {
    ...PayoutCalculated.properties.supersedes_id,
    description: 'The payout that this one replaced; null on a first calculation.',
  },
  superseded_by_id: {
    ...Nullable(Id('payout')),
    description:
      'The payout that replaced this one; null on a current payout. In `/changes` always null: nothing had replaced it then.',
  },
  calculated_at: { ...Nullable(Instant), description: 'When it was calculated; null if it was only recorded.' },
  recorded_at: { ...Nullable(Instant), description: 'When it was recorded; null if it was calculated.' },
  line_items: {
    ...Type.Array(LineItem),
    description: [
      'The amounts that were earned, recovered and adjusted, each with its deal if there is one.',
      'The amounts add up to `net_amount` exactly.',
    ].join(' '),
  },
}

export const Payout = Type.Object(payoutFields, {
  description:
    'The amount owed to a rep for a period. A recalculation replaces a payout by a new one. A payout is never edited.',
})

export const Statement = Type.Object(
  {
    ...payoutFields,
    calculation_trace_recorded: Type.Boolean({
      description: [
        'Read this before the trace.',
        'If false, the payout was recorded, not calculated here:',
        'its empty trace does not mean that no deal contributed.',
      ].join(' '),
    }),
    calculation_trace: {
      ...Type.Array(TraceStep),
      description: 'All steps in order. For the amount paid, add the line items, not the steps.',
    },
  },
  { description: 'A payout with the whole trace of its calculation, as the rep sees it.' },
)

const Destination = Type.Object({
  type: PublishedDestination.properties.type,
  label: {
    ...Text,
    description: 'Its text, opened if it was published sealed. Empty if `erased` or `unreadable`.',
  },
  ...marks,
})

export const PayrollRecord = Type.Object(
  {
    id: Id('payroll'),
    rep_id: Id('rep'),
    period_id: Id('period'),
    payout_id: Nullable(Id('payout')),
    reverses_id: {
      ...Nullable(Id('payroll')),
      description: 'On a void, the record that it reverses; null on a payment.',
    },
    amount: {
      ...Money,
      description: [
        'The amount that has left; on a void, the reversed amount with the opposite sign.',
        'The sum over all records is the amount that was actually paid.',
      ].join(' '),
    },
    currency: Currency,
    destination: { ...Destination, description: 'Where the money went.' },
    recorded_at: Instant,
  },
  { description: 'Money that has left, or the reversal of such a record.' },
)

/** The id of a change: the id of its record, and for reps and periods the version, since they keep one id. */
export const changePattern = `${idPattern('payout')}|${idPattern('payroll')}|^(?:rep|period)_[0-9A-Za-z]{1,64}\\.[1-9][0-9]{0,8}$`
const ChangeId = Type.String({
  pattern: changePattern,
  description:
    'The id of the record. For a rep or a period, `.n` follows for version n. Valid as `as_of` and as `starting_after` without a time limit, unless new rules refuse its record.',
})

const changeFields = {
  id: ChangeId,
  sequence: Type.Integer({
    minimum: 1,
    description:
      'How many changes the organization has up to this one: 1, 2, 3 and so on, without a gap. After new rules or a loss of records, a change can have another one.',
  }),
  published_at: {
    ...Instant,
    description:
      'When it was published: the time of its event in Kafka. If clocks of publishers are wrong, it can be earlier than that of the change before.',
  },
  supersedes_id: {
    ...Nullable(ChangeId),
    description: 'The change whose record this one replaced; null if it replaced none.',
  },
  reverses_id: { ...Nullable(Id('payroll')), description: 'On a void, the payroll record that it reverses.' },
}
const changeOf = <Kind extends string, Record extends Type.TSchema>(kind: Kind, record: Record) =>
  Type.Object({
    id: changeFields.id,
    kind: Type.Literal(kind, { description: 'The list that the record is in.' }),
    sequence: changeFields.sequence,
    published_at: changeFields.published_at,
    supersedes_id: changeFields.supersedes_id,
    reverses_id: changeFields.reverses_id,
    record,
  })

const RepChange = changeOf('reps', Rep)
const PeriodChange = changeOf('periods', Period)
const PayoutChange = changeOf('payouts', Payout)
const PayrollChange = changeOf('payroll_files', PayrollRecord)
export const Change = Type.Union([RepChange, PeriodChange, PayoutChange, PayrollChange], {
  description: 'One change: a record as it was right after the change, and the change that it replaced.',
})

const LineItemChange = Type.Object({ before: LineItem, after: LineItem })

export const Difference = Type.Object(
  {
    net_amount: { ...Nullable(Sum), description: 'The amount added to `net_amount`; null if the currency changed.' },
    earned_amount: {
      ...Nullable(Sum),
      description: 'The amount added to `earned_amount`; null if the currency changed.',
    },
    line_items_added: Type.Array(LineItem, { description: 'Lines whose ids the previous payout does not have.' }),
    line_items_removed: Type.Array(LineItem, {
      description: 'Lines of the previous payout whose ids this one does not have.',
    }),
    line_items_changed: Type.Array(LineItemChange, {
      description: 'Lines of both payouts with the same id and different content.',
    }),
  },
  {
    description: [
      'The changes from the previous payout to this one.',
      'Lines are compared without the currency of their payouts: where it changed, `net_amount` is null, and no amounts can be compared.',
    ].join(' '),
  },
)

export const PayoutStep = Type.Object(
  {
    ...payoutFields,
    difference: Type.Union([Difference, Type.Null()], {
      description: 'The changes from the payout that this one replaced; null on the first.',
    }),
  },
  { description: 'One of the payouts of a rep for a period.' },
)

const Total = Type.Object({
  period_id: Id('period'),
  currency: Currency,
  owed_amount: { ...Sum, description: 'The sum of `net_amount` over the list of payouts, without trailing zeros.' },
  owed_count: Type.Integer({ minimum: 0, description: 'The number of these payouts.' }),
  paid_amount: {
    ...Sum,
    description: 'The sum of `amount` over the list of payroll records, voids too, without trailing zeros.',
  },
  paid_count: Type.Integer({ minimum: 0, description: 'The number of these payroll records.' }),
  open_amount: {
    ...Sum,
    description: [
      '`owed_amount` less `paid_amount`, exactly, without trailing zeros: what is still to be paid.',
      'Negative if more was paid than is owed.',
      'A payment in another currency than the payout counts in the row of its own currency.',
    ].join(' '),
  },
})

const LineTotal = Type.Object({
  period_id: Id('period'),
  currency: Currency,
  category: LineItem.properties.category,
  amount: {
    ...Sum,
    description: 'The sum of `amount` over the lines of the deal in the list of payouts, without trailing zeros.',
  },
  line_count: Type.Integer({ minimum: 1, description: 'The number of these lines.' }),
})

export const Totals = Type.Object(
  {
    last_change_id: {
      ...Nullable(ChangeId),
      description: [
        'The last change that these totals include.',
        'Send it as `as_of` to the lists and as `starting_after` to the changes. Null if there is none yet.',
      ].join(' '),
    },
    last_sequence: Type.Integer({
      minimum: 0,
      description: [
        'The `sequence` of the last change: how many changes the organization has. 0 if there is none yet.',
        'The latest 50 changes are at `/changes?after=` this number less 50, or 0 if that is negative.',
      ].join(' '),
    }),
    totals: Type.Array(Total, {
      description: 'Ordered by period id and currency. Empty with `deal_id`: no payment is for a deal.',
    }),
    line_totals: Type.Optional(
      Type.Array(LineTotal, {
        description: [
          'Present with `deal_id`, and only then: the sums of the lines of this deal in current payouts.',
          'Ordered by period id, currency and category. Empty if no current payout has a line of it.',
        ].join(' '),
      }),
    ),
  },
  { description: 'Amounts owed, paid and open, by period and currency, at one moment.' },
)
export type Totals = Static<typeof Totals>

export const Checkpoint = Type.Object(
  {
    note: Type.String({
      description: [
        'A signed note (C2SP, Ed25519): lines of text, an empty line, and the signature.',
        'The text names the organization, the version of the rules, the last sequence and change,',
        'a digest over all changes, and amounts owed, paid and open by currency.',
        'Check the signature with the public key of the service before you read it.',
      ].join(' '),
    }),
  },
  { description: 'A signed statement of all changes of the organization up to one of them. A copy is proved with it.' },
)

/** The records of each list and of each path with an id, by their name in the OpenAPI document. */
export const resources = {
  Rep,
  Period,
  Payout,
  Statement,
  PayrollRecord,
  PayoutStep,
  Change,
  Totals,
  Checkpoint,
} as const
export type ResourceName = keyof typeof resources

/** Parts of records that the OpenAPI document names. A client generator makes one type of each. */
export const resourceParts = {
  LineItem,
  TraceStep,
  Destination,
  Difference,
  LineItemChange,
  Total,
  LineTotal,
  RepChange,
  PeriodChange,
  PayoutChange,
  PayrollChange,
} as const

/** `{error: {code, message}}`: the shape of every refusal. */
export const Refused = Type.Object(
  {
    error: Type.Object({
      code: Type.Union(
        keysOf(refusals).map(code => Type.Literal(code)),
        { description: 'New codes can come at any time: go by the HTTP status of a code that you do not know.' },
      ),
      message: Type.String({ description: 'For people. The text may change; `code` does not.' }),
    }),
  },
  { description: 'Every refusal has this shape.' },
)
