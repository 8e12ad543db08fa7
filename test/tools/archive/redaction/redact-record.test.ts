import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decode, type RawRecord } from '../../../../core/ledger/event/decode.ts'
import { validate } from '../../../../core/ledger/event/validate.ts'
import { encodeHeaders } from '../../../../core/log/kafka/encoded-headers.ts'
import { parseSealedText } from '../../../../schemas/sealed/sealed-text.ts'
import { createRedactor } from '../../../../tools/archive/redaction/redact-record.ts'
import { structured, withText } from '../../../support/bad-event.ts'
import { dataOf, type Outgoing, payrollRecorded, repRecorded, withData } from '../../../support/events.ts'
import { seal } from '../../../support/seal.ts'

const [org, rep, keyId] = ['org_a', 'rep_1', 'redacted-1']
const source = { stream: 'events', partition: 0, partitions: 1 } as const

const rawOf = ({ key, headers, value }: Outgoing, offset = 0): RawRecord => ({
  offset,
  timestamp: 1,
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: encodeHeaders(Object.entries(headers).map(([name, text]) => [name, Buffer.from(String(text))] as const)),
})
const redactor = () => createRedactor({ org, rep, keyId })
/** A record that is not unclear. */
const certain = <Result>(result: Result | 'unclear'): Result => {
  if (result === 'unclear') throw new Error('the record is unclear')
  return result
}
const redactOne = (event: Outgoing) => certain(redactor().redact(rawOf(event), source))
const redactedOf = (event: Outgoing) => redactOne(event)?.redacted(rawOf(event)).value
const textOf = (event: Outgoing): string | undefined => redactedOf(event)?.toString()

const verdictOf = (record: RawRecord) => {
  const envelope = decode(record)
  return typeof envelope === 'string' ? envelope : validate(envelope, record, source)
}
const codeOf = (record: RawRecord): string => {
  const verdict = verdictOf(record)
  return typeof verdict === 'string' ? verdict : verdict.type
}
const hashOf = (record: RawRecord): string | undefined => {
  const verdict = verdictOf(record)
  return typeof verdict === 'string' ? undefined : verdict.hash
}

const sealedName = seal('Canary Sealed', { org, record: rep, field: 'name', keyId: 'k1' })

test('name, e-mail address and label become sealed texts with the key of the redaction; nothing else changes', () => {
  const event = repRecorded({ org_id: org, name: 'Canary', email: 'canary@example.com' })
  const redacted = redactOne(event)
  expect(redacted?.fields).toEqual(['name', 'email'])
  const data = JSON.parse(redactedOf(event)?.toString() ?? '')
  expect([data.name, data.email].map(text => parseSealedText(text)?.keyId)).toEqual([keyId, keyId])
  expect({ ...data, name: 'Canary', email: 'canary@example.com' }).toEqual(dataOf(event))

  const paid = payrollRecorded({ org_id: org, destination: { type: 'other', label: 'Canary' } })
  expect(redactOne(paid)?.fields).toEqual(['destination.label'])
  expect(textOf(paid)).not.toContain('Canary')
})

test('an id that is written with escapes is the same id', () => {
  const event = repRecorded({ org_id: org, name: 'Canary' })
  const escaped = withText(event, String(event.value).replace('"rep_1"', '"r\\u0065p_1"'))
  expect(textOf(escaped)).toContain('"r\\u0065p_1"')
  expect(textOf(escaped)).not.toContain('Canary')
})

test('records of others, and texts that are empty, null or sealed, stay as they are', () => {
  const others = [
    repRecorded({ org_id: org, id: 'rep_2' }),
    repRecorded({ org_id: 'org_b' }),
    payrollRecorded({ org_id: org, rep_id: 'rep_2' }),
    repRecorded({ org_id: org, name: '', email: null }),
    repRecorded({ org_id: org, name: sealedName }),
    withText(repRecorded({ org_id: org }), null),
    withText(repRecorded({ org_id: org }), '{"org_id":"org_a","id":"rep_11","name":"x"'),
    withText(repRecorded({ org_id: org }), '{"org_id":"org_a","id":"xrep_1","rep_id":"rep_2","name":"x"'),
  ]
  for (const event of others) expect(redactOne(event), String(event.value)).toBeUndefined()
})

