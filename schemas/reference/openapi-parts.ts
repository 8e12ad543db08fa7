/** What the OpenAPI document is put together from: references, and schemas as generators of clients read them. */
import type { headers } from './openapi-headers.ts'

export type Json = Record<string, unknown>
export const ref = (section: string, name: string): Json => ({ $ref: `#/components/${section}/${name}` })
export const headerRefs = (names: readonly (keyof typeof headers)[]): Json =>
  Object.fromEntries(names.map(name => [name, ref('headers', name)]))
export const json = (schema: Json, example?: unknown): Json => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
})

/** A union of constants as an enumeration: the same rule, and what generators of clients understand. */
export const readable = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(readable)
  if (typeof schema !== 'object' || schema === null) return schema
  const { anyOf, ...rest } = schema as { anyOf?: Json[] }
  if (anyOf?.every(choice => 'const' in choice)) {
    return { type: 'string', ...rest, enum: anyOf.map(choice => choice.const) }
  }
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, readable(value)]))
}
