/** What is refused for itself, whatever was before it, by the code it is refused with: each would be applied but for one thing. */
import type { ParkCode } from '../../schemas/errors.ts'
import { type Make, named, nested, payout, rep, structured, textOf, withText } from './bad-event.ts'
import {
  envelope,
  keyCreated,
  line,
  newId,
  type Outgoing,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  sha256,
  step,
  withData,
  withHeaders,
} from './events.ts'
import { partitionOf } from './model-record.ts'

const otherOrg = newId('org')

export const refusedAlone = {
  record_undecodable: {
    'a byte that is not UTF-8': org => named(org, [0xff]),
    'UTF-8 longer than need be': org => named(org, [0xc0, 0xaf]),
    'a lone surrogate as raw bytes': org => named(org, [0xed, 0xa0, 0x80]),
    'a text cut off': org => withText(rep(org), textOf(rep(org)).slice(0, -1)),
    'no JSON at all': org => withText(rep(org), 'CANARY is no JSON'),
    'a comma too many': org => withText(rep(org), textOf(rep(org)).replace(/}$/, ',}')),
    'a second value behind the first': org => withText(rep(org), `${textOf(rep(org))}{}`),
    'a value of no bytes': org => withText(rep(org), ''),
    'a null value': org => withText(rep(org), null),
    'a byte-order mark': org => withText(rep(org), `\ufeff${textOf(rep(org))}`),
    'a key twice': org => withText(rep(org), textOf(rep(org)).replace('{', '{"name":"CANARY",')),
    'a key twice, once with an escape': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"n\\u0061me":"CANARY",')),
    'a key twice in a field that nobody knows': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"extra":[{"a":1,"a":1}],')),
    'the key __proto__ twice': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"__proto__":null,"__proto__":null,')),
    'nesting 33 deep': org => withData(rep(org), { extra: nested(32) }),
    'nesting 33 deep in structured mode': org => structured(withData(rep(org), { extra: nested(32) })),
    'no attributes': org => ({ ...rep(org), headers: {} }),
    'no ce_type': org => withHeaders(rep(org), { ce_type: undefined }),
    'no ce_id': org => withHeaders(rep(org), { ce_id: undefined }),
    'no ce_source': org => withHeaders(rep(org), { ce_source: undefined }),
    'no ce_specversion': org => withHeaders(rep(org), { ce_specversion: undefined }),
    'attributes in capitals': org =>
      withHeaders(rep(org), { ce_type: undefined, CE_TYPE: 'commission.rep.recorded.v1' }),
    'version 0.3 of CloudEvents': org => withHeaders(rep(org), { ce_specversion: '0.3' }),
    'an attribute twice': org =>
      withHeaders(rep(org), { ce_type: ['commission.rep.recorded.v1', 'commission.rep.recorded.v1'] }),
    'an empty ce_id': org => withHeaders(rep(org), { ce_id: '' }),
    'a control character in ce_id': org => withHeaders(rep(org), { ce_id: 'CANARY\u0007' }),
    'a ce_id that is not UTF-8': org => withHeaders(rep(org), { ce_id: Buffer.from([0xfe]) }),
    'a ce_source that is no URI reference': org => withHeaders(rep(org), { ce_source: 'CANARY with spaces' }),
    'a ce_time that is none': org => withHeaders(rep(org), { ce_time: 'CANARY' }),
    'a ce_time on February 30th': org => withHeaders(rep(org), { ce_time: '2026-02-30T00:00:00Z' }),
    'text as content-type': org => withHeaders(rep(org), { 'content-type': 'text/plain' }),
    'a content-type that only begins right': org => withHeaders(rep(org), { 'content-type': 'application/json-seq' }),
    'content-type twice': org => withHeaders(rep(org), { 'content-type': ['application/json', 'application/json'] }),
    'a batch of events': org =>
      withText(
        withHeaders(structured(rep(org)), { 'content-type': 'application/cloudevents-batch+json' }),
        `[${textOf(structured(rep(org)))}]`,
      ),
    'structured mode without an id': org => structured(rep(org), { id: undefined }),
    'structured mode with a number for a version': org => structured(rep(org), { specversion: 1.0 }),
    'structured mode that is a list': org => withText(structured(rep(org)), `[${textOf(structured(rep(org)))}]`),
    'structured mode that is null': org => withText(structured(rep(org)), 'null'),
    'structured mode with an attribute twice': org =>
      withText(structured(rep(org)), textOf(structured(rep(org))).replace('{', '{"id":"CANARY",')),
    'structured mode with other data than JSON': org => structured(rep(org), { datacontenttype: 'text/xml' }),
    'a key twice in an event of an unknown type': org =>
      withHeaders(withText(rep(org), '{"a":1,"a":2}'), { ce_type: 'com.example' }),
    'structured mode with attributes in the headers only': org => ({
      ...rep(org),
      headers: { ...rep(org).headers, 'content-type': 'application/cloudevents+json' },
    }),
  },

  type_unknown: {
    'a version that is not there yet': org => withHeaders(rep(org), { ce_type: 'commission.rep.recorded.v2' }),
    'another case': org => withHeaders(rep(org), { ce_type: 'Commission.Rep.Recorded.V1' }),
    'a type that is the name of a member of every object': org => withHeaders(rep(org), { ce_type: 'constructor' }),
    'an API key among the events': org => ({ ...keyCreated({ org_id: org }), stream: 'events' }),
    'an event among the API keys': org => ({ ...rep(org), stream: 'api-keys' }),
    'a type of another system in structured mode': org => structured(rep(org), { type: 'CANARY' }),
    'data that is broken too': org => withText(withHeaders(rep(org), { ce_type: 'com.example' }), '{"CANARY":1}'),
  },

  data_invalid: {
    ...dataInvalid(),
    'a wrong key, another partition and a wrong sum, too': (org, partitions) => ({
      ...elsewhere(withData(payout(org), { net_amount: '1', currency: '' }), org, partitions, 1),
      key: otherOrg,
    }),
    'JSON null as data': org => withText(rep(org), 'null'),
    'a list as data': org => withText(rep(org), `[${textOf(rep(org))}]`),
    'data that stands inside __proto__': org => withText(rep(org), `{"__proto__":${textOf(rep(org))}}`),
    'structured mode without data': org => structured(rep(org), { data: undefined }),
    'structured mode with data in base64 only': org =>
      structured(rep(org), { data: undefined, data_base64: Buffer.from(textOf(rep(org))).toString('base64') }),
    'two lines with one id': org =>
      withData(payout(org), { line_items: [line({ amount: '40' }), line({ amount: '60' })], net_amount: '100' }),
    'more than 10,000 lines': org =>
      withData(payout(org), {
        line_items: Array.from({ length: 10_001 }, (_, place) => line({ id: `line_${place}`, amount: '0' })),
        net_amount: '0',
      }),
    'a trace that begins with step 2': org => withData(payout(org), { calculation_trace: [step({ step: 2 })] }),
    'a trace with a gap': org => withData(payout(org), { calculation_trace: [step(), step({ step: 3 })] }),
    'a trace with a step twice': org => withData(payout(org), { calculation_trace: [step(), step()] }),
    'half a step': org => withData(payout(org), { calculation_trace: [{ ...step(), step: 1.5 }] }),
    'a step as text': org => withData(payout(org), { calculation_trace: [{ ...step(), step: '1' }] }),
    'an input that is a number': org =>
      withData(payout(org), { calculation_trace: [{ ...step(), inputs: { rate: 0.1 } }] }),
    'an input named __proto__ that is no text': org =>
      withText(payout(org), textOf(payout(org)).replace('"inputs":{', '"inputs":{"__proto__":{},')),
    'inputs as a list': org => withData(payout(org), { calculation_trace: [{ ...step(), inputs: [] }] }),
    'a recorded payout without the time it was recorded': org =>
      withHeaders(payout(org), { ce_type: 'commission.payout.recorded.v1' }),
    'a permission that is not there': org => withData(keyCreated({ org_id: org }), { permissions: ['read', 'write'] }),
    'the hash of a key in capitals': org =>
      withData(keyCreated({ org_id: org }), { secret_sha256: sha256('x').toUpperCase() }),
  },

  org_mismatch: {
    'the key of another organization': org => ({ ...rep(org), key: otherOrg }),
    'no key': org => ({ ...rep(org), key: null }),
    'a wrong key for a partition that is not the organization’s, and a wrong sum': (org, partitions) => ({
      ...elsewhere(withData(payout(org), { net_amount: '1' }), org, partitions, 1),
      key: otherOrg,
    }),
    'an empty key': org => ({ ...rep(org), key: '' }),
    'a key with a space behind it': org => ({ ...rep(org), key: `${org} ` }),
    'a key with a byte that is not UTF-8': org => ({ ...rep(org), key: Buffer.from([...Buffer.from(org), 0xff]) }),
    'an API key of another organization': org => ({ ...keyCreated({ org_id: org, id: 'key_9' }), key: otherOrg }),
  },

  partition_mismatch: {
    'a rep in the next partition': (org, partitions) => elsewhere(rep(org), org, partitions, 1),
    'a payout in the one after it': (org, partitions) => elsewhere(payout(org), org, partitions, 2),
    'a payroll record in the next partition': (org, partitions) =>
      elsewhere(payrollRecorded({ org_id: org }), org, partitions, 1),
    'a payout whose lines do not sum either': (org, partitions) =>
      elsewhere(withData(payout(org), { net_amount: '1' }), org, partitions, 1),
  },

  lines_do_not_sum: {
    'a cent too little': org => withData(payout(org), { net_amount: '100.01' }),
    'no lines': org => withData(payout(org), { line_items: [] }),
    'a sum as binary numbers make it': org =>
      withData(payout(org), {
        net_amount: '0.30000000000000004',
        line_items: [line({ amount: '0.1' }), line({ id: 'line_2', amount: '0.2' })],
      }),
    'a cent off behind 30 digits': org =>
      withData(payout(org), {
        net_amount: '100000000000000000000000000000.01',
        line_items: [line({ amount: '100000000000000000000000000000' }), line({ id: 'line_2', amount: '0.02' })],
      }),
    'a difference in the 40th place': org =>
      withData(payout(org), { net_amount: `100.${'0'.repeat(39)}1`, line_items: [line({ amount: '100' })] }),
    'a recorded payout with the wrong sign': org =>
      withData(payoutRecorded({ org_id: org }), { net_amount: '-100.00' }),
    'a rep that nobody knows, too': org => withData(payout(org), { net_amount: '1', rep_id: 'rep_9' }),
    'an id that is taken, too': org => ({ before: [payout(org)], bad: withData(payout(org), { net_amount: '1' }) }),
  },
} as const satisfies Partial<Record<ParkCode, Readonly<Record<string, Make>>>>

