/** The sentence that says why a record is parked: of every code, of each refused record, and without its content. */
import { describe, expect, test } from 'vitest'
import { detailOf } from '../../../../core/ledger/event/detail.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import { type ParkCode, parkCodes } from '../../../../schemas/errors.ts'
import type { Stream } from '../../../../schemas/events.ts'
import { partitionOf } from '../../../../schemas/partition.ts'
import { binaryHeaders, type Headers, record } from '../../../projector/records.ts'
import { makeBad } from '../../../support/bad-event.ts'
import { refused } from '../../../support/bad-events.ts'
import type { Outgoing } from '../../../support/events.ts'

const org = 'org_CANARYorg'
const PARTITIONS = 6

const detailOfBad = (code: ParkCode, bad: Outgoing): string => {
  const { key, value, headers, stream, partition } = bad
  const each = Object.entries(headers).flatMap(([name, texts]) =>
    [texts].flat().map(text => [name, text] as [string, string | Buffer]),
  )
  const raw = record({ key, value, headers: each })
  const source = { stream, partition: partition ?? partitionOf(key ?? '', PARTITIONS), partitions: PARTITIONS }
  return detailOf({ code, record: raw, source })
}
const allRefused = Object.entries(refused).flatMap(([code, all]) =>
  Object.entries(all).map(([name, make]) => {
    const { bad } = makeBad(make, org, PARTITIONS)
    return { code: code as ParkCode, name, detail: detailOfBad(code as ParkCode, bad), value: String(bad.value) }
  }),
)

test.each(allRefused)('$code, $name: a sentence that names the expected and the given', ({ detail }) => {
  expect(detail).toMatch(/^[^\n]{20,500}$/)
  expect(detail).toMatch(/expected|must/)
})

test.each(allRefused)('$code, $name: nothing that the publisher wrote', ({ detail, value }) => {
  expect(detail).not.toMatch(/CANARY|Ada|rep_\d|payout_\d|payroll_\d|period_\d|@|org_C/)
  // Texts of the data, except names of fields and values that the schema allows.
  const texts = [...value.matchAll(/"([^"\\]{6,})"(?!\s*:)/g)].map(([, text = '']) => text)
  const allowed = /^(active|departed|earned|recovered|adjusted|bank_account|month|commission\..*|null)$/
  for (const text of texts) if (!allowed.test(text)) expect(detail).not.toContain(text)
})

test('undecodable records of different causes have different sentences', () => {
  const ofUndecodable = allRefused.filter(({ code }) => code === 'record_undecodable')
  const sentences = new Set(ofUndecodable.map(({ detail }) => detail))
  expect(sentences.size).toBeGreaterThanOrEqual(30)
  expect(sentences).not.toContain(detailOf({ code: 'record_undecodable', record: undefined, source }))
})

const source = { stream: 'events', partition: 0, partitions: PARTITIONS } as const

test('every code has a sentence, also without the bytes of the record', () => {
  const sentences = parkCodes.map(code => detailOf({ code, record: undefined, source }))
  for (const sentence of sentences) expect(sentence).toMatch(/expected .*, got /)
  expect(new Set(sentences).size).toBe(parkCodes.length)
})

const type = 'commission.rep.recorded.v1'
const undecodable = (value: string | Buffer | null, headers: Headers = binaryHeaders(type)): string =>
  detailOf({ code: 'record_undecodable', record: record({ value, headers }), source })
const withHeader = (name: string, value: string | Buffer | null): Headers => [
  ...binaryHeaders(type).filter(([present]) => present !== name),
  [name, value],
]

