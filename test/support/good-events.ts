/** Odd events that are applied, and duplicates that look different. */
import { isDeepStrictEqual } from 'node:util'
import { nested, structured } from './bad-event.ts'
import {
  dataOf,
  keyCreated,
  keyRevoked,
  line,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  step,
  withData,
  withHeaders,
} from './events.ts'
import { seal } from './seal.ts'

const rep = (org: string): Outgoing => repRecorded({ org_id: org, id: 'rep_2' })
const payout = (org: string): Outgoing => payoutCalculated({ org_id: org })
const period = (org: string): Outgoing => periodRecorded({ org_id: org, id: 'period_2' })
const withInputs = (org: string, inputs: string): Outgoing => {
  const record = payout(org)
  return { ...record, value: String(record.value).replace(/"inputs":\{[^}]*\}/, () => `"inputs":${inputs}`) }
}

/** Applied for an organization that has `rep_1` and `period_1`. */
export const applied: Readonly<Record<string, (org: string) => Outgoing>> = {
  'fields that nobody knows': org => withData(rep(org), { extra: [1.5, { nested: true }], gross_amount: '1' }),
  'fields named __proto__, constructor and prototype': org => ({
    ...rep(org),
    value: String(rep(org).value).replace(
      '{',
      '{"__proto__":{"name":"CANARY","status":7},"constructor":{"prototype":{"id":"rep_9"}},"prototype":null,"":0,',
    ),
  }),
  'numbers that no binary number holds, in a field that nobody knows': org => ({
    ...rep(org),
    value: String(rep(org).value).replace('{', '{"extra":[1e400,-0.00,1e-400,123456789012345678901234567890.5],'),
  }),
  'a ce_id, a ce_source and a ce_subject of 600 characters': org =>
    withHeaders(rep(org), { ce_id: 'i'.repeat(600), ce_source: `/${'s'.repeat(599)}`, ce_subject: 'j'.repeat(600) }),
  'a lone surrogate in a field that nobody knows': org => withData(rep(org), { extra: '\ud800' }),
  'headers that nobody knows': org => withHeaders(rep(org), { traceparent: '00-1-2-3', 'x-y': Buffer.from([0xff, 0]) }),
  'a header that stands twice, of no concern': org => withHeaders(rep(org), { 'x-y': ['1', '2'] }),
  'headers named like members of every object': org =>
    withHeaders(rep(org), { constructor: 'x', toString: 'y', ['__proto__']: 'z' }),
  'attributes that nobody knows, malformed ones too': org =>
    withHeaders(rep(org), { ce_subject: '', ce_extra: Buffer.from([0xff]), ce_dataschema: ['a', 'b'] }),
  'a ce_time': org => withHeaders(rep(org), { ce_time: '2026-02-28T23:59:60.123456789012Z' }),
  'a ce_source that is relative': org => withHeaders(rep(org), { ce_source: '../a?b=c#d%20e' }),
  'a content-type with parameters': org =>
    withHeaders(rep(org), { 'content-type': 'Application/JSON ; charset="utf-8"; a=b' }),
  'no content-type': org => withHeaders(rep(org), { 'content-type': undefined }),
  'structured mode': org => structured(rep(org)),
  'structured mode with attributes that nobody knows': org =>
    structured(rep(org), {
      subject: null,
      time: null,
      extra: 1,
      data_base64: 'AAAA',
      datacontenttype: 'application/json',
    }),
  'structured mode with a payout': org => structured(payout(org), { time: '2026-02-28t00:00:00.5+23:59' }),
  'white space everywhere': org => ({
    ...rep(org),
    value: ` \n\t\r${JSON.stringify(dataOf(rep(org)), null, '\r\n\t')} `,
  }),
  'nesting 32 deep': org => withData(rep(org), { extra: nested(31) }),
  'nesting 32 deep in structured mode': org => structured(withData(rep(org), { extra: nested(31) })),
  'a name with every kind of character': org =>
    withData(rep(org), { name: '\u0000\u2028\ufeff\u202e"\\/</script>\n😀é\u0065\u0301', email: '' }),
  'a text of 1,000 that take two units each': org => withData(rep(org), { name: '😀'.repeat(1_000) }),
  'a sealed name and e-mail': org =>
    withData(rep(org), {
      name: seal('CANARY', { org, record: 'rep_2', field: 'name', keyId: 'k1' }),
      email: seal('canary@example.com', { org, record: 'rep_2', field: 'email', keyId: 'k1' }),
    }),
  'the longest sealed text': org =>
    withData(rep(org), { name: `sealed:v1:${'k'.repeat(63)}:${'A'.repeat(8_000 - 74)}` }),
  'a plain text that begins nearly like a sealed one': org => withData(rep(org), { name: 'sealed: in the safe' }),
  'a payment with a sealed label': org =>
    payrollRecorded({
      org_id: org,
      destination: {
        type: 'bank_account',
        label: seal('CANARY', { org, record: 'payroll_1', field: 'destination.label', keyId: 'k1' }),
      },
    }),
  'the longest id': org => withData(rep(org), { id: `rep_${'aZ09'.repeat(16)}` }),
  'a leap day': org => withData(rep(org), { started_on: '2000-02-29', departed_on: '0000-01-01' }),
  'a rep that departed before it started': org => withData(rep(org), { status: 'departed', departed_on: '2001-01-01' }),
  'an old name of a zone': org => withData(period(org), { timezone: 'Asia/Calcutta' }),
  'the zone UTC': org => withData(period(org), { timezone: 'UTC' }),
  'a period of a nanosecond': org =>
    withData(period(org), { starts_at: '2026-01-01T00:00:00.000000001Z', ends_at: '2026-01-01T00:00:00.000000002Z' }),
  'a period whose text ends before it begins': org =>
    withData(period(org), { starts_at: '2026-01-01T10:00:00+14:00', ends_at: '2026-01-01T09:00:00-11:00' }),
  'a period with its name changed': org => periodRecorded({ org_id: org, name: 'Januar 2026' }),
  'a rep with everything changed': org =>
    repRecorded({ org_id: org, name: 'Eve', email: 'e@example.com', status: 'departed', departed_on: '2026-01-31' }),
  'a payout of no lines and no steps': org =>
    payoutCalculated({ org_id: org, net_amount: '0.00', line_items: [], calculation_trace: [] }),
  'a payout whose lines cancel out': org =>
    payoutRecorded({
      org_id: org,
      net_amount: '0',
      earned_amount: '50.5',
      line_items: [line({ amount: '50.50' }), line({ id: 'line_2', category: 'recovered', amount: '-50.500' })],
    }),
  'a payout with 10,000 lines': org =>
    payoutRecorded({
      org_id: org,
      net_amount: '1000.0000',
      line_items: Array.from({ length: 10_000 }, (_, place) => line({ id: `line_${place}`, amount: '0.1000' })),
    }),
  'a payout with 50,000 steps': org =>
    payoutCalculated({
      org_id: org,
      calculation_trace: Array.from({ length: 50_000 }, (_, place) =>
        step({ step: place + 1, name: '', strategy: '', strategy_version: '', inputs: {}, output_amount: '0' }),
      ),
    }),
  'a step written as 1.0': org => ({
    ...payout(org),
    value: String(payout(org).value).replace('"step":1', '"step":1.0'),
  }),
  'inputs named __proto__, constructor and nothing': org =>
    withInputs(org, '{"__proto__":"a","constructor":"b","":"c","10":"d","9":"e","toJSON":"f"}'),
  'no inputs': org => withInputs(org, '{}'),
  'a payment without a payout': org => payrollRecorded({ org_id: org, amount: '-0.10', currency: 'XXX' }),
  'a payment of nothing': org => payrollRecorded({ org_id: org, amount: '0.00' }),
  'a key without permissions': org => keyCreated({ org_id: org, permissions: [] }),
  'a key with one permission twice': org => keyCreated({ org_id: org, permissions: ['read', 'read'] }),
  'a key that reads payouts and totals': org =>
    keyCreated({ org_id: org, permissions: ['payouts:read', 'totals:read'] }),
  'a key that expires': org => keyCreated({ org_id: org, expires_at: '2099-12-31T23:59:59.999999999+14:00' }),
  'a key that expired before it was made': org => keyCreated({ org_id: org, expires_at: '1970-01-01T00:00:00Z' }),
  'a key of one network': org => keyCreated({ org_id: org, allowed_networks: ['203.0.113.0/24'] }),
  'a key of twenty networks': org =>
    keyCreated({
      org_id: org,
      allowed_networks: Array.from({ length: 20 }, (_, n) =>
        n % 2 ? `10.0.${n}.255/${n}` : `2001:db8::${n}:A/12${n % 9}`,
      ),
    }),
  'a key whose networks are null': org => keyCreated({ org_id: org, allowed_networks: null }),
  'a key whose expiry is null': org => keyCreated({ org_id: org, expires_at: null }),
}

