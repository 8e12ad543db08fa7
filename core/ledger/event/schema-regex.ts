/**
 * Makes the source of a regular expression from a schema. The expression matches the output of JSON.stringify for valid
 * values: fields in the schema's order, no escapes. It never matches an invalid text, but may refuse a valid one.
 */
import type { TSchema } from 'typebox'

/** A character of a JSON string that is not escaped. */
const CHARACTER = '[^"\\\\\\x00-\\x1f]'
/** Integers that a double holds exactly. */
const WHOLE = '(?:0|[1-9][0-9]{0,14})'

type Properties = Readonly<Record<string, TSchema>>

/** The keywords of JSON Schema that are read here. */
export type Keywords = {
  readonly type?: unknown
  readonly properties?: Properties
  readonly required?: readonly string[]
  readonly items?: TSchema
  readonly anyOf?: readonly TSchema[]
  readonly propertyNames?: TSchema
  readonly additionalProperties?: TSchema
  readonly pattern?: string
  readonly format?: string
  readonly maxLength?: number
  readonly not?: { readonly pattern: string }
}

/** Returns the required fields of an object. A text with an optional field is not plain: null must count as absent. */
export const requiredOf = ({ properties = {}, required = [] }: Keywords): Properties =>
  Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)))

/** The fields of an object, without the braces. `groups` replaces the sources of the fields that it names. */
export const membersOf = (properties: Properties, groups: Readonly<Record<string, string>> = {}): string =>
  Object.entries(properties)
    .map(([name, schema]) => `"${literal(name)}":${groups[name] ?? sourceOf(schema)}`)
    .join()

/** The characters between the quotes, as a group. */
export const stringGroup = (schema: TSchema): string => `"(${charactersOf(schema)})"`

export const wholeGroup = `(${WHOLE})`

/** The members of a free-form map, as a group: in any order, repetitions allowed. */
export const mapGroup = (schema: TSchema): string => {
  const { propertyNames = {}, additionalProperties = {} }: Keywords = schema
  const member = `${sourceOf(propertyNames)}:${sourceOf(additionalProperties)}`
  return `\\{((?:${member}(?:,${member})*)?)\\}`
}

/** One member of a free-form map with its name as a group, and a comma if one follows. */
export const memberOfMap = (schema: TSchema): string => {
  const { propertyNames = {}, additionalProperties = {} }: Keywords = schema
  return `${stringGroup(propertyNames)}:${sourceOf(additionalProperties)},?`
}

/** @throws Error for a schema whose expression would be wider than the schema */
const sourceOf = (schema: TSchema): string => {
  if ('const' in schema) return literal(JSON.stringify(schema.const))
  const { anyOf, type }: Keywords = schema
  if (anyOf) return `(?:${anyOf.map(sourceOf).join('|')})`
  if (type === 'string') return `"${charactersOf(schema)}"`
  if (Array.isArray(type) && type.join() === 'string,null') return `(?:null|"${charactersOf(schema)}")`
  throw new Error(`no regular expression for ${JSON.stringify(schema)}`)
}

const charactersOf = (schema: TSchema): string => {
  const { pattern, format, maxLength, not }: Keywords = schema
  // `maxLength` counts code points, the expression counts code units: it may refuse a valid text.
  if (format === 'text' && pattern === undefined && not === undefined) return `${CHARACTER}{0,${maxLength}}`
  if (format === undefined && maxLength === undefined && pattern !== undefined) {
    return `(?:${not === undefined ? '' : `(?!${inQuotes(not.pattern)}")`}${inQuotes(pattern)})`
  }
  throw new Error(`no regular expression for the string ${JSON.stringify(schema)}`)
}

/** A pattern of a whole text, for a place between quotes. */
const inQuotes = (pattern: string): string => {
  if (!pattern.startsWith('^') || !pattern.endsWith('$')) throw new Error(`no pattern of a whole text: ${pattern}`)
  return pattern.slice(1, -1).replaceAll('$', '(?=")')
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
