/**
 * What is refused, by the code it is refused with: real inputs, each an event that would be applied but for one thing. Every
 * one is sent for an organization of its own that has `rep_1` and `period_1`.
 */
import type { ParkCode } from '../../schemas/errors.ts'
import {
  dataOf,
  envelope,
  keyCreated,
  keyRevoked,
  line,
  newId,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payoutRecorded,
  payrollRecorded,
  payrollVoided,
  periodRecorded,
  repRecorded,
  sha256,
  step,
  withData,
  withHeaders,
} from './events.ts'
import { partitionOf } from './model-record.ts'

/** What is sent before, and then the one that is refused. */
export type BadEvent = { readonly before?: readonly Outgoing[]; readonly bad: Outgoing }
type Make = (org: string, partitions: number) => BadEvent | Outgoing

export const makeBad = (make: Make, org: string, partitions: number): Required<BadEvent> => {
  const made = make(org, partitions)
  return 'bad' in made ? { before: [], ...made } : { before: [], bad: made }
}

const rep = (org: string): Outgoing => repRecorded({ org_id: org, id: 'rep_2' })
const payout = (org: string): Outgoing => payoutCalculated({ org_id: org })
const withText = (record: Outgoing, value: string | Buffer | null): Outgoing => ({ ...record, value })
const textOf = ({ value }: Outgoing): string => String(value)

/** Adds bytes to the end of the name of a rep. */
const named = (org: string, bytes: number[]): Outgoing => {
  const text = textOf(withData(rep(org), { name: 'NAME' }))
  const at = text.indexOf('NAME') + 4
  return withText(
    rep(org),
    Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from(bytes), Buffer.from(text.slice(at))]),
  )
}

/** The same event in structured mode; the envelope's attributes can be changed, or taken away with undefined. */
export const structured = (record: Outgoing, changes: Record<string, unknown> = {}): Outgoing => {
  const { ce_type, ce_id, ce_source } = record.headers
  const event = { specversion: '1.0', type: ce_type, id: ce_id, source: ce_source, data: dataOf(record), ...changes }
  const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
  return { ...record, headers, value: JSON.stringify(event) }
}

/** Objects inside each other; `levels` counts the outermost too. */
export const nested = (levels: number): object => {
  let inner = {}
  for (let level = 1; level < levels; level++) inner = { inner }
  return inner
}

const otherOrg = newId('org')

