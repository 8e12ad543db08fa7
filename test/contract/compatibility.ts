/** Finds what a client or a publisher of the last release would notice: see `docs/compatibility.md`. */
import { isDeepStrictEqual } from 'node:util'
import { openapi } from '../../schemas/reference/openapi.ts'
import { portableSchemas } from '../../schemas/reference/portable-schema.ts'

type Json = { readonly [name: string]: unknown }
type Parameter = { readonly name?: string; readonly in?: string; readonly $ref?: string; readonly required?: boolean }
type Schema = { readonly required?: readonly string[]; readonly properties?: Readonly<Record<string, Json>> } & Json

/** The documents that are compared. */
export type Documents = {
  readonly paths: Readonly<Record<string, { readonly get: { readonly parameters: readonly Parameter[] } }>>
  readonly parameters: Readonly<Record<string, Parameter>>
  readonly schemas: Readonly<Record<string, Schema>>
  readonly events: Readonly<Record<string, Schema>>
}

export const currentDocuments = (): Documents => {
  const { parameters, schemas } = openapi.components
  // As JSON: the stored documents have no undefined fields.
  return JSON.parse(JSON.stringify({ paths: openapi.paths, parameters, schemas, events: portableSchemas() }))
}

/** Returns a line for each difference that breaks a client of the API. */
export const breaksReaders = (before: Documents, now: Documents): string[] => [
  ...Object.entries(before.paths).flatMap(([path, { get }]) => {
    const present = now.paths[path]
    if (present === undefined) return [`${path} is gone`]
    const old = get.parameters.map(given => resolved(given, before))
    const current = present.get.parameters.map(given => resolved(given, now))
    return [
      ...old.flatMap(one =>
        current.some(other => isSame(one, other)) ? [] : [`${path}: ${one.name} changed or is gone`],
      ),
      ...current.flatMap(one =>
        one.required && !old.some(other => isSame(one, other)) ? [`${path}: ${one.name} is needed now`] : [],
      ),
    ]
  }),
  ...Object.entries(before.schemas).flatMap(([name, old]) => {
    const present = now.schemas[name]
    if (present === undefined) return [`the schema ${name} is gone`]
    return [
      ...fieldsThatChanged(name, old, present, false),
      ...missing(name, old.required, present.required, 'always there'),
    ]
  }),
]

/** Returns a line for each difference that breaks a publisher of events. */
export const breaksPublishers = (before: Documents, now: Documents): string[] =>
  Object.entries(before.events).flatMap(([type, old]) => {
    const present = now.events[type]
    if (present === undefined) return [`the event ${type} is gone`]
    return [
      ...fieldsThatChanged(type, old, present, true),
      ...missing(type, present.required, old.required, 'optional'),
    ]
  })

const resolved = (given: Parameter, { parameters }: Documents): Parameter =>
  given.$ref === undefined ? given : (parameters[given.$ref.split('/').at(-1) ?? ''] ?? given)

const isSame = (a: Parameter, b: Parameter): boolean => isDeepStrictEqual(meaning(a), meaning(b))

/** Whether a list of constants takes the old ones and more. */
const takesMore = (old: Json, present: Json): boolean => {
  const [before, now] = [constantsOf(old.items), constantsOf(present.items)]
  return before.length > 0 && old.type === present.type && before.every(value => now.includes(value))
}

const constantsOf = (items: unknown): unknown[] => {
  if (typeof items !== 'object' || items === null) return []
  if ('const' in items) return [items.const]
  if ('enum' in items && Array.isArray(items.enum)) return items.enum
  return 'anyOf' in items && Array.isArray(items.anyOf) ? items.anyOf.flatMap(constantsOf) : []
}

/** @param mayWiden whether a value that is taken in addition breaks nobody */
const fieldsThatChanged = (name: string, old: Schema, present: Schema, mayWiden: boolean): string[] => [
  ...Object.entries(old.properties ?? {}).flatMap(([field, schema]) => {
    const current = present.properties?.[field]
    if (current === undefined) return [`${name}.${field} is gone`]
    // A client must expect codes that it does not know.
    if (name === 'Refusal') return []
    if (isDeepStrictEqual(meaning(schema), meaning(current)) || (mayWiden && takesMore(schema, current))) return []
    return [`${name}.${field} has another form`]
  }),
  ...(isDeepStrictEqual(meaning(old.oneOf), meaning(present.oneOf)) ? [] : [`${name} has other kinds`]),
]

/** A text that is constant, and no other keyword. */
const isConstantText = (one: object): boolean =>
  'const' in one && typeof one.const === 'string' && isDeepStrictEqual(one, { type: 'string', const: one.const })

const missing = (name: string, wanted: readonly string[] = [], found: readonly string[] = [], was: string): string[] =>
  wanted.filter(field => !found.includes(field)).map(field => `${name}.${field} is no longer ${was}`)

/** A schema without texts for people and names of models. A union of texts means the same as their enumeration. */
const meaning = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(meaning)
  if (typeof schema !== 'object' || schema === null) return schema
  const { anyOf, ...others }: { anyOf?: unknown } = schema
  if (Array.isArray(anyOf) && anyOf.every(isConstantText)) {
    return meaning({ ...others, type: 'string', enum: constantsOf({ anyOf }) })
  }
  const { if: _, then, else: plain, ...rest }: { if?: unknown; then?: unknown; else?: object } = schema
  // A text that may be sealed now: the schema accepts more than that of a plain text, which is its `else`.
  if (then !== undefined && JSON.stringify(then).includes('sealed:')) return meaning({ ...rest, ...plain })
  const kept = Object.entries(schema).filter(
    ([name]) => !['description', 'example', 'examples', 'title'].includes(name),
  )
  return Object.fromEntries(kept.map(([name, value]) => [name, meaning(value)]))
}
