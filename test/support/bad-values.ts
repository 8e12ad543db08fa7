/** Events that are refused for one field that breaks a rule of its value or of the schema. */
import { type Make, payout, rep, textOf, withAmount, withText } from './bad-event.ts'
import { envelope, keyCreated, line, payrollRecorded, payrollVoided, periodRecorded, withData } from './events.ts'

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

/** Texts that are not valid amounts. */
const amounts = [
  ...['1e5', '1E5', '1e-7', '0x10', '0b1', 'NaN', 'Infinity', '+1', '++1', '--1', '01', '-01', '00', '00.5'],
  ...['5.', '.5', '.', '-', '-.5', '-0', '-0.00', '', ' 1', '1 ', '1\n', '\t1', '1\u00a0', '1\u0000', '1,5', '1_000'],
  // A Unicode minus sign; Arabic, Devanagari and full-width digits; an Arabic decimal point; one Arabic digit; others.
  ...['−1', '١', '१', '１', '1٫5', '1٢', '1.2.3', '½', '€1', '100.00 EUR'],
]

/** The same without quotes. Most of the texts above are then not JSON at all; these are. */
const numbers = ['100', '100.00', '-0.00', '1e5', '1E+5', '0', '1e400', 'true', '{}', '["1"]']

/** Ids whose letters, length or slashes would name another resource, or none, in a path. */
const ids = {
  'with a slash': 'rep_a/b',
  'that climbs out of its path': 'rep_../../_search',
  'with a slash in percent': 'rep_a%2Fb',
  'with a backslash': 'rep_a\\b',
  'with a colon': 'rep_a:b',
  'with a star': 'rep_*',
  'with a null character': 'rep_a\u0000',
  'with a hyphen': 'rep_a-b',
  'of 600 characters': `rep_${'a'.repeat(596)}`,
  'of 65': `rep_${'a'.repeat(65)}`,
  'with a Cyrillic letter that looks like an a': 'rep_\u0430',
  'with a Cyrillic letter in its prefix': 'r\u0435p_2',
  'with a full-width digit': 'rep_２',
  'with an Arabic digit': 'rep_٢',
  'with a space of no width': 'rep_2\u200b',
  'with a letter that is not of A to Z': 'rep_ä',
  'with a letter in two parts': 'rep_a\u0308',
  'with a prefix in capitals': 'REP_2',
  'with a line break': 'rep_2\n',
  'with a space before it': ' rep_2',
  'with nothing behind its prefix': 'rep_',
  'without a prefix': '2',
  'of another kind': 'payout_2',
}

const zones = [
  'Mars/Olympus_Mons',
  'europe/berlin',
  'Europe/Berlin ',
  '',
  'CET+1',
  '+01:00',
  '../UTC',
  '\u0415urope/Berlin',
]

const keyedBy = (org: string): Make => {
  const record = rep(org)
  return () => record
}

