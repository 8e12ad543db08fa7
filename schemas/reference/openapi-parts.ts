/** Parts of the OpenAPI document: references, and schemas in the form that client generators understand. */
import type { headers } from './openapi-headers.ts'

export type Json = Record<string, unknown>
export const ref = (section: string, name: string): Json => ({ $ref: `#/components/${section}/${name}` })
export const headerRefs = (names: readonly (keyof typeof headers)[]): Json =>
  Object.fromEntries(names.map(name => [name, ref('headers', name)]))
export const json = (schema: Json, example?: unknown): Json => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
})

/** Turns a union of constants into an enumeration: the same rule, which client generators understand. */
export const readable = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(readable)
  if (typeof schema !== 'object' || schema === null) return schema
  const { anyOf, ...rest }: { readonly anyOf?: Json[] } = schema
  if (anyOf?.every(choice => 'const' in choice)) {
    return { type: 'string', ...rest, enum: anyOf.map(choice => choice.const) }
  }
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, readable(value)]))
}
