import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonical } from '../../../../core/ledger/event/canonical.ts'
import { parseFastPayout } from '../../../../core/ledger/event/fast-payout.ts'
import { JsonText } from '../../../../core/ledger/event/json-text.ts'
import { parseStrictJson } from '../../../../core/ledger/event/strict-json.ts'
import { type PartitionSource, validate } from '../../../../core/ledger/event/validate.ts'
import type { PayoutCalculatedData } from '../../../../schemas/events.ts'
import { matchesSchema } from '../../../../schemas/validate.ts'
import { anyPayout, CALCULATED, RECORDED } from '../../../projector/any-payout.ts'
import { record } from '../../../projector/records.ts'
import { calculated, line, recorded, step } from '../../../schemas/examples.ts'

const source: PartitionSource = { stream: 'events', partition: 0, partitions: 1 }

/** The result of the general path: parser, schema, canonical form and rules. */
const properly = (type: string, text: string) => {
  const parsed = parseStrictJson(Buffer.from(text), 32)
  if (parsed === undefined) return 'record_undecodable'
  return validate({ type, id: 'event-1', data: parsed.value }, record({ value: text }), source)
}
/** Expects the same result from the fast path if it accepts the text. Returns whether it does. */
const expectSame = (type: string, text: string): boolean => {
  const plain = parseFastPayout(type, text)
  if (plain === undefined) return false
  const event = { type, data: parseStrictJson(Buffer.from(text), 32)?.value }
  if (!matchesSchema('events', event)) return expect.unreachable(`not valid: ${text}`)
  expect(text).toBe(JSON.stringify(canonical(event).data))
  const verdict = validate({ type, id: 'event-1', data: plain.data, plain }, record({ value: text }), source)
  expect(verdict).toEqual(properly(type, text))
  // Also if the amounts do not add up.
  const { line_items: lines, calculation_trace: trace, ...rest } = event.data as PayoutCalculatedData
  const lists = { line_items: asText(lines), ...(trace && { calculation_trace: asText(trace) }) }
  expect(plain).toEqual({ data: { ...rest, ...lists }, amounts: lines.map(line => line.amount) })
  return true
}
const asText = (list: readonly unknown[]) => new JsonText(JSON.stringify(list))

/** A payout with the given number of lines and steps. */
const many = (count: number) => ({
  ...calculated,
  net_amount: String(100 * count),
  line_items: Array.from({ length: count }, (_, at) => ({ ...line, id: `line_${at}`, amount: '100' })),
  calculation_trace: Array.from({ length: count }, (_, at) => ({ ...step, step: at + 1 })),
})

describe.each([CALCULATED, RECORDED] as const)('%s', type => {
  test('read by the fast path is what the general path reads, whatever its content', () => {
    let plain = 0
    fc.assert(
      fc.property(anyPayout(type), payout => {
        if (expectSame(type, payout.toString())) plain++
      }),
      { numRuns: 4_000 },
    )
    expect(plain).toBeGreaterThan(400)
  })

  test('with changed characters is read as by the general path, or not by the fast path', () => {
    const characters = fc.constantFrom(
      '',
      ' ',
      '"',
      '\\',
      ',',
      ':',
      '{',
      '}',
      '[',
      ']',
      '0',
      '1',
      'a',
      '-',
      '.',
      'e',
      'é',
      '\n',
      '"",',
      '{}',
    )
    const edit = fc.tuple(fc.nat(), fc.nat(12), characters)
    const whole = JSON.stringify(
      type === CALCULATED ? many(2) : { ...recorded, net_amount: '200', line_items: many(2).line_items },
    )
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), edits => {
        let text = whole
        for (const [place, length, inserted] of edits) {
          const at = place % text.length
          text = `${text.slice(0, at)}${inserted}${text.slice(at + length)}`
        }
        expectSame(type, text)
      }),
      { numRuns: 4_000 },
    )
  })
})

