import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonText } from '../../../../core/ledger/event/json-text.ts'
import { parseStrictJson } from '../../../../core/ledger/event/strict-json.ts'
import { type PartitionSource, type ValidEvent, validate } from '../../../../core/ledger/event/validate.ts'
import type { ParkCode } from '../../../../schemas/errors.ts'
import type { EventType, PayoutCalculatedData } from '../../../../schemas/events.ts'
import { partitionOf } from '../../../../schemas/partition.ts'
import { record } from '../../../projector/records.ts'
import { anyText } from '../../../schemas/any-text.ts'
import { calculated, examples, line, period, recorded, rep, step } from '../../../schemas/examples.ts'

const events: PartitionSource = { stream: 'events', partition: 0, partitions: 1 }
const validateText = (type: string, text: string, key: string | Buffer | null = 'org_1', source = events) => {
  const parsed = parseStrictJson(Buffer.from(text), 32)
  return validate({ type, id: 'event-1', data: parsed?.value }, record({ key, value: text }), source)
}
const validateData = (type: string, data: unknown, key?: string | Buffer | null, source?: PartitionSource) =>
  validateText(type, JSON.stringify(data), key, source)

const valid = (verdict: ValidEvent | ParkCode): ValidEvent =>
  typeof verdict === 'string' ? expect.unreachable(verdict) : verdict
const calculatedType = 'commission.payout.calculated.v1'
const validPayout = (text: string): ValidEvent => valid(validateText(calculatedType, text))
const payout = (change: Partial<PayoutCalculatedData>) => validateData(calculatedType, { ...calculated, ...change })

describe.each(examples.map(({ type, data, stream }) => [type, data, stream] as const))('%s', (type, data, stream) => {
  test('accepts the example, with unchanged data', () => {
    const verdict = valid(validateData(type, data, 'org_1', { ...events, stream }))
    expect(verdict).toEqual({ type, data: verdict.data, hash: expect.stringMatching(/^[\w-]{43}$/) })
    expect(jsonOf(verdict.data)).toBe(JSON.stringify(data))
  })
})

/** The JSON of data whose lists may already be text. */
const jsonOf = (data: object): string =>
  JSON.stringify(data, (_, value) => (value instanceof JsonText ? JSON.parse(value.text) : value))

describe('the hash of an event', () => {
  test.each([
    ['commission.payout.calculated.v1', calculated],
    ['commission.payout.recorded.v1', recorded],
    ['commission.rep.recorded.v1', rep],
  ] as const)('%s is the SHA-256 of the type and the JSON of the data', (type, data) => {
    const expected = createHash('sha256')
      .update(`${type}\n${JSON.stringify(data)}`)
      .digest('base64url')
    expect(valid(validateData(type, data)).hash).toBe(expected)
  })

  const original = validPayout(JSON.stringify(calculated))

  /** The same JSON with the keys of every object reversed. */
  const turned = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map(turned)
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([name, inner]) => [name, turned(inner)]),
    )
  }

  test.each([
    ['other spacing', JSON.stringify(calculated, null, 2)],
    ['another order of keys', JSON.stringify(turned(calculated))],
    ['escapes', JSON.stringify(calculated).replaceAll('line_1', '\\u006cine_1').replaceAll('/', '\\/')],
    ['unknown fields', JSON.stringify({ ...calculated, new_in_v2: [1], line_items: [{ ...line, tax: '1' }] })],
    ['an unknown field named __proto__', JSON.stringify(calculated).replace('{', '{"__proto__":{"id":"x"},')],
  ])('is the same with %s', (_, text) => {
    expect(validPayout(text)).toEqual(original)
  })

  test('is the same for any envelope', () => {
    const raw = record({ value: JSON.stringify(calculated), offset: 9, timestamp: 9, headers: [['x', 'y']] })
    expect(validate({ type: calculatedType, id: 'another', data: calculated }, raw, events)).toEqual(original)
  })

  test.each<[string, Partial<PayoutCalculatedData>]>([
    ['an amount with other digits of the same value', { net_amount: '100.0' }],
    ['an instant in another notation', { calculated_at: '2026-02-01T08:30:00.0Z' }],
    ['lines in another order', { line_items: [{ ...line, id: 'line_2' }, line], net_amount: '200' }],
    ['another text, to the byte', { line_items: [{ ...line, description: 'Deal closed ' }] }],
    ['composed for decomposed text', { line_items: [{ ...line, description: 'é' }] }],
    ['null for an id', { line_items: [{ ...line, deal_id: null }] }],
    ['another input', { calculation_trace: [{ ...step, inputs: {} }] }],
    ['an additional empty input', { calculation_trace: [{ ...step, inputs: { ...step.inputs, '': '' } }] }],
  ])('differs for %s', (_, change) => {
    const changed = valid(payout(change))
    expect(changed.hash).not.toBe(original.hash)
    expect(valid(payout({ line_items: [{ ...line, description: 'e\u0301' }] })).hash).not.toBe(changed.hash)
  })

  test('differs for an amount of "1.0" and of "1.00"', () => {
    const of = (amount: string) => valid(payout({ net_amount: amount, line_items: [{ ...line, amount }] }))
    expect(of('1.0').hash).not.toBe(of('1.00').hash)
    expect(JSON.parse(jsonOf(of('1.00').data))).toMatchObject({ net_amount: '1.00', line_items: [{ amount: '1.00' }] })
  })

  test('differs for a different type with the same data', () => {
    const { calculation_trace: _, calculated_at: recorded_at, ...rest } = calculated
    const data = { ...calculated, ...rest, recorded_at }
    const types: EventType[] = [calculatedType, 'commission.payout.recorded.v1']
    expect(new Set(types.map(type => valid(validateData(type, data)).hash)).size).toBe(2)
  })
})

