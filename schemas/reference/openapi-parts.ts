/** Parts of the OpenAPI document: references, and schemas in the form that client generators understand. */
import type { TSchema } from 'typebox'
import type { headers } from './openapi-headers.ts'

export type Json = Record<string, unknown>
export const ref = (section: string, name: string): Json => ({ $ref: `#/components/${section}/${name}` })
export const headerRefs = (names: readonly (keyof typeof headers)[]): Json =>
  Object.fromEntries(names.map(name => [name, ref('headers', name)]))
export const json = (schema: Json, example?: unknown): Json => ({
  'application/json': { schema, ...(example === undefined ? {} : { example }) },
})

/**
 * Schemas for client generators, from those of the records. A schema that several records have in common becomes a
 * reference to its component. A union of constants becomes an enumeration. A union of objects becomes a `oneOf` with a
 * discriminator, if all have a component and a constant field in common.
 * @param components schemas by name; a schema is recognized by its fields, also when its description differs
 */
export const createReadable = (components: Readonly<Record<string, TSchema>>) => {
  const names = new Map<unknown, string>()
  for (const [name, { properties }] of Object.entries<{ properties?: unknown }>(components)) {
    if (properties !== undefined) names.set(properties, name)
  }

  const convert = (schema: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map(convert)
    if (typeof schema !== 'object' || schema === null) return schema
    const { properties, description }: Node = schema
    const name = properties === undefined ? undefined : names.get(properties)
    if (name === undefined) return convertFields(schema)
    const component: Node | undefined = components[name]
    const isOwn = description === undefined || description === component?.description
    return { ...ref('schemas', name), ...(isOwn ? {} : { description }) }
  }

  const convertFields = (schema: object): unknown => {
    const { anyOf, format, ...rest }: Node = schema
    if (format !== undefined && datesInGenerators.has(format)) return rest
    if (anyOf?.every(choice => 'const' in choice)) {
      return { type: 'string', ...rest, enum: anyOf.map(choice => choice.const) }
    }
    const fields = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, convert(value)]))
    const mapping = anyOf && discriminated(anyOf)
    if (mapping === undefined) return fields
    const { anyOf: oneOf, ...others } = fields
    return { ...others, oneOf, discriminator: { propertyName: DISCRIMINATOR, mapping } }
  }

  /** The component of each kind; undefined if a choice has none. */
  const discriminated = (choices: readonly Node[]): Record<string, string> | undefined => {
    const entries = choices.map(({ properties }) => [
      properties?.[DISCRIMINATOR]?.const,
      `#/components/schemas/${names.get(properties)}`,
    ])
    if (choices.some(({ properties }) => !names.has(properties)) || entries.some(([kind]) => kind === undefined)) {
      return undefined
    }
    return Object.fromEntries(entries)
  }

  return {
    /** A schema in another one: a reference if it is a component. */
    schema: convert,
    /** All components, as definitions. */
    components: (): Json =>
      Object.fromEntries(Object.entries(components).map(([name, schema]) => [name, convertFields(schema)])),
  }
}

/**
 * Formats for which generators make date types. These lose digits, and the offset from UTC. An instant is a text with
 * the characters that were published, as its pattern says.
 */
const datesInGenerators: ReadonlySet<string> = new Set(['date-time', 'date'])

const DISCRIMINATOR = 'kind'

type Node = {
  readonly anyOf?: readonly Node[]
  readonly const?: unknown
  readonly description?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Node>>
}