export const refused: Readonly<Record<Exclude<ParkCode, 'chain_too_long'>, Readonly<Record<string, Make>>>> = {
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

  id_reused: {
    'a payout with another amount': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, net_amount: '100.01' }),
    }),
    'the same amount in other characters': org => ({
      before: [payout(org)],
      bad: withData(payout(org), { earned_amount: '100.0' }),
    }),
    'a payout recorded that was calculated': org => ({ before: [payout(org)], bad: payoutRecorded({ org_id: org }) }),
    'a payout of another rep': org => ({
      before: [payout(org), rep(org)],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_2' }),
    }),
    'a payout of a rep that nobody knows': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_9' }),
    }),
    'lines in another order': org => {
      const lines = [line({ amount: '40' }), line({ id: 'line_2', amount: '60' })]
      return {
        before: [payoutCalculated({ org_id: org, net_amount: '100', line_items: lines })],
        bad: payoutCalculated({ org_id: org, net_amount: '100', line_items: lines.toReversed() }),
      }
    },
    'a payout that was superseded': org => ({
      before: [payout(org), payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })],
      bad: payoutCalculated({ org_id: org, supersedes_id: 'payout_2' }),
    }),
    'a payroll record with another label': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, destination: { type: 'bank_account', label: 'CANARY' } }),
    }),
    'a void with the id of the payment it reverses': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_1' }),
    }),
    'a key with another name': org => {
      const created = keyCreated({ org_id: org })
      return { before: [created], bad: withData(created, { name: 'CANARY' }) }
    },
    'a secret that another organization has': org => {
      const text = newKeyText()
      return { before: [keyCreated({ org_id: newId('org'), text })], bad: keyCreated({ org_id: org, text }) }
    },
    'a secret that was revoked': org => {
      const text = newKeyText()
      return {
        before: [keyCreated({ org_id: org, text }), keyRevoked({ org_id: org })],
        bad: keyCreated({ org_id: org, id: 'key_2', text }),
      }
    },
  },

  period_changed: {
    'another kind': org => periodRecorded({ org_id: org, kind: 'quarter' }),
    'another time zone': org => periodRecorded({ org_id: org, timezone: 'Europe/Paris' }),
    'another beginning': org => periodRecorded({ org_id: org, starts_at: '2026-01-02T00:00:00+01:00' }),
    'another end': org => periodRecorded({ org_id: org, ends_at: '2026-03-01T00:00:00+01:00' }),
    'the same instant in other characters': org => periodRecorded({ org_id: org, starts_at: '2025-12-31T23:00:00Z' }),
    'another name as well': org => periodRecorded({ org_id: org, name: 'CANARY', kind: 'year' }),
  },

  rep_unknown: {
    'a calculated payout': org => payoutCalculated({ org_id: org, rep_id: 'rep_9' }),
    'a recorded payout': org => payoutRecorded({ org_id: org, rep_id: 'rep_9' }),
    'a payroll record': org => payrollRecorded({ org_id: org, rep_id: 'rep_9' }),
    'a rep that was parked': org => ({
      before: [withData(rep(org), { status: 'retired' })],
      bad: payoutCalculated({ org_id: org, rep_id: 'rep_2', supersedes_id: 'payout_9' }),
    }),
    'a rep in another case': org => payoutCalculated({ org_id: org, rep_id: 'rep_A', period_id: 'period_9' }),
  },

  period_unknown: {
    'a calculated payout': org => payoutCalculated({ org_id: org, period_id: 'period_9' }),
    'a recorded payout': org => payoutRecorded({ org_id: org, period_id: 'period_9', supersedes_id: 'payout_9' }),
    'a payroll record': org => payrollRecorded({ org_id: org, period_id: 'period_9', payout_id: 'payout_9' }),
  },

  supersedes_mismatch: {
    'null while there is one': org => ({
      before: [payout(org)],
      bad: payoutCalculated({ org_id: org, id: 'payout_2' }),
    }),
    'set while there is none': org => payoutCalculated({ org_id: org, supersedes_id: 'payout_9' }),
    'the payout itself': org => payoutCalculated({ org_id: org, supersedes_id: 'payout_1' }),
    'one that was replaced already': org => ({
      before: [payout(org), payoutRecorded({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_3', supersedes_id: 'payout_1' }),
    }),
    'the current one of another period': org => ({
      before: [periodRecorded({ org_id: org, id: 'period_2' }), payoutRecorded({ org_id: org, period_id: 'period_2' })],
      bad: payoutRecorded({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
    }),
    'the current one of another rep, while there is another': org => ({
      before: [rep(org), payout(org), payoutCalculated({ org_id: org, id: 'payout_2', rep_id: 'rep_2' })],
      bad: payoutCalculated({ org_id: org, id: 'payout_3', supersedes_id: 'payout_2' }),
    }),
  },

  payout_mismatch: {
    'a payout that nobody knows': org => payrollRecorded({ org_id: org, payout_id: 'payout_9' }),
    'a payout of another rep': org => ({
      before: [rep(org), payout(org)],
      bad: payrollRecorded({ org_id: org, rep_id: 'rep_2', payout_id: 'payout_1' }),
    }),
    'a payout of another period': org => ({
      before: [periodRecorded({ org_id: org, id: 'period_2' }), payout(org)],
      bad: payrollRecorded({ org_id: org, period_id: 'period_2', payout_id: 'payout_1' }),
    }),
    'a pair that is paid already, too': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', payout_id: 'payout_9' }),
    }),
  },

  payroll_already_recorded: {
    'a second payment': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2' }),
    }),
    'a payment for the payout that replaced the paid one': org => ({
      before: [
        payout(org),
        payrollRecorded({ org_id: org, payout_id: 'payout_1' }),
        payoutCalculated({ org_id: org, id: 'payout_2', supersedes_id: 'payout_1' }),
      ],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', payout_id: 'payout_2' }),
    }),
    'a third payment, where the first was voided': org => ({
      before: [
        payrollRecorded({ org_id: org }),
        payrollVoided({ org_id: org }),
        payrollRecorded({ org_id: org, id: 'payroll_3' }),
      ],
      bad: payrollRecorded({ org_id: org, id: 'payroll_4' }),
    }),
    'a payment of nothing in another currency': org => ({
      before: [payrollRecorded({ org_id: org, amount: '0' })],
      bad: payrollRecorded({ org_id: org, id: 'payroll_2', amount: '0', currency: 'USD' }),
    }),
  },

  payroll_reversal_invalid: {
    'a record that nobody knows': org => payrollVoided({ org_id: org }),
    'the void itself': org => payrollVoided({ org_id: org, reverses_id: 'payroll_2' }),
    'a void': org => ({
      before: [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_3', reverses_id: 'payroll_2', amount: '100.00' }),
    }),
    'one that is voided already': org => ({
      before: [payrollRecorded({ org_id: org }), payrollVoided({ org_id: org })],
      bad: payrollVoided({ org_id: org, id: 'payroll_3' }),
    }),
    'another currency': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, currency: 'USD' }),
    }),
    'a cent less': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: '-99.99' }),
    }),
    'the same sign': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: '100.00' }),
    }),
    'a difference in the 40th place': org => ({
      before: [payrollRecorded({ org_id: org })],
      bad: payrollVoided({ org_id: org, amount: `-100.${'0'.repeat(39)}1` }),
    }),
  },

  key_unknown: {
    'a key that was never created': org => keyRevoked({ org_id: org, id: 'key_9' }),
    'a key of another organization': org => ({
      before: [keyCreated({ org_id: newId('org'), id: 'key_8' })],
      bad: keyRevoked({ org_id: org, id: 'key_8' }),
    }),
    'a key whose creation was parked': org => ({
      before: [withData(keyCreated({ org_id: org, id: 'key_2' }), { last4: '' })],
      bad: keyRevoked({ org_id: org, id: 'key_2' }),
    }),
  },
}

