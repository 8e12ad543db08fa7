/**
 * What comes out: the records of the API and the shapes they are answered in, from the same values and fields as the
 * events they were made of. The order of the fields is that of the answers.
 */
import Type, { type Static } from 'typebox'
import { type RefusalCode, refusals } from './errors.ts'
import { Destination, LineItem, PayoutCalculated, PeriodRecorded, RepRecorded, TraceStep } from './events.ts'
import { Currency, Id, Instant, idPattern, Money, Nullable, Sum } from './values.ts'

const rep = RepRecorded.properties
export const Rep = Type.Object(
  {
    id: rep.id,
    name: rep.name,
    email: rep.email,
    status: rep.status,
    started_on: rep.started_on,
    departed_on: rep.departed_on,
  },
  { description: 'A sales rep. One who has left stays, so that a rep named on an older payout can always be read.' },
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
    description:
      'A commission period: from `starts_at` until just before `ends_at`, as decided in `timezone`, so that it can be told on which side of a boundary a deal fell.',
  },
)

const payoutFields = {
  id: Id('payout'),
  rep_id: Id('rep'),
  period_id: Id('period'),
  net_amount: { ...Money, description: 'What is owed. Summed over the list of payouts it says what is owed, once.' },
  earned_amount: {
    ...Money,
    description:
      'What the period earned, with anything recovered and any correction to an earlier month already counted.',
  },
  currency: Currency,
  supersedes_id: {
    ...PayoutCalculated.properties.supersedes_id,
    description: 'The payout that this one replaced; null on a first calculation.',
  },
  superseded_by_id: {
    ...Nullable(Id('payout')),
    description: 'The payout that replaced this one; null on a current payout.',
  },
  calculated_at: { ...Nullable(Instant), description: 'When it was calculated; null where it was only recorded.' },
  recorded_at: { ...Nullable(Instant), description: 'When it was recorded; null where it was calculated.' },
  line_items: {
    ...Type.Array(LineItem),
    description:
      'What the rep earned, what was recovered and what was adjusted, each with the deal it came from where there is one. The amounts add up to `net_amount` exactly.',
  },
}

export const Payout = Type.Object(payoutFields, {
  description: 'What is owed to a rep for a period. A recalculation replaces a payout by a new one; it never edits it.',
})

export const Statement = Type.Object(
  {
    ...payoutFields,
    calculation_trace_recorded: Type.Boolean({
      description:
        'Read this before the trace: false says that the payout was recorded rather than calculated here; its empty trace does not say that no deal contributed.',
    }),
    calculation_trace: {
      ...Type.Array(TraceStep),
      description: 'Every step taken, in order. To find what is paid, add the line items, not the steps.',
    },
  },
  { description: 'A payout with the whole trace of its calculation, the one the rep sees.' },
)

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
      description:
        'The amount that has left; on a void, the reversed amount with the opposite sign. Summed over all records it says what was actually paid.',
    },
    currency: Currency,
    destination: { ...Destination, description: 'Where the money went.' },
    recorded_at: Instant,
  },
  { description: 'Money that has left, or the reversal of such a record.' },
)

/** What names a change: its record, and of reps and periods, which are replaced under one id, the version. */
export const changePattern = `${idPattern('payout')}|${idPattern('payroll')}|^(?:rep|period)_[0-9A-Za-z]{1,64}\\.[1-9][0-9]{0,8}$`
const ChangeId = Type.String({
  pattern: changePattern,
  description:
    'The id of its record; of a rep or a period with `.n` for its n-th version. Good as `as_of` and as `starting_after` for ever.',
})

const changeFields = {
  id: ChangeId,
  published_at: { ...Instant, description: 'When it was published; never earlier than the change before.' },
  supersedes_id: {
    ...Nullable(ChangeId),
    description: 'The change whose record this one replaced; null where it replaced none.',
  },
  reverses_id: { ...Nullable(Id('payroll')), description: 'On a void, the payroll record that it reverses.' },
}
const changeOf = <Kind extends string, Record extends Type.TSchema>(kind: Kind, record: Record) =>
  Type.Object({
    id: changeFields.id,
    kind: Type.Literal(kind, { description: 'The list that the record is in.' }),
    published_at: changeFields.published_at,
    supersedes_id: changeFields.supersedes_id,
    reverses_id: changeFields.reverses_id,
    record,
  })

export const Change = Type.Union(
  [
    changeOf('reps', Rep),
    changeOf('periods', Period),
    changeOf('payouts', Payout),
    changeOf('payroll_files', PayrollRecord),
  ],
  { description: 'One thing that changed: a record, as it was just then, and what it took the place of.' },
)

export const Difference = Type.Object(
  {
    net_amount: { ...Nullable(Sum), description: 'What was added to `net_amount`; null where the currency changed.' },
    earned_amount: {
      ...Nullable(Sum),
      description: 'What was added to `earned_amount`; null where the currency changed.',
    },
    line_items_added: Type.Array(LineItem, { description: 'Lines whose ids the payout before does not have.' }),
    line_items_removed: Type.Array(LineItem, {
      description: 'Lines of the payout before whose ids this one does not have.',
    }),
    line_items_changed: Type.Array(Type.Object({ before: LineItem, after: LineItem }), {
      description: 'Lines that both have, by their ids, with something else in them.',
    }),
  },
  { description: 'What changed from the payout before to this one.' },
)

export const PayoutStep = Type.Object(
  {
    ...payoutFields,
    difference: Type.Union([Difference, Type.Null()], {
      description: 'What changed from the payout that this one replaced; null on the first.',
    }),
  },
  { description: 'A payout among those of one rep for one period.' },
)

export const Totals = Type.Object(
  {
    last_change_id: {
      ...Nullable(ChangeId),
      description:
        'The change up to which these totals count, to send as `as_of` to the lists and as `starting_after` to the changes; null where there is none yet.',
    },
    totals: Type.Array(
      Type.Object({
        period_id: Id('period'),
        currency: Currency,
        owed_amount: { ...Sum, description: 'The sum of `net_amount` over the list of payouts.' },
        owed_count: Type.Integer({ minimum: 0, description: 'How many payouts these are.' }),
        paid_amount: { ...Sum, description: 'The sum of `amount` over the list of payroll records, voids too.' },
        paid_count: Type.Integer({ minimum: 0, description: 'How many payroll records these are.' }),
      }),
      { description: 'In order of period id and currency.' },
    ),
  },
  { description: 'What is owed and what has left, by period and currency, at one moment.' },
)
export type Totals = Static<typeof Totals>

/** The records of each list, and of each path with an id, by the name they have in the OpenAPI document. */
export const resources = {
  Rep,
  Period,
  Payout,
  Statement,
  PayrollRecord,
  PayoutStep,
  Change,
  Totals,
} as const
export type ResourceName = keyof typeof resources

/** `{error: {code, message}}`, the one shape of every refusal. */
export const Refused = Type.Object(
  {
    error: Type.Object({
      code: Type.Union((Object.keys(refusals) as RefusalCode[]).map(code => Type.Literal(code))),
      message: Type.String({ description: 'For people. Its words may change; `code` does not.' }),
    }),
  },
  { description: 'Every refusal has this shape.' },
)
