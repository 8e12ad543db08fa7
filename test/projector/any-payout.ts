/** Payouts as anyone could publish them: mostly valid and mostly like JSON.stringify, sometimes subtly wrong. */
import fc from 'fast-check'
import { anyText } from '../schemas/any-text.ts'

export const CALCULATED = 'commission.payout.calculated.v1'
export const RECORDED = 'commission.payout.recorded.v1'

/** A JSON object as a list of members, so that they can have any order and repeat. */
type Members = readonly (readonly [name: string, value: unknown])[]
class Json {
  readonly members: Members
  constructor(members: Members) {
    this.members = members
  }
  toString(): string {
    return `{${this.members.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`).join()}}`
  }
}
const textOf = (value: unknown): string => {
  if (value instanceof Json) return value.toString()
  return Array.isArray(value) ? `[${value.map(textOf).join()}]` : JSON.stringify(value)
}

/** Mostly `value`, and sometimes another value that looks similar. */
const mostly = <Value>(value: fc.Arbitrary<Value>, ...others: unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 40, arbitrary: value }, { weight: 1, arbitrary: fc.constantFrom(...others) })
const idOf = (prefix: string) =>
  mostly(
    fc.stringMatching(/^[0-9A-Za-z]{1,3}$/).map(rest => `${prefix}_${rest}`),
    `${prefix}_`,
    `x${prefix}_1`,
    `${prefix}_${'a'.repeat(65)}`,
    `${prefix}_é`,
    null,
    1,
    '',
  )
const orNull = (value: fc.Arbitrary<unknown>) => fc.oneof({ weight: 3, arbitrary: value }, fc.constant(null))
const amount = mostly(
  fc.constantFrom('1', '1.00', '-1', '0', '0.10', '12345.6789', '-0.10', '0.00000000000000001', '9'.repeat(40)),
  '-0',
  '-0.00',
  '01',
  '1.',
  '.5',
  '+1',
  '1e5',
  `1.${'0'.repeat(41)}`,
  '9'.repeat(41),
  '',
  null,
  1,
  '1"',
  '1 ',
)
const text = mostly(
  fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 8 }),
    anyText(),
    fc.constantFrom('', 'a'.repeat(1_000), '😀'.repeat(500), '😀'.repeat(1_000)),
  ),
  'a'.repeat(1_001),
  '\u0000',
  'a"b',
  'a\\b',
  '\ud800',
  null,
  7,
)
const name = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'rate',
    'base_amount',
    '1',
    '10',
    '9',
    '01',
    '__proto__',
    '',
    'é',
    'line_items',
    'calculated_at',
  ),
  fc.string({ maxLength: 3 }),
)
const instant = mostly(
  fc.constantFrom('2026-02-01T08:30:00Z', '2024-02-29T23:59:59.123456789+14:00', '2026-02-01T08:30:00.1-00:00'),
  '2026-02-30T08:30:00Z',
  '2026-02-01T24:00:00Z',
  '2026-02-01T08:30:60Z',
  '2026-02-01',
  '2026-02-01t08:30:00z',
  null,
  1,
)
/** Mostly sorted by name. */
const inputs = fc
  .tuple(fc.array(fc.tuple(name, text), { maxLength: 4 }), fc.integer({ min: 0, max: 3 }))
  .map(([members, chance]) => {
    if (chance === 0) return new Json(members)
    const once = new Map(members)
    return new Json([...once].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
/** Mostly the members as given. Sometimes they are reordered, or one is repeated, missing or unknown. */
const inForm = (members: Members): fc.Arbitrary<Json> =>
  fc.integer({ min: 0, max: 199 }).map(chance => {
    const [first, ...rest] = members
    if (first === undefined) return new Json(members)
    if (chance === 0) return new Json([...rest, first])
    if (chance === 1) return new Json([...members, first])
    if (chance === 2) return new Json(rest)
    if (chance === 3) return new Json([...members, ['new', 1]])
    if (chance === 4) return new Json([['__proto__', {}], ...members])
    return new Json(members)
  })
const objectOf = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<Json> =>
  fc.tuple(...Object.values(fields)).chain(values => inForm(Object.keys(fields).map((name, at) => [name, values[at]])))

const anyLine = objectOf({
  id: idOf('line'),
  category: mostly(fc.constantFrom('earned', 'recovered', 'adjusted'), 'other', 'Earned', null),
  description: text,
  amount,
  deal_id: orNull(idOf('deal')),
})
const anyStep = (place: number) =>
  objectOf({
    step: mostly(fc.constant(place + 1), place, 0, -1, 1.5, '1', null),
    name: text,
    strategy: text,
    strategy_version: text,
    inputs,
    output_amount: amount,
    deal_id: orNull(idOf('deal')),
  })
const steps = fc.nat(3).chain(count => fc.tuple(...Array.from({ length: count }, (_, place) => anyStep(place))))
/** A payout. Its string form is its JSON text. */
export const anyPayout = (type: typeof CALCULATED | typeof RECORDED) =>
  objectOf({
    org_id: mostly(fc.constant('org_1'), 'org_2', 'org_', null),
    id: idOf('payout'),
    rep_id: idOf('rep'),
    period_id: idOf('period'),
    supersedes_id: orNull(idOf('payout')),
    currency: mostly(fc.constantFrom('EUR', 'JPY'), 'eur', 'EURO', null),
    net_amount: amount,
    earned_amount: amount,
    line_items: fc.array(anyLine, { maxLength: 3 }),
    ...(type === CALCULATED ? { calculation_trace: steps, calculated_at: instant } : { recorded_at: instant }),
  })