/**
 * As many payouts and payroll records of one (rep, period) as there may be, and for each type one too many. A void never is:
 * a chain of 10,000 ends with one, and there is nothing left to void.
 */
export const tooLongChain = (org: string): { readonly before: Outgoing[]; readonly bad: Outgoing[] } => ({
  before: [
    repRecorded({ org_id: org }),
    periodRecorded({ org_id: org }),
    ...upTo(LONGEST).flatMap(place => [payoutAt(org, place), payrollAt(org, place)]),
    // `supersedes_mismatch` comes before `chain_too_long`.
    payoutCalculated({ org_id: org, id: 'payout_x', supersedes_id: 'payout_1' }),
  ],
  bad: [
    payoutCalculated({ org_id: org, id: 'payout_a', supersedes_id: `payout_${LONGEST}` }),
    payoutRecorded({ org_id: org, id: 'payout_b', supersedes_id: `payout_${LONGEST}` }),
    payrollRecorded({ org_id: org, id: 'payroll_a' }),
  ],
})

const LONGEST = 10_000
const upTo = (last: number): number[] => Array.from({ length: last }, (_, place) => place + 1)

const payoutAt = (org: string, place: number): Outgoing =>
  payoutRecorded({
    org_id: org,
    id: `payout_${place}`,
    supersedes_id: place === 1 ? null : `payout_${place - 1}`,
    net_amount: '0',
    line_items: [],
  })

const payrollAt = (org: string, place: number): Outgoing =>
  place % 2 === 1
    ? payrollRecorded({ org_id: org, id: `payroll_${place}` })
    : payrollVoided({ org_id: org, id: `payroll_${place}`, reverses_id: `payroll_${place - 1}` })

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
