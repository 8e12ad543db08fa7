import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseStrictJson } from '../../../../core/ledger/event/strict-json.ts'

const parse = (text: string, depthMax = 32) => parseStrictJson(Buffer.from(text), depthMax)

describe('a duplicate key is refused', () => {
  test.each([
    '{"a":1,"a":1}',
    '{"a":1,"a":2}',
    '{"a":1,"b":2,"a":3}',
    '{"a":1,"\\u0061":1}',
    '{"\\u0061":1,"\\u0061":1}',
    '{"\\/":1,"/":1}',
    '{"":1,"":1}',
    '{"__proto__":1,"__proto__":2}',
    '{"\\u005f_proto__":1,"__proto__":2}',
    '{"1":1,"1":2}',
    '{"x":{"a":1,"a":1}}',
    '[{"a":1,"a":1}]',
    '[[[{"a":{"b":[{"c":1,"c":2}]}}]]]',
    '{"a":{},"a":{}}',
    '{"a":{"x":1},"a":{"x":1,"y":2}}',
    '{"\ud83d\ude00":1,"\\ud83d\\ude00":2}',
  ])('%s', text => {
    expect(parse(text)).toBeUndefined()
  })

  test('but the same key in another object is accepted', () => {
    const text = '{"a":{"a":[{"a":1},{"a":1}]},"A":1,"a ":2,"é":3,"e\u0301":4}'
    expect(parse(text)).toEqual({ value: JSON.parse(text) })
  })
})

describe('brackets, braces, colons and quotes inside a string are text', () => {
  test.each([
    '{"a":":"}',
    '{"a:b":"c:d:e"}',
    '{":":":::"}',
    '{"a":"\\":\\""}',
    '{"a":"\\\\"}',
    '{"a\\\\":"\\\\\\":"}',
    '["{[{[", "]}]}", ":"]',
    `["${'['.repeat(100)}"]`,
    `{"a":"${'{'.repeat(100_000)}"}`,
  ])('%s', text => {
    expect(parse(text)).toEqual({ value: JSON.parse(text) })
  })
})

describe('nesting', () => {
  const arrays = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const objects = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`

  test('of exactly the allowed depth is accepted, and one level more is refused', () => {
    for (const nested of [arrays, objects]) {
      expect(parse(nested(32))).toBeDefined()
      expect(parse(nested(33))).toBeUndefined()
      expect(parse(nested(33), 33)).toBeDefined()
    }
  })

  test('is counted as depth, not as number of brackets', () => {
    expect(parse(`[${Array(1_000).fill('[]').join()}]`, 2)).toBeDefined()
    expect(parse(`[${Array(1_000).fill('[]').join()},[[]]]`, 2)).toBeUndefined()
  })

  test('of 100,000 levels is refused without a stack overflow', () => {
    for (const text of [arrays(100_000), objects(100_000), '['.repeat(100_000), '{"a":'.repeat(100_000)]) {
      expect(parse(text)).toBeUndefined()
    }
  })

  test('is not hidden by extra closing brackets', () => {
    expect(parse(`${']'.repeat(100)}${arrays(100)}`)).toBeUndefined()
    expect(parse(`"a"${'}'.repeat(100_000)}${'['.repeat(100_000)}`)).toBeUndefined()
  })
})

test.each([
  '',
  ' ',
  '\ufeff{}',
  '{',
  '}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '[1,]',
  "{'a':1}",
  '{a:1}',
  '{"a":1}{"b":2}',
  '{"a":1} x',
  '"a',
  '"a\\',
  '"\\"',
  '"\n"',
  '"\\x"',
  'NaN',
  'undefined',
  '01',
  '+1',
  '.5',
  '// comment\n{}',
  '{"a":1}\u0000',
])('%j is not JSON', text => {
  expect(parse(text)).toBeUndefined()
})

test.each(['null', 'true', '0', '""', '[]', '{}', ' \t\r\n{ } \n', '1e400', '"\\ud800"'])('%j is JSON', text => {
  expect(parse(text)).toEqual({ value: JSON.parse(text) })
})

test('the key __proto__ stays an ordinary key', () => {
  const value = parse('{"__proto__":{"admin":true}}')?.value
  expect(Object.keys(value ?? {})).toEqual(['__proto__'])
  expect(value).not.toHaveProperty('admin')
})

describe('for every value', () => {
  const json = fc.jsonValue({ maxDepth: 20, stringUnit: 'binary' })

  test('its text is read as by JSON.parse', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(JSON.stringify(parse(text)?.value)).toBe(JSON.stringify(JSON.parse(Buffer.from(text).toString())))
      }),
      { numRuns: 1_000 },
    )
  })

  test('its text is refused if it has a member twice', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json, { minKeys: 1 }), json, fc.nat(), (object, again, choice) => {
        const names = Object.keys(object)
        const twice = names[choice % names.length]
        const members = [...names.map(name => [name, object[name]]), [twice, again]]
        const text = members.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()
        expect(parse(`{${text}}`, 100)).toBeUndefined()
      }),
    )
  })
})
