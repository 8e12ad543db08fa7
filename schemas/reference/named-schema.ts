/**
 * The schemas of events for generators of models, which name a type by its `title`, else by a number. They read no
 * union of constants as an enumeration, and take `not` with a `type` for "any type but this one". So each object and
 * enumeration gets a name here, and `not` has no type: the type beside it says the same.
 */
import type { EventType } from '../events.ts'
import type { Json } from './openapi-parts.ts'

/** Objects that several events have. */
const names: Readonly<Record<string, string>> = {
  line_items: 'LineItem',
  calculation_trace: 'TraceStep',
  destination: 'Destination',
  inputs: 'StepInputs',
  permissions: 'KeyPermission',
}

/** The name of the data of an event: `PayoutCalculated`; of a further version `PayoutCalculated2`. */
export const dataNameOf = (type: EventType): string => {
  const [, words = '', version = ''] = /^commission\.(.+)\.v(\d+)$/.exec(type) ?? []
  return `${pascal(words)}${version === '1' ? '' : version}`
}

/** Returns the schema with names. Every value has the same verdict by both. */
export const named = (schema: object, title: string): Json => {
  const { properties, items, anyOf, not, additionalProperties, ...rest }: Keywords = schema
  const constants = anyOf?.every(one => one.const !== undefined) ? anyOf.map(one => one.const) : undefined
  if (anyOf && !constants) throw new Error(`${title} is a union without a name for each part`)
  const isNamed = properties !== undefined || additionalProperties !== undefined || constants !== undefined
  return {
    ...(isNamed && { title }),
    ...rest,
    ...(constants && { type: 'string', enum: constants }),
    ...(properties && { properties: mapped(properties, (name, of) => named(of, names[name] ?? title + pascal(name))) }),
    ...(additionalProperties && { additionalProperties: named(additionalProperties, title) }),
    ...(items && { items: named(items, title) }),
    ...(not && { not: rest.type === not.type ? without(not) : not }),
  }
}

const without = ({ type: _, ...rest }: { readonly type?: unknown }): Json => rest

const mapped = (of: Readonly<Record<string, object>>, change: (name: string, schema: object) => Json): Json =>
  Object.fromEntries(Object.entries(of).map(([name, schema]) => [name, change(name, schema)]))

const pascal = (words: string): string => words.replaceAll(/(?:^|[._])([a-z])/g, (_, letter) => letter.toUpperCase())

type Keywords = {
  readonly type?: unknown
  readonly properties?: Readonly<Record<string, object>>
  readonly additionalProperties?: object
  readonly items?: object
  readonly anyOf?: readonly { readonly const?: unknown }[]
  readonly not?: { readonly type?: unknown }
}
