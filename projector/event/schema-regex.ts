/**
 * A schema as the source of a regular expression. The expression matches the JSON that JSON.stringify writes of values
 * that keep the schema: the fields in the schema's order, nothing escaped. It is narrower than the schema and never
 * wider: a text that does not match may still be valid.
 */
import type { TSchema } from 'typebox'

/** Characters of a string that stand for themselves. */
const CHARACTER = '[^"\\\\\\x00-\\x1f]'
/** Whole numbers that a double holds exactly, whatever their digits are. */
const WHOLE = '(?:0|[1-9][0-9]{0,14})'

type Properties = Readonly<Record<string, TSchema>>

/**
 * The fields of an object, one after the other, without the braces; those named in `groups` have these sources instead.
 */
export const membersOf = (properties: Properties, groups: Readonly<Record<string, string>> = {}): string =>
  Object.entries(properties)
    .map(([name, schema]) => `"${literal(name)}":${groups[name] ?? sourceOf(schema)}`)
    .join()

/** The characters between the quotes, as a group. */
export const stringGroup = (schema: TSchema): string => `"(${charactersOf(schema)})"`

/** A whole number of any value, as a group. */
export const wholeGroup = `(${WHOLE})`

/** The members of a free-form map, as a group: in any order, each any number of times. */
export const mapGroup = (schema: TSchema): string => {
  const { propertyNames, additionalProperties } = schema as unknown as MapSchema
  const member = `${sourceOf(propertyNames)}:${sourceOf(additionalProperties)}`
  return `\\{((?:${member}(?:,${member})*)?)\\}`
}

/** One member of a free-form map, its name as a group, and the comma after it. */
export const memberOfMap = (schema: TSchema): string => {
  const { propertyNames, additionalProperties } = schema as unknown as MapSchema
  return `${stringGroup(propertyNames)}:${sourceOf(additionalProperties)},?`
}

type MapSchema = { readonly propertyNames: TSchema; readonly additionalProperties: TSchema }

/** @throws Error for a schema of which the expression would say too little */
const sourceOf = (schema: TSchema): string => {
  if ('const' in schema) return literal(JSON.stringify(schema.const))
  if ('anyOf' in schema) return `(?:${(schema.anyOf as TSchema[]).map(sourceOf).join('|')})`
  const { type } = schema as { readonly type?: unknown }
  if (type === 'string') return `"${charactersOf(schema)}"`
  if (Array.isArray(type) && type.join() === 'string,null') return `(?:null|"${charactersOf(schema)}")`
  throw new Error(`no regular expression for ${JSON.stringify(schema)}`)
}

const charactersOf = (schema: TSchema): string => {
  const { pattern, format, maxLength } = schema as { pattern?: string; format?: string; maxLength?: number }
  // In code units: a text of as many code points may have more of them.
  if (format === 'text' && pattern === undefined) return `${CHARACTER}{0,${maxLength}}`
  if (format === undefined && maxLength === undefined && pattern?.startsWith('^') && pattern.endsWith('$')) {
    return `(?:${pattern.slice(1, -1).replaceAll('$', '(?=")')})`
  }
  throw new Error(`no regular expression for the string ${JSON.stringify(schema)}`)
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
