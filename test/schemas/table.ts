/** Tables of values: each one passes or is refused by the compiled schema, the one the projector runs. */
import type { TSchema } from 'typebox'
import { expect, test } from 'vitest'
import { compile } from '../../schemas/validate.ts'

export const table = (schema: TSchema, accepted: readonly unknown[], refused: readonly unknown[]): void => {
  const validate = compile(schema)
  test.each(accepted.map(value => [show(value), value]))('takes %s', (_, value) => {
    expect(validate(value)).toBe(true)
  })
  test.each(refused.map(value => [show(value), value]))('refuses %s', (_, value) => {
    expect(validate(value)).toBe(false)
  })
}

const show = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 60 ? `${text.slice(0, 50)}… (${text.length} characters)` : text
}
