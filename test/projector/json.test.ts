import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseStrictJson } from '../../projector/json.ts'

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

  test('but the same key in another object is none', () => {
    const text = '{"a":{"a":[{"a":1},{"a":1}]},"A":1,"a ":2,"é":3,"e\u0301":4}'
    expect(parse(text)).toMatchObject({ value: JSON.parse(text) })
  })
})

describe('what looks like structure within a string is text', () => {
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
    expect(parse(text)).toMatchObject({ value: JSON.parse(text) })
  })
})

describe('nesting', () => {
  const arrays = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
  const objects = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`

  test('of exactly the allowed depth is taken, one more is refused', () => {
    for (const nested of [arrays, objects]) {
      expect(parse(nested(32))).toBeDefined()
      expect(parse(nested(33))).toBeUndefined()
      expect(parse(nested(33), 33)).toBeDefined()
    }
  })

  test('is counted as depth, not as the number of brackets', () => {
    expect(parse(`[${Array(1_000).fill('[]').join()}]`, 2)).toBeDefined()
    expect(parse(`[${Array(1_000).fill('[]').join()},[[]]]`, 2)).toBeUndefined()
  })

  test('of 100,000 levels is an answer, not an overflow', () => {
    for (const text of [arrays(100_000), objects(100_000), '['.repeat(100_000), '{"a":'.repeat(100_000)]) {
      expect(parse(text)).toBeUndefined()
    }
  })

  test('cannot be hidden behind brackets that close too much', () => {
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
  expect(parse(text)).toMatchObject({ value: JSON.parse(text) })
})

test('the key __proto__ stays a key', () => {
  const value = parse('{"__proto__":{"admin":true}}')?.value
  expect(Object.keys(value ?? {})).toEqual(['__proto__'])
  expect(value).not.toHaveProperty('admin')
})

describe('for every value', () => {
  const json = fc.jsonValue({ maxDepth: 20, stringUnit: 'binary' })

  test('its text is read as JSON.parse reads it', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(JSON.stringify(parse(text)?.value)).toBe(JSON.stringify(JSON.parse(Buffer.from(text).toString())))
      }),
      { numRuns: 1_000 },
    )
  })

  test('its text is refused once a member stands in it twice', () => {
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

describe('a text that is given back is what JSON.stringify makes of its value', () => {
  /** JSON as anyone could write it: other spaces, escapes and numbers than JSON.stringify has, keys in any order. */
  const space = fc.constantFrom('', '', '', '', ' ', '\n', '\t', '\r\n')
  const { text: anyJson } = fc.letrec<{ text: string; list: string; object: string; number: string; string: string }>(
    tie => ({
      number: fc.oneof(
        fc.constantFrom(
          '0',
          '-0',
          '1.0',
          '1e2',
          '1E2',
          '1e-2',
          '10E+1',
          '999999999999999',
          '1000000000000000',
          '0.1',
          '-1',
        ),
        fc.nat().map(String),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
        fc.bigInt({ min: 0n, max: 10n ** 25n }).map(String),
      ),
      string: fc
        .oneof(
          {
            weight: 4,
            arbitrary: fc.constantFrom(
              'a',
              'b',
              'name',
              '0',
              '1',
              '10',
              '01',
              '4294967295',
              '-1',
              '1a',
              'é',
              '\u2028',
              '\u007f',
              'e',
            ),
          },
          fc.string({ unit: 'binary' }),
        )
        .chain(string =>
          fc.constantFrom(
            JSON.stringify(string),
            JSON.stringify(string),
            `"\\u0061${JSON.stringify(string).slice(1)}`,
            '"\\/"',
          ),
        ),
      list: fc
        .tuple(space, fc.array(tie('text'), { maxLength: 4 }))
        .map(([gap, items]) => `[${gap}${items.join(`${gap},`)}]`),
      object: fc
        .tuple(space, fc.array(fc.tuple(tie('string'), tie('text')), { maxLength: 4 }))
        .map(([gap, members]) => `{${members.map(([name, value]) => `${gap}${name}${gap}:${value}`).join()}${gap}}`),
      text: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('null', 'true', 'false'),
        tie('number'),
        tie('string'),
        tie('list'),
        tie('object'),
        tie('object'),
      ),
    }),
  )

  test('however it is written', () => {
    let given = 0
    fc.assert(
      fc.property(anyJson, text => {
        const parsed = parse(text)
        if (parsed?.text === undefined) return
        given++
        expect(parsed.text).toBe(text)
        expect(JSON.stringify(parsed.value)).toBe(text)
      }),
      { numRuns: 20_000 },
    )
    expect(given).toBeGreaterThan(1_000)
  })

  test.each([
    '{"a": 1}',
    '{"a":1 }',
    ' {"a":1}',
    '{"a":1}\n',
    '{"a":"\\u0061"}',
    '{"a":"\\/"}',
    '{"a":-0}',
    '{"a":1.0}',
    '{"a":1e2}',
    '{"a":1E2}',
    '{"a":1000000000000000000000000}',
    '{"a":0.1}',
    '{"2":1,"1":2}',
    '{"a":{"2":1,"1":2}}',
    '{"1":2,"a":1}',
  ])('%j is not given back', text => {
    expect(parse(text)).toEqual({ value: JSON.parse(text), text: undefined })
  })

  test.each([
    '{"org_id":"org_1","net_amount":"12.50","lines":[{"step":10,"deal_id":null,"is":true,"not":false}],"x":{}}',
    '{"name":"Zoë 10 {[:,]} 😀 1e5 -0 \u2028","a10":"10"}',
    '[999999999999999,0]',
  ])('%j is', text => {
    expect(parse(text)).toEqual({ value: JSON.parse(text), text })
  })
})
