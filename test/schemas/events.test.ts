import { isIP } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type EventType, eventSchemas, type Stream } from '../../schemas/events.ts'
import { isEventType, matchesSchema } from '../../schemas/validate.ts'
import { keyPermissions } from '../../schemas/values.ts'
import { calculated, examples, keyCreated, line, payment, period, rep, step } from './examples.ts'

type Path = readonly (string | number)[]
type Data = Record<string, unknown>

/** The fields of each type that the contract lets be null. All other fields may not be null. */
const nullable: Partial<Record<EventType, readonly string[]>> = {
  'commission.rep.recorded.v1': ['email', 'started_on', 'departed_on'],
  'commission.payout.calculated.v1': ['supersedes_id', 'line_items.0.deal_id', 'calculation_trace.0.deal_id'],
  'commission.payout.recorded.v1': ['supersedes_id', 'line_items.0.deal_id'],
  'commission.payroll.recorded.v1': ['payout_id'],
}

/** The path of every field of the example, also in lines, steps and destinations. Names within `inputs` are data. */
const pathsOf = (value: unknown, at: Path = []): Path[] => {
  if (typeof value !== 'object' || value === null || at.at(-1) === 'inputs') return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = [...at, Array.isArray(value) ? Number(name) : name]
    return [...(Array.isArray(value) ? [] : [path]), ...pathsOf(inner, path)]
  })
}

/** A copy of the data with one field changed. `undefined` removes the field. */
const withChange = <Value>(value: Value, [name, ...rest]: Path, change: unknown): Value => {
  if (name === undefined) return change as Value
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>
  if (rest.length === 0 && change === undefined) delete copy[name]
  else copy[name] = withChange(copy[name], rest, change)
  return copy as Value
}

describe.each(examples.map(example => [example.type, example] as const))('%s', (type, { stream, data }) => {
  const matches = (changed: unknown): boolean => matchesSchema(stream, { type, data: changed })
  const paths = pathsOf(data).map(path => [path.join('.'), path] as const)

  test('accepts the example', () => {
    expect(matches(data)).toBe(true)
  })

  test.each(paths)('refuses data without %s', (_, path) => {
    expect(matches(withChange(data, path, undefined))).toBe(false)
  })

  test.each(paths)('accepts null for %s only if the contract allows it', (name, path) => {
    expect(matches(withChange(data, path, null))).toBe(nullable[type]?.includes(name) ?? false)
  })

  test.each(paths)('refuses a value of another type for %s', (_, path) => {
    for (const wrong of [1, 1.5, true, [], {}, [[]], 'no such value, whatever the field is\ud800']) {
      const changed = withChange(data, path, wrong)
      if (JSON.stringify(changed) !== JSON.stringify(data))
        expect([wrong, matches(changed)]).toEqual([wrong, expected(path, wrong)])
    }
  })

  test('accepts unknown fields at every level', () => {
    const objects: Path[] = [[], ...paths.map(([, path]) => path.slice(0, -1))]
    for (const path of objects)
      expect(matches(withChange(data, [...path, 'not_of_this_version'], { any: [1] }))).toBe(true)
  })

  test('refuses data that is not an object', () => {
    for (const wrong of [null, undefined, [], [data], 'text', 1, true, {}]) expect(matches(wrong)).toBe(false)
  })

  test('is known on its own topic only', () => {
    const other: Stream = stream === 'events' ? 'api-keys' : 'events'
    expect([isEventType(stream, type), isEventType(other, type)]).toEqual([true, false])
    expect(matchesSchema(other, { type, data })).toBe(false)
  })
})

/** The few places where a wrong value is valid: empty lists and maps. */
const expected = (path: Path, value: unknown): boolean => {
  const name = path.at(-1)
  if (name === 'line_items' || name === 'calculation_trace' || name === 'permissions')
    return JSON.stringify(value) === '[]'
  return name === 'inputs' && JSON.stringify(value) === '{}'
}