describe('a payout as JSON.stringify writes it', () => {
  const { calculation_trace: _, calculated_at: __, ...fields } = calculated
  test.each([
    ['the example', CALCULATED, calculated],
    ['the example of a recorded payout', RECORDED, recorded],
    ['without lines and steps', CALCULATED, { ...calculated, net_amount: '0', line_items: [], calculation_trace: [] }],
    ['with a hundred of both', CALCULATED, many(100)],
    [
      'with negative amounts',
      CALCULATED,
      { ...many(2), net_amount: '-0.20', line_items: many(2).line_items.map(one => ({ ...one, amount: '-0.10' })) },
    ],
    [
      'with text of any script',
      CALCULATED,
      { ...calculated, line_items: [{ ...line, description: 'Zoë 好 😀 \u2028' }] },
    ],
    [
      'with lines that look like other fields',
      CALCULATED,
      { ...calculated, line_items: [{ ...line, description: '],calculation_trace:[' }] },
    ],
  ])('is accepted by the fast path: %s', (_, type, data) => {
    expect(expectSame(type, JSON.stringify(data))).toBe(true)
  })

  test('is returned with its lists as text and all other fields as they are', () => {
    const text = JSON.stringify(calculated)
    const { line_items, calculation_trace } = calculated
    expect(parseFastPayout(CALCULATED, text)).toEqual({
      data: {
        ...calculated,
        line_items: new JsonText(JSON.stringify(line_items)),
        calculation_trace: new JsonText(JSON.stringify(calculation_trace)),
      },
      amounts: line_items.map(({ amount }) => amount),
    })
  })

  test.each([
    ['with spaces', JSON.stringify(calculated, null, 1)],
    ['with something after it', `${JSON.stringify(calculated)} `],
    ['with an escape', JSON.stringify(calculated).replace('payout_', 'payout\\u005f')],
    [
      'in another order',
      JSON.stringify({
        ...fields,
        calculated_at: calculated.calculated_at,
        calculation_trace: calculated.calculation_trace,
      }),
    ],
    ['with an unknown field', JSON.stringify({ ...calculated, new: 1 })],
    ['with a field twice', JSON.stringify(calculated).replace('{', '{"org_id":"org_1",')],
    ['of another type', JSON.stringify(recorded)],
    ['without its trace', JSON.stringify({ ...fields, calculated_at: calculated.calculated_at })],
    ['with a line twice', JSON.stringify({ ...calculated, line_items: [line, line] })],
    ['with a step that is not the next', JSON.stringify({ ...calculated, calculation_trace: [{ ...step, step: 2 }] })],
    [
      'with inputs in another order',
      JSON.stringify({ ...calculated, calculation_trace: [{ ...step, inputs: { b: '1', a: '2' } }] }),
    ],
    [
      'with an input twice',
      JSON.stringify({ ...calculated, calculation_trace: [{ ...step, inputs: { a: '1' } }] }).replace(
        '"a":"1"',
        '"a":"1","a":"1"',
      ),
    ],
    [
      'with inputs that JSON.parse reorders',
      JSON.stringify({ ...calculated, calculation_trace: [{ ...step, inputs: { a: '1' } }] }).replace(
        '"a":"1"',
        '"10":"1","9":"2"',
      ),
    ],
    ['on a day that does not exist', JSON.stringify({ ...calculated, calculated_at: '2026-02-30T00:00:00Z' })],
    ['without a comma between lines', JSON.stringify(many(2)).replace('},{', '};{')],
    ['that is very long', JSON.stringify(many(500))],
  ])('is left to the general path %s', (_, text) => {
    expect(parseFastPayout(CALCULATED, text)).toBeUndefined()
  })

  test('takes linear time for a long text that almost matches', () => {
    const inputs = Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`k${String(at).padStart(4, '0')}`, '']))
    const almost = JSON.stringify({ ...calculated, calculation_trace: [{ ...step, inputs }] }).replace(
      '"output_amount"',
      '"output"',
    )
    const began = performance.now()
    for (let times = 0; times < 20; times++) expect(parseFastPayout(CALCULATED, almost)).toBeUndefined()
    // Takes milliseconds. Quadratic time would take minutes.
    expect(performance.now() - began).toBeLessThan(10_000)
  })
})