const elsewhere = (record: Outgoing, org: string, partitions: number, by: number): Outgoing => ({
  ...record,
  partition: (partitionOf(org, partitions) + by) % partitions,
})

/** One field each that breaks a rule of section 1 or of the schema. */
function dataInvalid(): Record<string, Make> {
  const money =
    (amount: unknown): Make =>
    org =>
      withData(payout(org), { earned_amount: amount })
  const inRep =
    (changes: Record<string, unknown>): Make =>
    org =>
      withData(rep(org), changes)
  const inPeriod =
    (changes: Record<string, unknown>): Make =>
    org =>
      withData(periodRecorded({ org_id: org, id: 'period_2' }), changes)
  const amounts = [
    100,
    '1e5',
    '0x10',
    'NaN',
    '+1',
    '01',
    '5.',
    '.5',
    '-0',
    '-0.00',
    '',
    ' 1',
    '1 ',
    '1\n',
    '1,5',
    '−1',
    '١',
  ]
  return {
    ...Object.fromEntries(amounts.map(amount => [`money ${JSON.stringify(amount)}`, money(amount)])),
    'money of 41 digits': money('1'.repeat(41)),
    'money with 41 places': money(`0.${'1'.repeat(41)}`),
    'a field that is missing': inRep({ email: undefined }),
    'null where a value must be': inRep({ name: null }),
    'a number for a text': inRep({ name: 7 }),
    'an id of another kind': inRep({ id: 'payout_2' }),
    'an id with nothing behind its prefix': inRep({ id: 'rep_' }),
    'an id of 65': inRep({ id: `rep_${'a'.repeat(65)}` }),
    'an id with a letter that is not of A to Z': inRep({ id: 'rep_ä' }),
    'an id with a line break': inRep({ id: 'rep_2\n' }),
    'an organization that is none': inRep({ org_id: 'CANARY' }),
    'a text of 1,001': inRep({ name: '😀'.repeat(1_001) }),
    'a lone surrogate as an escape': inRep({ name: 'CANARY \ud800' }),
    'a date that is not in the calendar': inRep({ started_on: '2026-02-29' }),
    'a date with a time': inRep({ started_on: '2026-02-28T00:00:00Z' }),
    'a status that is none': inRep({ status: 'retired' }),
    'a kind of period that is none': inPeriod({ kind: 'week' }),
    'a zone that is none': inPeriod({ timezone: 'Mars/Olympus_Mons' }),
    'a zone in small letters': inPeriod({ timezone: 'europe/berlin' }),
    'an instant in small letters': inPeriod({ starts_at: '2026-01-01t00:00:00z' }),
    'an instant without an offset': inPeriod({ starts_at: '2026-01-01T00:00:00' }),
    'a leap second': inPeriod({ starts_at: '2026-01-01T00:00:60Z' }),
    'ten fraction digits': inPeriod({ starts_at: '2026-01-01T00:00:00.0000000001Z' }),
    'an instant on February 30th': inPeriod({ starts_at: '2026-02-30T00:00:00Z', ends_at: '2026-04-01T00:00:00Z' }),
    'an offset of 24 hours': inPeriod({ starts_at: '2026-01-01T00:00:00+24:00' }),
    'a period that ends when it begins': inPeriod({ ends_at: '2026-01-01T00:00:00+01:00' }),
    'a period that ends before it begins, though its text is later': inPeriod({
      starts_at: '2026-01-01T00:00:00-12:00',
      ends_at: '2026-01-01T11:00:00+00:00',
    }),
    'a period that ends a nanosecond early': inPeriod({
      starts_at: '2026-01-01T00:00:00.000000002Z',
      ends_at: '2026-01-01T00:00:00.000000001Z',
    }),
    'a currency in small letters': org => withData(payout(org), { currency: 'eur' }),
    'a category that is none': org => withData(payout(org), { line_items: [{ ...line(), category: 'CANARY' }] }),
    'a destination that is none': org =>
      withData(payrollRecorded({ org_id: org }), { destination: { type: 'cash', label: 'CANARY' } }),
    'a void that reverses nothing': org => withData(payrollVoided({ org_id: org }), { reverses_id: null }),
    'an event of a type it is not': org => ({ ...rep(org), headers: envelope('commission.period.recorded.v1') }),
  }
}