describe('the data of a valid event', () => {
  test('has only the known fields, in the order of the schema', () => {
    const text = JSON.stringify({ zz: 1, ...rep, name: 'Ada', aa: { deep: [] }, toString: 'x', hash: 'x' })
    expect(JSON.stringify(valid(validateText('commission.rep.recorded.v1', text)).data)).toBe(
      JSON.stringify({ ...rep, name: 'Ada' }),
    )
  })

  test('keeps every key of free-form maps, in a fixed order', () => {
    const inputs = '{"b":"1","":"2","a\\nb":"3","__proto__":"4","constructor":"5","10":"6","9":"7","ü":"8"}'
    const text = JSON.stringify(calculated).replace(JSON.stringify(step.inputs), inputs)
    expect(jsonOf(validPayout(text).data)).toContain(
      '"inputs":{"9":"7","10":"6","":"2","__proto__":"4","a\\nb":"3","b":"1","constructor":"5","ü":"8"}',
    )
  })

  test('is the same for any order of the keys in a map', () => {
    const hashWith = (keys: readonly string[]): string => {
      const inputs = Object.fromEntries(keys.map(key => [`k${key}`, 'x']))
      return validPayout(JSON.stringify({ ...calculated, calculation_trace: [{ ...step, inputs }] })).hash
    }
    fc.assert(
      fc.property(fc.uniqueArray(anyText(), { maxLength: 8 }), keys => {
        expect(hashWith(keys)).toBe(hashWith(keys.toReversed()))
      }),
    )
  })
})

describe('the rules that span several fields', () => {
  const lines = (...ids: string[]) => ids.map(id => ({ ...line, id, amount: '0' }))
  const steps = (...numbers: number[]) => numbers.map(number => ({ ...step, step: number }))

  test('two lines with one id are data_invalid, also in a recorded payout', () => {
    const { calculation_trace: _, calculated_at: recorded_at, ...rest } = calculated
    const twice = { net_amount: '0', line_items: lines('line_1', 'line_2', 'line_1') }
    expect(payout(twice)).toBe('data_invalid')
    expect(validateData('commission.payout.recorded.v1', { ...rest, recorded_at, ...twice })).toBe('data_invalid')
    expect(payout({ net_amount: '0', line_items: lines('line_1', 'line_2', 'line_01') })).toBeTypeOf('object')
  })

  test.each([[[1]], [[1, 2, 3]], [[]]])('accepts steps %j', numbers => {
    expect(payout({ calculation_trace: steps(...numbers) })).toBeTypeOf('object')
  })
  test.each([[[2]], [[1, 3]], [[1, 1]], [[2, 1]], [[0]], [[1.5]]])('refuses steps %j as data_invalid', numbers => {
    expect(payout({ calculation_trace: steps(...numbers) })).toBe('data_invalid')
  })

  test.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000000001Z', true],
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', false],
    ['2026-01-01T00:00:00.000000001Z', '2026-01-01T00:00:00Z', false],
    ['2026-01-01T00:00:00+02:00', '2026-01-01T00:00:00+01:00', true],
    ['2026-01-01T01:00:00Z', '2026-01-01T01:30:00+01:00', false],
    ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00+01:00', false],
  ])('a period from %s to %s is valid: %s', (starts_at, ends_at, expected) => {
    const verdict = validateData('commission.period.recorded.v1', { ...period, starts_at, ends_at })
    expect(verdict === 'data_invalid').toBe(!expected)
  })
})

