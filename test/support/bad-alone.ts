/** Records that are refused whatever came before them, by code. Each would be applied but for one error. */
import type { ParkCode } from '../../schemas/errors.ts'
import {
  type Make,
  named,
  neighbourOf,
  nested,
  payout,
  rep,
  structured,
  textOf,
  withAmount,
  withText,
} from './bad-event.ts'
import { badValues } from './bad-values.ts'
import {
  keyCreated,
  line,
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

/** A record as it stands for an offset of a batch that cannot be read. A publisher can send one, too. */
const ofBatch = (org: string, reason: string): Outgoing => ({
  ...withText(rep(org), null),
  headers: { 'commission-undecodable-batch': `0 ${Number.MAX_SAFE_INTEGER} 4 ${reason}` },
})

export const refusedAlone = {
  batch_undecodable: {
    'a batch that cannot be decompressed': org => ofBatch(org, 'not_decompressed'),
    'a batch that is too large': org => ofBatch(org, 'too_large'),
    'a batch with a record that is too large': org => ofBatch(org, 'record_too_large'),
    'a batch with a malformed record': org => ofBatch(org, 'records_malformed'),
    'a batch with another number of records': org => ofBatch(org, 'count_wrong'),
    'a batch of an unknown compression': org => ofBatch(org, 'codec_unknown'),
  },
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
    'a letter in Latin-1': org => named(org, [0xe4]),
    'UTF-16 with its mark, little end first': org => withText(rep(org), utf16(`\ufeff${textOf(rep(org))}`)),
    'UTF-16 with its mark, big end first': org => withText(rep(org), utf16(`\ufeff${textOf(rep(org))}`).swap16()),
    'UTF-16 without a mark, little end first': org => withText(rep(org), utf16(textOf(rep(org)))),
    'UTF-16 without a mark, big end first': org => withText(rep(org), utf16(textOf(rep(org))).swap16()),
    ...Object.fromEntries(
      ['0x10', 'NaN', '-Infinity', '+1', '01', '.5', '5.', '1e', '-', '1_000', "'1'", '٣', 'undefined'].map(amount => [
        `${amount} without quotes for an amount`,
        (org: string) => withAmount(org, amount),
      ]),
    ),
    'half an escape': org => withText(rep(org), textOf(rep(org)).replace('Ada', 'CANARY \\ud8')),
    'a line break within a text': org => withText(rep(org), textOf(rep(org)).replace('Ada', 'CANARY\n')),
    'a comment': org => withText(rep(org), textOf(rep(org)).replace('{', '{/* CANARY */')),
    'a key twice': org => withText(rep(org), textOf(rep(org)).replace('{', '{"name":"CANARY",')),
    'a key twice, once with an escape': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"n\\u0061me":"CANARY",')),
    'a key twice in a field that nobody knows': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"extra":[{"a":1,"a":1}],')),
    'the key __proto__ twice': org =>
      withText(rep(org), textOf(rep(org)).replace('{', '{"__proto__":null,"__proto__":null,')),
    'an amount twice, alike': org => withText(payout(org), textOf(payout(org)).replace('{', '{"net_amount":"100.00",')),
    'a key twice in a line': org =>
      withText(payout(org), textOf(payout(org)).replace('"amount":', '"amount":"1","amount":')),
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
    ...badValues,
    'a wrong key, another partition and a wrong sum, too': (org, partitions) => ({
      ...elsewhere(withData(payout(org), { net_amount: '1', currency: '' }), org, partitions, 1),
      key: neighbourOf(org),
    }),
    'JSON null as data': org => withText(rep(org), 'null'),
    'a list as data': org => withText(rep(org), `[${textOf(rep(org))}]`),
    'data that stands inside __proto__': org => withText(rep(org), `{"__proto__":${textOf(rep(org))}}`),
    'structured mode without data': org => structured(rep(org), { data: undefined }),
    'structured mode with data in base64 only': org =>
      structured(rep(org), { data: undefined, data_base64: Buffer.from(textOf(rep(org))).toString('base64') }),
    'two lines with one id': org =>
      withData(payout(org), { line_items: [line({ amount: '40' }), line({ amount: '60' })], net_amount: '100' }),
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
    'permissions that are not a list': org => withData(keyCreated({ org_id: org }), { permissions: 'read' }),
    'a permission of another spelling': org => withData(keyCreated({ org_id: org }), { permissions: ['Payouts:read'] }),
    'an expiry that is a date': org => withData(keyCreated({ org_id: org }), { expires_at: '2099-12-31' }),
    'an expiry that is a number': org => withData(keyCreated({ org_id: org }), { expires_at: 4_102_444_800 }),
    'no network at all': org => withData(keyCreated({ org_id: org }), { allowed_networks: [] }),
    'twenty-one networks': org =>
      withData(keyCreated({ org_id: org }), { allowed_networks: Array.from({ length: 21 }, () => '10.0.0.0/8') }),
    'an address that is no network': org =>
      withData(keyCreated({ org_id: org }), { allowed_networks: ['10.0.0.0/8', '203.0.113.7'] }),
    'networks that are no list': org => withData(keyCreated({ org_id: org }), { allowed_networks: '10.0.0.0/8' }),
    'the hash of a key in capitals': org =>
      withData(keyCreated({ org_id: org }), { secret_sha256: sha256('x').toUpperCase() }),
  },

  org_mismatch: {
    'the key of another organization': org => ({ ...rep(org), key: neighbourOf(org) }),
    'no key': org => ({ ...rep(org), key: null }),
    'a wrong key for a partition that is not the organization’s, and a wrong sum': (org, partitions) => ({
      ...elsewhere(withData(payout(org), { net_amount: '1' }), org, partitions, 1),
      key: neighbourOf(org),
    }),
    'an empty key': org => ({ ...rep(org), key: '' }),
    'a key with a space behind it': org => ({ ...rep(org), key: `${org} ` }),
    'a key with a byte that is not UTF-8': org => ({ ...rep(org), key: Buffer.from([...Buffer.from(org), 0xff]) }),
    'an API key of another organization': org => ({
      ...keyCreated({ org_id: org, id: 'key_9' }),
      key: neighbourOf(org),
    }),
  },

  partition_mismatch: {
    'a rep in the next partition': (org, partitions) => elsewhere(rep(org), org, partitions, 1),
    'a payout in the one after it': (org, partitions) => elsewhere(payout(org), org, partitions, 2),
    'a payroll record in the next partition': (org, partitions) =>
      elsewhere(payrollRecorded({ org_id: org }), org, partitions, 1),
    'a period in the next partition': (org, partitions) =>
      elsewhere(periodRecorded({ org_id: org, id: 'period_2' }), org, partitions, 1),
    'a void in the one after it': (org, partitions) => elsewhere(payrollVoided({ org_id: org }), org, partitions, 2),
    'a rep in structured mode': (org, partitions) => elsewhere(structured(rep(org)), org, partitions, 1),
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

const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')