/** An event, and the same event in another form, for an organization that has `rep_1` and `period_1`. */
export const duplicates: Readonly<Record<string, (org: string) => readonly [...before: Outgoing[], again: Outgoing]>> =
  {
    'the very same bytes': org => [payout(org), payout(org)],
    'another ce_id, ce_source and ce_time': org => [
      payout(org),
      withHeaders(payout(org), { ce_id: 'other', ce_source: 'urn:other', ce_time: '2026-01-01T00:00:00Z' }),
    ],
    'other spacing': org => [payout(org), { ...payout(org), value: JSON.stringify(dataOf(payout(org)), null, 4) }],
    'other order of keys, at every level': org => [payout(org), { ...payout(org), value: reversed(payout(org)) }],
    'escapes for plain characters': org => [
      payout(org),
      { ...payout(org), value: String(payout(org).value).replaceAll('Commission', '\\u0043ommissi\\u006fn') },
    ],
    'structured mode': org => [payoutRecorded({ org_id: org }), structured(payoutRecorded({ org_id: org }))],
    'fields that nobody knows': org => [payout(org), withData(payout(org), { extra: true })],
    'a payout that was superseded meanwhile': org => [
      payout(org),
      payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
      payout(org),
    ],
    'a payment that was voided meanwhile': org => [
      payrollRecorded({ org_id: org }),
      payrollVoided({ org_id: org }),
      payrollRecorded({ org_id: org }),
    ],
    'a void': org => [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org }), payrollVoided({ org_id: org })],
    'the rep as it is': org => [repRecorded({ org_id: org })],
    'the period as it is': org => [periodRecorded({ org_id: org })],
    'a key whose expiry is null, and absent': org => {
      const text = newKeyText()
      return [keyCreated({ org_id: org, text, expires_at: null }), keyCreated({ org_id: org, text })]
    },
    'a key whose networks are null, and absent': org => {
      const text = newKeyText()
      return [keyCreated({ org_id: org, text, allowed_networks: null }), keyCreated({ org_id: org, text })]
    },
    'a key that was revoked meanwhile': org => {
      const created = keyCreated({ org_id: org })
      return [created, keyRevoked({ org_id: org }), created]
    },
    'a second revocation, later': org => [
      keyCreated({ org_id: org }),
      keyRevoked({ org_id: org }),
      keyRevoked({ org_id: org, revoked_at: '2026-04-01T00:00:00Z' }),
    ],
  }

const reversed = (record: Outgoing): string => {
  const data = dataOf(record)
  const turned = turn(data)
  if (!isDeepStrictEqual(data, turned)) throw new Error('only the order may differ')
  return JSON.stringify(turned)
}

const turn = (json: unknown): unknown => {
  if (Array.isArray(json)) return json.map(turn)
  if (typeof json !== 'object' || json === null) return json
  return Object.fromEntries(
    Object.entries(json)
      .toReversed()
      .map(([name, value]) => [name, turn(value)]),
  )
}