test('every event type of the contract has an example here, and there are no other types', () => {
  const types = Object.values(eventSchemas).flatMap(schemas => Object.keys(schemas))
  expect(types).toEqual(examples.map(({ type }) => type))
})

test.each(['toString', '__proto__', 'constructor', '', 'commission.rep.recorded.v2', 'Commission.rep.recorded.v1'])(
  'the type %j is unknown',
  type => {
    expect([isEventType('events', type), isEventType('api-keys', type)]).toEqual([false, false])
  },
)

const isRep = (change: Data): boolean =>
  matchesSchema('events', { type: 'commission.rep.recorded.v1', data: { ...rep, ...change } })
const isPeriod = (change: Data): boolean =>
  matchesSchema('events', { type: 'commission.period.recorded.v1', data: { ...period, ...change } })
const isPayout = (change: Data): boolean =>
  matchesSchema('events', { type: 'commission.payout.calculated.v1', data: { ...calculated, ...change } })
const isKey = (change: Data): boolean =>
  matchesSchema('api-keys', { type: 'commission.api_key.created.v1', data: { ...keyCreated, ...change } })

describe('the enums', () => {
  test('have exactly the values of the contract', () => {
    for (const status of ['active', 'departed']) expect(isRep({ status })).toBe(true)
    for (const kind of ['month', 'quarter', 'year']) expect(isPeriod({ kind })).toBe(true)
    for (const category of ['earned', 'recovered', 'adjusted'])
      expect(isPayout({ line_items: [{ ...line, category }] })).toBe(true)
    for (const type of ['bank_account', 'payroll_provider', 'other']) {
      const data = { ...payment, destination: { type, label: '' } }
      expect(matchesSchema('events', { type: 'commission.payroll.recorded.v1', data })).toBe(true)
    }
    expect([isRep({ status: 'Active' }), isPeriod({ kind: 'week' })]).toEqual([false, false])
    expect(isPayout({ line_items: [{ ...line, category: 'bonus' }] })).toBe(false)
  })

  test('permissions are a set of "read" and one for each part of the API, which may be empty', () => {
    const parts = ['reps', 'periods', 'payouts', 'statements', 'payroll', 'totals', 'changes'].map(
      part => `${part}:read`,
    )
    expect(keyPermissions).toEqual(['read', ...parts])
    for (const permission of keyPermissions) expect(isKey({ permissions: [permission] })).toBe(true)
    for (const permissions of [[], parts, [...parts, 'read', 'read']]) expect(isKey({ permissions })).toBe(true)
    for (const other of ['write', 'payouts', 'payout:read', 'payouts:write', ' read', 'READ', '', null, 1])
      expect(isKey({ permissions: ['read', other] })).toBe(false)
  })

  test('the expiry of a key is an instant, null or absent', () => {
    for (const expires_at of ['2027-01-01T00:00:00Z', '2027-01-01T00:00:00.123456789+02:00', null, undefined])
      expect(isKey({ expires_at })).toBe(true)
    for (const expires_at of ['2027-01-01', '', 'never', '2027-02-30T00:00:00Z', 1, false, {}])
      expect(isKey({ expires_at })).toBe(false)
  })
})

