import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AnswerReader, BulkAnswer } from '../../../projector/elasticsearch/bulk-responses.ts'
import { isForNow, Unavailable } from '../../../projector/elasticsearch/client.ts'

const reader = new AnswerReader()
const read = (text: string): unknown => reader.deserialize(text)
const answer = (...items: object[]): string => JSON.stringify({ items })
const item = (_index: string, _id: string, status: unknown) => ({ index: { _index, _id, status } })
const sent = [
  { index: 'p-g1-payouts', id: 'org_a:payout_1' },
  { index: 'p-g1-chains', id: 'org_a:rep_1:period_1' },
]
const written = answer(item('p-g1-payouts', 'org_a:payout_1', 201), item('p-g1-chains', 'org_a:rep_1:period_1', 200))

const says = (text: string): boolean => {
  const body = read(text)
  expect(body).toBeInstanceOf(BulkAnswer)
  return (body as BulkAnswer).saysWritten(sent)
}

test('that all is written is read off the text', () => expect(says(written)).toBe(true))

test.each([
  ['one that is stale', written.replace('200', '409')],
  ['one that is refused for now', written.replace('201', '429')],
  ['one that is missing', answer(item('p-g1-payouts', 'org_a:payout_1', 201))],
  ['one too many', written.replace(']}', ',{"index":{"_index":"p","_id":"x","status":201}}]}')],
  ['another order', answer(...JSON.parse(written).items.toReversed())],
  ['another id', written.replace('payout_1"', 'payout_2"')],
  ['an id that goes on', written.replace('payout_1"', 'payout_11"')],
  ['an id that ends before', written.replace('payout_1"', 'payout_"')],
  ['another index', written.replace('g1-chains', 'g2-chains')],
  ['an error beside the status', written.replace('201}', '201,"error":{"type":"x"}}')],
  ['a status that begins like one of success', written.replace('201', '2010')],
  ['a status as text', written.replace('201', '"201"')],
  ['202', written.replace('201', '202')],
  ['something after its end', `${written} `],
  ['no end', written.slice(0, -2)],
  ['space between', written.replace('},{', '}, {')],
  ['nothing', answer()],
])('an answer with %s is not read so', (_, text) => expect(says(text)).toBe(false))

test('it says so of no other text than one that is parsed to it', () => {
  const part = fc.constantFrom('', '"', '}}', ',', '201', '200', '1', 'payout_1', '{"index":{"_index":"', ']}')
  const edited = fc.tuple(fc.nat(written.length), fc.nat(12), part).map(([at, length, put]) => {
    return `${written.slice(0, at)}${put}${written.slice(at + length)}`
  })
  fc.assert(
    fc.property(edited, text => {
      const body = new BulkAnswer(text)
      if (!body.saysWritten(sent)) return
      expect(body.items).toEqual(sent.map(({ index, id }) => item(index, id, expect.toBeOneOf([200, 201]))))
    }),
    { numRuns: 20_000 },
  )
})

describe('what is not that is read as ever', () => {
  test('items of a bulk answer, once asked for', () => {
    expect(read(written)).toHaveProperty('items', JSON.parse(written).items)
  })

  test('an error, wherever it stands: a block must not pass for refused credentials', () => {
    const blocked = read('{"items":[],"error":{"type":"cluster_block_exception"},"status":403}')
    expect(isForNow(403, blocked)).toBe(true)
    expect(isForNow(403, read('{"items":[]}'))).toBe(false)
  })

  test('any other answer', () => {
    for (const value of [{ docs: [{ _id: 'a' }] }, { error: { type: 'x' }, items: [] }, {}]) {
      expect(read(JSON.stringify(value))).toEqual(value)
    }
  })

  test('a bulk answer that is no JSON is one to try again', () => {
    const broken = read(`${written.slice(0, -3)}`) as BulkAnswer
    expect(() => broken.items).toThrow(Unavailable)
  })
})