describe('the record key', () => {
  test.each([null, '', 'org_2', 'org_11', 'ORG_1', 'org_1 ', Buffer.from('org_1', 'utf16le')])(
    '%j instead of the organization is org_mismatch',
    key => {
      expect(validateData('commission.rep.recorded.v1', rep, key)).toBe('org_mismatch')
    },
  )

  test('determines one partition; in any other the record is partition_mismatch', () => {
    for (let partition = 0; partition < 6; partition++) {
      const verdict = validateData('commission.rep.recorded.v1', rep, 'org_1', { ...events, partition, partitions: 6 })
      expect(verdict === 'partition_mismatch').toBe(partition !== partitionOf('org_1', 6))
    }
  })
})

describe('if several codes apply, the first one of the contract wins', () => {
  const elsewhere = { ...events, partition: 1, partitions: 2 }
  const home = partitionOf('org_1', 2) === 1 ? { ...elsewhere, partition: 0 } : elsewhere
  const wrong = { lines: { net_amount: '1' }, data: { currency: 'eur' } }

  test.each<[ParkCode | 'none', string, Partial<PayoutCalculatedData>, string, PartitionSource]>([
    ['type_unknown', 'commission.payout.deleted.v1', { ...wrong.data, ...wrong.lines }, 'org_2', home],
    ['data_invalid', calculatedType, { ...wrong.data, ...wrong.lines }, 'org_2', home],
    ['data_invalid', calculatedType, { line_items: [line, line] }, 'org_2', home],
    ['org_mismatch', calculatedType, wrong.lines, 'org_2', home],
    ['partition_mismatch', calculatedType, wrong.lines, 'org_1', home],
    ['lines_do_not_sum', calculatedType, wrong.lines, 'org_1', events],
    ['none', calculatedType, {}, 'org_1', events],
  ])('%s', (code, type, change, key, source) => {
    const verdict = validateData(type, { ...calculated, ...change }, key, source)
    expect(typeof verdict === 'string' ? verdict : 'none').toBe(code)
  })

  test('an event on the wrong topic is type_unknown', () => {
    for (const { type, data, stream } of examples) {
      const other = { ...events, stream: stream === 'events' ? 'api-keys' : 'events' } as const
      expect(validateData(type, data, 'org_1', other)).toBe('type_unknown')
    }
  })

  test('missing data and null are data_invalid', () => {
    for (const data of [undefined, null]) {
      expect(validate({ type: calculatedType, id: '1', data }, record({}), events)).toBe('data_invalid')
    }
  })
})

test('every digit of every line counts: the lines add up exactly or not at all', () => {
  const lines = (...amounts: string[]) => amounts.map((amount, at) => ({ ...line, id: `line_${at}`, amount }))
  expect(payout({ net_amount: '0.3', line_items: lines('0.1', '0.2') })).toBeTypeOf('object')
  expect(payout({ net_amount: '0.3', line_items: lines('0.1', '0.2000000000000000000000000000000000000001') })).toBe(
    'lines_do_not_sum',
  )
  expect(payout({ net_amount: '0', line_items: [] })).toBeTypeOf('object')
  expect(payout({ net_amount: '1', line_items: [] })).toBe('lines_do_not_sum')
  expect(payout({ net_amount: '-3', line_items: lines('2', '-5') })).toBeTypeOf('object')
})
