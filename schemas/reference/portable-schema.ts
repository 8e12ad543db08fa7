/**
 * The event schemas for validators and generators of models in other languages: JSON Schema 2020-12 without `format`,
 * with the names of `named-schema.ts`. Validators disagree about formats: whether they are checked, which years a date
 * has, which offsets an instant.
 */
import { type EventType, schemaOfType } from '../events.ts'
import { keysOf, objectOf } from '../objects.ts'
import { dataNameOf, named } from './named-schema.ts'
import type { Json } from './openapi-parts.ts'

/** The names of time zones. Which of them exist is beyond a schema. */
const TIMEZONE_PATTERN = '^[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*$'

/** The end of a pattern, `$`, is also before a last line end in Python and Java. No value with a pattern has one. */
const LINE_ENDS = '[\\n\\r\u0085\u2028\u2029]'

/** Returns the schema of the data of each event type. */
export const portableSchemas = (): Record<EventType, Json> =>
  objectOf(keysOf(schemaOfType), type => ({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:commission:${type}`,
    ...portableFields(named(schemaOfType[type], dataNameOf(type))),
    // The version is a part of this name: models of two versions stand side by side.
    title: type,
  }))

const portable = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(portable)
  return typeof schema === 'object' && schema !== null ? portableFields(schema) : schema
}

const portableFields = (schema: object): Json => {
  const { format, not, properties, ...rest }: Keywords = schema
  const fields = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, portable(value)]))
  const pattern = format === 'timezone' ? TIMEZONE_PATTERN : rest.pattern
  if (not !== undefined && (pattern === undefined || not.pattern === undefined)) throw new Error('no portable `not`')
  return {
    ...fields,
    // Names of fields, not keywords.
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, portable(of)])),
    }),
    ...(pattern && { pattern, ...(pattern.endsWith('$') && { not: { type: 'string', pattern: notOf(not) } }) }),
  }
}

const notOf = (not: Keywords['not']): string => (not ? `${not.pattern}|${LINE_ENDS}` : LINE_ENDS)

type Keywords = {
  readonly format?: string
  readonly pattern?: string
  readonly not?: { readonly pattern?: string }
  readonly properties?: Readonly<Record<string, unknown>>
}