describe('an undecodable record', () => {
  test.each<[string | Buffer | null, string]>([
    [null, 'value: expected JSON, got no value'],
    ['', 'value: expected strict JSON, got a value of no bytes'],
    ['\ufeff{}', 'value: expected strict JSON, got a byte-order mark (EF BB BF) in front of UTF-8'],
    [Buffer.from('\ufeff{}', 'utf16le'), 'value: expected JSON in UTF-8, got UTF-16 (it begins with FF FE)'],
    [Buffer.from('{"a":1}', 'utf16le'), 'value: expected strict JSON, got UTF-16 without a byte-order mark'],
    [Buffer.from([0x1f, 0x8b, 8, 0]), 'value: expected JSON in UTF-8, got gzip (it begins with 1F 8B)'],
    [
      Buffer.from([0, 0, 0, 0, 7, 0x7b, 0x7d]),
      'value: expected strict JSON, got a zero byte in front, as clients of a schema registry write it',
    ],
    [Buffer.from([0x7b, 0xff]), 'value: expected JSON in UTF-8, got bytes that are not UTF-8'],
    ['{"name":"Ada","na\\u006de":1}', 'value: expected strict JSON, got an object that has a key twice'],
    ['{"name":Ada}', 'value: expected strict JSON, got no JSON: wrong at character 9'],
    ['{"name":"Ada', 'value: expected strict JSON, got no JSON: it ends too early, after 12 characters'],
    ['{} {}', 'value: expected strict JSON, got no JSON: wrong at character 4'],
    ['['.repeat(33), 'value: expected strict JSON, got more than 32 levels of nesting'],
    [`"${'a'.repeat(8 * 1024 * 1024)}"`, 'value: expected at most 8388608 bytes, got 8388610'],
  ])('%# names what is wrong with its value', (value, sentence) => {
    expect(undecodable(value)).toBe(sentence)
  })

  test.each<[string, string | Buffer | null, string]>([
    ['content-type', null, 'header content-type: expected once, with a text in UTF-8'],
    [
      'content-type',
      'application/octet-stream',
      'header content-type: expected application/json, application/cloudevents+json or none, got application/octet-stream',
    ],
    [
      'content-type',
      'Ada/Lovelace',
      'header content-type: expected application/json, application/cloudevents+json or none, got another content type',
    ],
    ['ce_specversion', '0.3', 'header ce_specversion: expected 1.0, got a text of 3 characters'],
    ['ce_type', null, 'header ce_type: expected once, with a text in UTF-8'],
    [
      'ce_id',
      '',
      'header ce_id: expected a text that is not empty, without control characters, got a text of 0 characters',
    ],
    ['ce_source', 'a b', 'header ce_source: expected a URI reference (RFC 3986), got a text of 3 characters'],
    ['ce_time', 'now', 'header ce_time: expected an instant (RFC 3339) or nothing, got a text of 3 characters'],
  ])('names its header %s: %j', (name, value, sentence) => {
    expect(undecodable('{}', withHeader(name, value))).toBe(sentence)
  })

  test.each<[object | null | unknown[], string]>([
    [null, 'value: expected a CloudEvents event as a JSON object, got null'],
    [[], 'value: expected a CloudEvents event as a JSON object, got a list'],
    [{}, 'attribute specversion: expected 1.0, got nothing'],
    [{ specversion: 1 }, 'attribute specversion: expected 1.0, got a number'],
    [
      { specversion: '1.0', id: null },
      'attribute id: expected a text that is not empty, without control characters, got nothing',
    ],
    [{ datacontenttype: 'text/xml' }, 'attribute datacontenttype: expected application/json or none, got another one'],
  ])('in structured mode names its attribute: %j', (event, sentence) => {
    expect(undecodable(JSON.stringify(event), [['content-type', 'application/cloudevents+json']])).toBe(sentence)
  })
})

test('an event in structured mode without its content type is told, as an older SDK for Python writes it', () => {
  const event = { specversion: '1.0', id: '1', type, source: '/t', data: {} }
  for (const headers of [[], [['content-type', 'application/json']]] as Headers[])
    expect(undecodable(JSON.stringify(event), headers)).toBe(
      'header ce_specversion: expected 1.0, got nothing; the value is an event in structured mode, which needs content-type application/cloudevents+json',
    )
  expect(undecodable('{}', [])).toBe('header ce_specversion: expected 1.0, got nothing')
})

const withData = (code: ParkCode, eventType: string, data: object, stream: Stream = 'events'): string =>
  detailOf({
    code,
    record: {
      ...record({ value: JSON.stringify(data) }),
      headers: encodeHeaders(binaryHeaders(eventType).map(([name, text]) => [name, Buffer.from(String(text))])),
    },
    source: { ...source, stream },
  })
const period = {
  org_id: 'org_1',
  id: 'period_1',
  kind: 'month',
  name: 'January',
  timezone: 'UTC',
  starts_at: '2026-01-01T00:00:00Z',
  ends_at: '2026-01-01T00:00:00.000Z',
}
const payoutLine = { id: 'line_1', category: 'earned', description: 'x', amount: '1', deal_id: null }
const payout = {
  org_id: 'org_1',
  id: 'payout_1',
  rep_id: 'rep_1',
  period_id: 'period_1',
  supersedes_id: null,
  currency: 'EUR',
  net_amount: '1',
  earned_amount: '1',
  line_items: [payoutLine],
  recorded_at: '2026-02-02T07:15:04.250Z',
}
const recorded = 'commission.payout.recorded.v1'