describe('the networks of a key', () => {
  const takes = (allowed_networks: unknown): boolean => isKey({ allowed_networks })

  test('are null, absent, or 1 to 20', () => {
    for (const networks of [null, undefined, ['10.0.0.0/8'], Array(20).fill('::/0')]) expect(takes(networks)).toBe(true)
    for (const networks of [[], Array(21).fill('::/0'), '10.0.0.0/8', {}, [null]]) expect(takes(networks)).toBe(false)
  })

  test.each([
    ...['0.0.0.0/0', '255.255.255.255/32', '10.1.2.3/8', '203.0.113.0/24', '192.0.2.7/9'],
    ...['::/0', '::1/128', '1::/16', '2001:DB8::/32', '2001:db8:0:0:1:2:3:4/64', '1:2:3:4:5:6:7:8/127'],
    ...['1:2:3:4:5:6:7::/119', '::2:3:4:5:6:7:8/10', '1::8/99', '1:2::5:6:7:8/100', 'fe80::1/10', '::ffff:a00:1/104'],
  ])('may be %s', network => {
    expect([takes([network]), isIP(network.split('/')[0] ?? '')]).toEqual([true, network.includes(':') ? 6 : 4])
  })

  test.each([
    ...['', '/', '10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0/8', '256.0.0.0/8'],
    ...['010.0.0.0/8', '10.0.0.0.0/8', ' 10.0.0.0/8', '10.0.0.0/8 ', '10.0.0.0/8\n', '0.0.0.0/0,10.0.0.0/8', '*/0'],
    ...[
      '::',
      '::/129',
      '::/00',
      ':/0',
      ':::/0',
      '1:2:3:4:5:6:7/64',
      '1:2:3:4:5:6:7:8:9/64',
      '1::2::3/64',
      '12345::/16',
    ],
    ...['1:2:3:4::5:6:7:8/64', '::ffff:10.0.0.0/104', 'fe80::1%eth0/64', '[::1]/128', 'g::/16', 'example.com/24'],
  ])('cannot be %j', network => {
    expect(takes(['10.0.0.0/8', network])).toBe(false)
  })
})

describe('the inputs of a step', () => {
  const takes = (json: string): boolean => isPayout({ calculation_trace: [{ ...step, inputs: JSON.parse(json) }] })

  test.each([
    '{}',
    '{"":""}',
    '{"__proto__":"text"}',
    '{"constructor":"text","toString":"text","hasOwnProperty":"text"}',
    '{"a\\nb":"text"}',
    `{"${'k'.repeat(1_000)}":"${'v'.repeat(1_000)}"}`,
    '{"0":"text","-1":"text","a.b":"text"}',
  ])('accept %s', json => {
    expect(takes(json)).toBe(true)
  })

  test.each([
    '{"a\\nb":1}',
    '{"\\n":null}',
    '{"\\u2028":{}}',
    '{"":1}',
    '{"__proto__":1}',
    '{"__proto__":{}}',
    '{"__proto__":null}',
    '{"a":1}',
    '{"a":null}',
    '{"a":"\\ud800"}',
    '{"\\ud800":"a"}',
    `{"a":"${'v'.repeat(1_001)}"}`,
    `{"${'k'.repeat(1_001)}":"a"}`,
    '[]',
    'null',
    '"text"',
  ])('refuse %s', json => {
    expect(takes(json)).toBe(false)
  })
})

describe('the size of a payout', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, at) => ({ ...line, id: `line_${at}` }))
  const steps = (count: number) => Array.from({ length: count }, (_, at) => ({ ...step, step: at + 1 }))

  test('is at most 10,000 lines', () => {
    expect([isPayout({ line_items: lines(10_000) }), isPayout({ line_items: lines(10_001) })]).toEqual([true, false])
  })

  test('is at most 100,000 steps', () => {
    expect(isPayout({ calculation_trace: steps(100_000) })).toBe(true)
    expect(isPayout({ calculation_trace: steps(100_001) })).toBe(false)
  })
})

test('the hash and the last characters of a key must match their patterns', () => {
  const hashes = ['A'.repeat(64), 'a'.repeat(63), 'a'.repeat(65), `${'a'.repeat(64)}\n`, 'g'.repeat(64)]
  expect(hashes.map(secret_sha256 => isKey({ secret_sha256 }))).toEqual(hashes.map(() => false))
  const lasts = ['abc', 'abcde', 'ab d', 'abcé', 'abc\n']
  expect(lasts.map(last4 => isKey({ last4 }))).toEqual(lasts.map(() => false))
})
