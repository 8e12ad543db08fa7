import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Unanswered } from '../../../../core/runtime/unanswered.ts'
import { AnswerReader, BulkAnswer } from '../../../../core/store/elasticsearch/bulk-responses.ts'
import { isTransient } from '../../../../core/store/elasticsearch/client.ts'
import { addressIn } from '../../../support/layout.ts'

const reader = new AnswerReader()
const read = (text: string): unknown => reader.deserialize(text)
const answer = (...items: object[]): string => JSON.stringify({ items })
const item = (_index: string, _id: string, status: unknown) => ({ index: { _index, _id, status } })
const sent = [
  { address: addressIn('p-g1-payouts', 'org_a:payout_1') },
  { address: addressIn('p-g1-chains', 'org_a:rep_1:period_1') },
]
const written = answer(item('p-g1-payouts', 'org_a:payout_1', 201), item('p-g1-chains', 'org_a:rep_1:period_1', 200))

const says = (text: string): boolean => {
  const body = read(text)
  expect(body).toBeInstanceOf(BulkAnswer)
  return (body as BulkAnswer).confirmsWrites(sent)
}

test('a response that says all is written is recognized from its text', () => expect(says(written)).toBe(true))

test.each([
  ['a stale item', written.replace('200', '409')],
  ['a temporarily refused item', written.replace('201', '429')],
  ['a missing item', answer(item('p-g1-payouts', 'org_a:payout_1', 201))],
  ['an extra item', written.replace(']}', ',{"index":{"_index":"p","_id":"x","status":201}}]}')],
  ['another order', answer(...JSON.parse(written).items.toReversed())],
  ['another id', written.replace('payout_1"', 'payout_2"')],
  ['an id that is too long', written.replace('payout_1"', 'payout_11"')],
  ['an id that is too short', written.replace('payout_1"', 'payout_"')],
  ['another index', written.replace('g1-chains', 'g2-chains')],
  ['an error beside the status', written.replace('201}', '201,"error":{"type":"x"}}')],
  ['a status that starts with 201', written.replace('201', '2010')],
  ['a status as text', written.replace('201', '"201"')],
  ['202', written.replace('201', '202')],
  ['text after its end', `${written} `],
  ['no end', written.slice(0, -2)],
  ['a space between items', written.replace('},{', '}, {')],
  ['no items', answer()],
])('a response with %s is not recognized', (_, text) => expect(says(text)).toBe(false))

test('no text is recognized unless parsing it gives the same result', () => {
  const part = fc.constantFrom('', '"', '}}', ',', '201', '200', '1', 'payout_1', '{"index":{"_index":"', ']}')
  const edited = fc.tuple(fc.nat(written.length), fc.nat(12), part).map(([at, length, put]) => {
    return `${written.slice(0, at)}${put}${written.slice(at + length)}`
  })
  fc.assert(
    fc.property(edited, text => {
      const body = new BulkAnswer(text)
      if (!body.confirmsWrites(sent)) return
      expect(body.items).toEqual(
        sent.map(({ address }) => item(address._index, address._id, expect.toBeOneOf([200, 201]))),
      )
    }),
    { numRuns: 20_000 },
  )
})

describe('any other response is parsed as usual:', () => {
  test('the items of a bulk response, when they are first used', () => {
    expect(read(written)).toHaveProperty('items', JSON.parse(written).items)
  })

  test('an error anywhere in the response: a cluster block must not look like refused credentials', () => {
    const blocked = read('{"items":[],"error":{"type":"cluster_block_exception"},"status":403}')
    expect(isTransient(403, blocked)).toBe(true)
    expect(isTransient(403, read('{"items":[]}'))).toBe(false)
  })

  test('any other response', () => {
    for (const value of [{ docs: [{ _id: 'a' }] }, { error: { type: 'x' }, items: [] }, {}]) {
      expect(read(JSON.stringify(value))).toEqual(value)
    }
  })

  test('a bulk response that is not JSON is a temporary error', () => {
    const broken = read(`${written.slice(0, -3)}`) as BulkAnswer
    expect(() => broken.items).toThrow(Unanswered)
  })
})