describe('a record with wrong data', () => {
  test.each<[string, string, object, string]>([
    [
      'minus zero',
      recorded,
      { ...payout, net_amount: '-0.00' },
      '/net_amount must not be minus zero: zero has no sign, got a text of 5 characters',
    ],
    [
      'a sealed text that is none',
      type,
      {
        org_id: 'org_1',
        id: 'rep_1',
        name: 'sealed:v1:x',
        email: null,
        status: 'active',
        started_on: null,
        departed_on: null,
      },
      expect.stringMatching(/^\/name must match pattern ".*", got a text of 11 characters$/),
    ],
    [
      'null and text allowed',
      recorded,
      { ...payout, supersedes_id: 7 },
      '/supersedes_id must be string or null, got a number',
    ],
    ['a list that is an object', recorded, { ...payout, line_items: {} }, '/line_items must be array, got an object'],
    [
      'a line',
      recorded,
      { ...payout, line_items: [payoutLine, { ...payoutLine, category: 'gift' }] },
      '/line_items/1/category must be earned or recovered or adjusted, got a text of 4 characters',
    ],
    [
      'the same id twice',
      recorded,
      { ...payout, line_items: [payoutLine, { ...payoutLine, id: 'line_2' }, payoutLine] },
      '/line_items/2/id: expected an id that no other line has, got that of /line_items/0',
    ],
    [
      'an end at the start',
      'commission.period.recorded.v1',
      period,
      '/ends_at: expected an instant after /starts_at, got the same one',
    ],
    [
      'an end before the start',
      'commission.period.recorded.v1',
      { ...period, ends_at: '2025-12-31T23:59:59Z' },
      '/ends_at: expected an instant after /starts_at, got an earlier one',
    ],
  ])('%s: names the field and the rule', (_, eventType, data, sentence) => {
    expect(withData('data_invalid', eventType, data)).toEqual(sentence)
  })

  test('names the step of a trace that is out of order', () => {
    const step = {
      step: 1,
      name: 'a',
      strategy: 'b',
      strategy_version: '1',
      inputs: {},
      output_amount: '1',
      deal_id: null,
    }
    const { recorded_at, ...rest } = payout
    const data = { ...rest, calculated_at: recorded_at, calculation_trace: [step, { ...step, step: 3 }] }
    expect(withData('data_invalid', 'commission.payout.calculated.v1', data)).toBe(
      '/calculation_trace/1/step: expected 2, got 3',
    )
  })
})

test('an unknown type is told from a later version and from the other topic', () => {
  expect(withData('type_unknown', 'commission.rep.recorded.v2', {})).toMatch(
    /, got another version of commission\.rep\.recorded\.v1$/,
  )
  expect(withData('type_unknown', 'commission.api_key.revoked.v1', {})).toMatch(
    /, got commission\.api_key\.revoked\.v1, which has another topic$/,
  )
  expect(withData('type_unknown', 'com.ada.v1', {})).toMatch(
    /^type: expected commission\.rep\.recorded\.v1 or .*, got another type$/,
  )
})

test('a wrong record key is told: none, in quotation marks, with white space, or another', () => {
  const withKey = (key: string | null): string =>
    detailOf({
      code: 'org_mismatch',
      record: record({ key, value: '{"org_id":"org_1"}', headers: binaryHeaders(type) }),
      source,
    })
  expect(withKey(null)).toBe('record key: expected the text of data.org_id, got no key')
  expect(withKey('"org_1"')).toBe(
    'record key: expected the text of data.org_id, got it in quotation marks: the producer writes keys as JSON',
  )
  expect(withKey('org_1\n')).toBe('record key: expected the text of data.org_id, got it with white space around it')
  expect(withKey('org_22')).toBe('record key: expected the text of data.org_id (5 bytes), got another key of 6 bytes')
})

test('a wrong partition, a wrong sum and a missing supersedes_id name the expected', () => {
  const at = (key: string) => record({ key, value: JSON.stringify(payout), headers: binaryHeaders(recorded) })
  const expected = partitionOf('org_1', PARTITIONS)
  const partition = (expected + 1) % PARTITIONS
  expect(detailOf({ code: 'partition_mismatch', record: at('org_1'), source: { ...source, partition } })).toBe(
    `partition: expected ${expected} of 6 (murmur2 of the record key), got ${partition}`,
  )
  expect(detailOf({ code: 'lines_do_not_sum', record: at('org_1'), source })).toBe(
    '/net_amount: expected the sum of the amounts of all lines (1), got another amount',
  )
  expect(detailOf({ code: 'supersedes_mismatch', record: at('org_1'), source })).toMatch(/, got null$/)
})