export const badValues: Readonly<Record<string, Make>> = {
  ...Object.fromEntries(amounts.map(amount => [`money ${JSON.stringify(amount)}`, money(amount)])),
  ...Object.fromEntries(
    numbers.map(number => [`${number} for money, without quotes`, (org: string) => withAmount(org, number)]),
  ),
  'money of 41 digits': money('1'.repeat(41)),
  'money with 41 places': money(`0.${'1'.repeat(41)}`),
  'an amount that only a prototype has': org =>
    withText(payout(org), textOf(payout(org)).replace(/"amount":("[^"]*")/, '"__proto__":{"amount":$1}')),
  'a number for a step’s amount': org =>
    withText(payout(org), textOf(payout(org)).replace(/"output_amount":"([^"]*)"/, '"output_amount":$1')),
  ...Object.fromEntries(Object.entries(ids).map(([name, id]) => [`an id ${name}`, inRep({ id })])),
  'a rep id with a slash, in a payout': org => withData(payout(org), { rep_id: 'rep_1/2' }),
  'a line id of 600 characters': org =>
    withData(payout(org), { line_items: [line({ id: `line_${'a'.repeat(595)}` })] }),
  'an organization with a slash, as its key': keyedBy('org_CANARY/../b'),
  'an organization of 600 characters, as its key': keyedBy(`org_${'CANARY'.repeat(100)}`.slice(0, 600)),
  'an organization with a look-alike letter, as its key': keyedBy('\u043erg_CANARY'),
  'an organization that is none': inRep({ org_id: 'CANARY' }),
  'a field that is missing': inRep({ email: undefined }),
  'null where a value must be': inRep({ name: null }),
  'a number for a text': inRep({ name: 7 }),
  'a text of 1,001': inRep({ name: '😀'.repeat(1_001) }),
  'a sealed text with padding': inRep({ name: `sealed:v1:k1:${'A'.repeat(39)}=` }),
  'a sealed text without a key id': inRep({ email: `sealed:v1:${'A'.repeat(40)}` }),
  'a sealed text of a version that nobody knows': inRep({ name: `sealed:v2:k1:${'A'.repeat(40)}` }),
  'a sealed text of 8,001': inRep({ name: `sealed:v1:k1:${'A'.repeat(8_001 - 13)}` }),
  'a sealed text that ends with a line break': inRep({ name: `sealed:v1:k1:${'A'.repeat(40)}\n` }),
  'a sealed label that is cut off': org =>
    withData(payrollRecorded({ org_id: org }), { destination: { type: 'other', label: 'sealed:v1:k1:CANARY' } }),
  'a lone surrogate as an escape': inRep({ name: 'CANARY \ud800' }),
  'two surrogates in the wrong order': inRep({ name: 'CANARY \udc00\ud800' }),
  'a date that is not in the calendar': inRep({ started_on: '2026-02-29' }),
  'a date with a time': inRep({ started_on: '2026-02-28T00:00:00Z' }),
  'a date in Arabic digits': inRep({ started_on: '٢٠٢٦-٠١-٠١' }),
  'a status that is none': inRep({ status: 'retired' }),
  'a kind of period that is none': inPeriod({ kind: 'week' }),
  ...Object.fromEntries(zones.map(zone => [`the zone ${JSON.stringify(zone)}`, inPeriod({ timezone: zone })])),
  'an instant in small letters': inPeriod({ starts_at: '2026-01-01t00:00:00z' }),
  'an instant without an offset': inPeriod({ starts_at: '2026-01-01T00:00:00' }),
  'a leap second': inPeriod({ starts_at: '2026-01-01T00:00:60Z' }),
  'ten fraction digits': inPeriod({ starts_at: '2026-01-01T00:00:00.0000000001Z' }),
  'an instant on February 30th': inPeriod({ starts_at: '2026-02-30T00:00:00Z', ends_at: '2026-04-01T00:00:00Z' }),
  'an offset of 24 hours': inPeriod({ starts_at: '2026-01-01T00:00:00+24:00' }),
  'a period that ends a year before it begins': inPeriod({ ends_at: '2025-02-01T00:00:00+01:00' }),
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
  'a currency with a look-alike letter': org => withData(payout(org), { currency: '\u0415UR' }),
  'lines as an object': org => withData(payout(org), { line_items: { 0: line(), length: 1 } }),
  'a category that is none': org => withData(payout(org), { line_items: [{ ...line(), category: 'CANARY' }] }),
  'a destination that is none': org =>
    withData(payrollRecorded({ org_id: org }), { destination: { type: 'cash', label: 'CANARY' } }),
  'a void that reverses nothing': org => withData(payrollVoided({ org_id: org }), { reverses_id: null }),
  'an event of a type it is not': org => ({ ...rep(org), headers: envelope('commission.period.recorded.v1') }),
  'a secret in place of its hash': org =>
    withData(keyCreated({ org_id: org }), { secret_sha256: 'CANARY_secret_of_a_key' }),
  'a key id with a slash': org => keyCreated({ org_id: org, id: 'key_a/b' }),
}
