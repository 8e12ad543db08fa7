import Type from 'typebox'
import { expect, test } from 'vitest'
import { membersOf, requiredOf } from '../../../../core/ledger/event/schema-regex.ts'
import { Nullable, Text } from '../../../../schemas/values.ts'

test('a text with an optional field is not plain: with null it would be another text of the same event', () => {
  const schema = Type.Object({ a: Text, note: Type.Optional(Nullable(Text)), b: Nullable(Text) })
  const expression = new RegExp(`^\\{${membersOf(requiredOf(schema))}\\}$`)
  const isPlain = (value: object): boolean => expression.test(JSON.stringify(value))
  expect(isPlain({ a: '1', b: null })).toBe(true)
  expect(isPlain({ a: '1', note: null, b: null })).toBe(false)
  expect(isPlain({ a: '1', note: 'x', b: null })).toBe(false)
  expect(isPlain({ a: '1' })).toBe(false)
})