test('a record in structured mode, with its own spacing, keeps every other character', () => {
  const event = structured(repRecorded({ org_id: org, name: 'Canary' }))
  const spaced = withText(event, JSON.stringify(JSON.parse(String(event.value)), null, 3))
  const redacted = textOf(spaced) ?? ''
  const { name } = JSON.parse(redacted).data
  expect(redacted.replace(name, 'Canary')).toBe(spaced.value)
})

describe('a parked record stays parked for the same reason', () => {
  const event = repRecorded({ org_id: org })
  const paid = payrollRecorded({ org_id: org })
  test.each([
    ['a name that is too long', withData(event, { name: `Canary${'x'.repeat(1000)}` })],
    ['a name that is no text', withData(event, { name: { first: 'Canary' } })],
    ['a name with half a character', withData(event, { name: 'Canary \ud800' })],
    ['a broken sealed text', withData(event, { name: 'sealed:v1:Canary' })],
    ['a name without a status', withData(event, { name: 'Canary', status: undefined })],
    ['a destination that is a text', withData(paid, { destination: 'Canary' })],
    ['a destination that is a list', withData(paid, { destination: ['Canary'] })],
    ['a label that is a list', withData(paid, { destination: { type: 'other', label: ['Canary'] } })],
    ['another organization as record key', { ...withData(event, { name: 'Canary' }), key: 'org_b' }],
    ['a record that is cut off', withText(event, '{"org_id":"org_a","id":"rep_1","name":"Canary"')],
    ['a name twice', withText(event, String(event.value).replace('"name"', '"name":"Canary","name"'))],
    [
      'no content type that is known',
      { ...withData(event, { name: 'Canary' }), headers: { 'content-type': 'text/xml' } },
    ],
    ['an unknown type', { ...withData(event, { name: 'Canary' }), headers: { ...event.headers, ce_type: 'rep.v9' } }],
  ])('%s', (_, bad) => {
    const before = rawOf(bad)
    const redacted = redactOne(bad)
    const after = redacted?.redacted(before) ?? before
    expect(after.value?.toString()).not.toContain('Canary')
    expect(redacted).toBeDefined()
    expect(codeOf(after)).toBe(codeOf(before))
    expect(codeOf(before)).not.toMatch(/recorded\.v1$/)
  })
})

test('whatever was published: equal events stay equal, different ones different, and each is decided as before', () => {
  const text = fc.constantFrom<unknown>(
    'Ann',
    'Ben',
    '',
    'A\u0301',
    sealedName,
    'sealed:v1:Ann',
    'y'.repeat(1001),
    7,
    null,
  )
  const rep1 = fc
    .record({ name: text, email: text, status: fc.constantFrom('active', 'departed') })
    .map(data => withData(repRecorded({ org_id: org }), data))
  const label = fc.constantFrom<unknown>('Bank', 'Safe', '', 7, 'sealed:v1:Bank')
  const paid = fc
    .record({
      id: fc.constantFrom('payroll_1', 'payroll_2'),
      destination: fc.record({ type: fc.constant('other'), label }),
    })
    .map(data => withData(payrollRecorded({ org_id: org }), data))
  fc.assert(
    fc.property(fc.array(fc.oneof(rep1, paid), { maxLength: 12 }), events => {
      const { redact } = redactor()
      const before = events.map(rawOf)
      const after = before.map(record => certain(redact(record, source))?.redacted(record) ?? record)
      expect(after.map(codeOf)).toEqual(before.map(codeOf))
      const patternOf = (hashes: readonly (string | undefined)[]) => hashes.map(one => hashes.indexOf(one))
      expect(patternOf(after.map(hashOf))).toEqual(patternOf(before.map(hashOf)))
      for (const { value } of after) expect(String(value)).not.toMatch(/Ann|Ben|Bank|Safe|yyy/)
      // A second redaction finds nothing, except values that no field may have.
      const { redact: again } = redactor()
      for (const record of after) if (codeOf(record) !== 'data_invalid') expect(again(record, source)).toBeUndefined()
    }),
  )
})
