import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rangeOf, replaceRanges } from '../../../../tools/archive/redaction/json-ranges.ts'

const spaced = fc.tuple(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t')).map(([value, indent]) => {
  const json = JSON.stringify(
    { before: value, data: { 'a"b\\': value, name: value, other: 1 }, after: [value] },
    null,
    indent,
  )
  return { value, json }
})

test('finds any value of JSON, with any spacing, and nothing where there is none', () => {
  fc.assert(
    fc.property(spaced, ({ value, json }) => {
      const range = rangeOf(json, ['data', 'name'])
      expect(range).toBeDefined()
      expect(JSON.parse(json.slice(range?.start, range?.end))).toEqual(JSON.parse(JSON.stringify(value)))
      expect(rangeOf(json, ['data', 'nothing'])).toBeUndefined()
      expect(rangeOf(json, ['after', '0'])).toBeUndefined()
    }),
  )
})

test('replaces values and leaves all other characters', () => {
  fc.assert(
    fc.property(spaced, ({ json }) => {
      const ranges = [['data', 'name'], ['before']].map(path => ({
        ...(rangeOf(json, path) ?? { start: 0, end: 0 }),
        by: '"x"',
      }))
      const changed = replaceRanges(json, ranges)
      const expected = JSON.parse(json)
      expected.before = 'x'
      expected.data.name = 'x'
      expect(JSON.parse(changed)).toEqual(expected)
      const [name, before] = ranges
      expect(changed.slice(0, before?.start)).toBe(json.slice(0, before?.start))
      expect(changed.endsWith(json.slice(name?.end))).toBe(true)
    }),
  )
})

test('a member name with escapes is the name that it means', () => {
  expect(rangeOf('{ "n\\u0061me" : "x" }', ['name'])).toEqual({ start: 16, end: 19 })
  expect(rangeOf('{}', ['name'])).toBeUndefined()
  expect(rangeOf('{"a":{"b":"}\\"{"},"name":null}', ['name'])).toEqual({ start: 25, end: 29 })
})
