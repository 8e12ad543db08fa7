/** The schemas of the answers, from the OpenAPI document of the API: nothing is described twice. */
import openapi from '../../../contract/openapi.json' with { type: 'json' }

export type JsonSchema = { readonly [keyword: string]: unknown }
export type Properties = { readonly [name: string]: JsonSchema }

const schemas = openapi.components.schemas as unknown as Readonly<Record<string, JsonSchema>>
const parameters = openapi.components.parameters as unknown as Readonly<Record<string, { readonly schema: JsonSchema }>>

/** The codes of refusals. A proxy that answers in place of the API has others, and a newer API may have more. */
export const contractCodes: ReadonlySet<string> = new Set(
  openapi.components.schemas.Refusal.properties.error.properties.code.enum,
)

/** Keywords that are no JSON Schema, or say nothing to an agent. No field of the API has such a name. */
const leftOut = new Set(['discriminator', 'examples', 'format', 'maxLength', 'not', 'propertyNames'])
/** Descriptions of ids and texts of every kind: they would be half of the list of tools. */
const isUsual = (value: unknown): boolean => typeof value === 'string' && /^(?:An opaque id|Up to \d+ code)/.test(value)

/** Returns a schema of the API without references. None of them contains itself. */
export const contractSchema = (name: string): JsonSchema => whole(schemas[name]) as JsonSchema

type ObjectSchema = { readonly properties: Properties; readonly required: readonly string[] }

/**
 * Returns the schema of an object of the API with more fields, or other ones in place of its own. A field of the API
 * that can be absent stays so.
 */
export const contractObject = (
  name: string,
  more: Properties,
  { without = [], optional = [] }: { readonly without?: readonly string[]; readonly optional?: readonly string[] } = {},
): JsonSchema => {
  const { properties, required } = contractSchema(name) as unknown as ObjectSchema
  const kept = Object.entries(properties).filter(([field]) => !without.includes(field) && !(field in more))
  const absent = [...optional, ...Object.keys(properties).filter(field => !required.includes(field))]
  return objectSchema({ ...Object.fromEntries(kept), ...more }, absent)
}

/** Returns the schema of a parameter of the API, such as `RepId`. */
export const contractParameter = (name: string): JsonSchema => whole(parameters[name]?.schema) as JsonSchema

const whole = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(whole)
  if (typeof value !== 'object' || value === null) return value
  const { $ref } = value as { readonly $ref?: unknown }
  if (typeof $ref === 'string') return contractSchema($ref.replace('#/components/schemas/', ''))
  const kept = Object.entries(value).filter(([keyword, inner]) => !leftOut.has(keyword) && !isUsual(inner))
  return Object.fromEntries(kept.map(([keyword, inner]) => [keyword, whole(inner)]))
}

/** An object with these fields, all of them always there except the named ones. More fields can come. */
export const objectSchema = (properties: Properties, optional: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
})

export const arraySchema = (items: JsonSchema, description: string): JsonSchema => ({
  type: 'array',
  items,
  description,
})

export const countSchema = (description: string): JsonSchema => ({ type: 'integer', minimum: 0, description })
