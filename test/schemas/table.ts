/** Tables of values that the compiled schema, the same as in the projector, must accept or refuse. */
import type { TSchema } from 'typebox'
import { expect, test } from 'vitest'
import { compile } from '../../schemas/validate.ts'

export const table = (schema: TSchema, accepted: readonly unknown[], refused: readonly unknown[]): void => {
  const validate = compile(schema)
  test.each(accepted.map(value => [show(value), value]))('accepts %s', (_, value) => {
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
