/** The schemas, compiled by ajv with the formats of `values.ts`. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { type AnyEvent, ApiKeyCreatedAtFirst, type EventType, eventSchemas, type Stream } from './events.ts'
import { describeValue } from './objects.ts'
import { formats, networkPattern } from './values.ts'

// Without `ownProperties`: parsed JSON has own members only, and no schema names an inherited one.
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats })

export const compile = (schema: TSchema): ValidateFunction => ajv.compile(schema)

/** Compiles a schema when it is first used: a command that validates nothing starts without the compiler's 0.1 s. */
const lazy = (schema: TSchema): (() => ValidateFunction) => {
  let compiled: ValidateFunction | undefined
  return () => (compiled ??= compile(schema))
}

const validatorsOf = (schemas: Readonly<Record<string, TSchema>>): ReadonlyMap<string, () => ValidateFunction> =>
  new Map(Object.entries(schemas).map(([type, schema]) => [type, lazy(schema)]))

const validators: Record<Stream, ReturnType<typeof validatorsOf>> = {
  events: validatorsOf(eventSchemas.events),
  'api-keys': validatorsOf(eventSchemas['api-keys']),
}

export const isEventType = (stream: Stream, type: string): type is EventType => validators[stream].has(type)

/** Whether the data is valid by its event type's schema. The projector checks the rules that span several fields. */
export const matchesSchema = (stream: Stream, event: { type: string; data: unknown }): event is AnyEvent =>
  validators[stream].get(event.type)?.()(event.data) === true

const keyCreatedAtFirst = lazy(ApiKeyCreatedAtFirst)

/** Whether the data of a key is valid under the first version of the rules for keys. */
export const matchesFirstKeySchema = (data: unknown): data is { readonly expires_at?: unknown } =>
  keyCreatedAtFirst()(data)

/**
 * Returns the first rule of its schema that the data breaks: the field as a JSON pointer, the rule, and the type and
 * size of the value. Or the event, if it keeps all of them; neither for an unknown type. The text has names and values
 * of the schema only, nothing of the data.
 */
export const firstMismatch = (
  stream: Stream,
  event: { type: string; data: unknown },
): { readonly broken?: string; readonly event?: AnyEvent } => {
  const validator = validators[stream].get(event.type)?.()
  if (validator === undefined) return {}
  if (matchesSchema(stream, event)) return { event }
  const errors = validator.errors ?? []
  // A field with several forms has an error for each.
  const ofField = errors.filter(({ instancePath }) => instancePath === errors[0]?.instancePath)
  const constants = ofField.flatMap(({ params }) => ('allowedValue' in params ? [String(params.allowedValue)] : []))
  const rules = ofField.flatMap(({ keyword, message = '', params }) =>
    ofOtherErrors.has(keyword) ? [] : [wordsOf(keyword, message, params.pattern)],
  )
  const all = [...(constants.length > 0 ? [`must be ${constants.join(' or ')}`] : []), ...rules]
  const pointer = errors[0]?.instancePath ?? ''
  // A missing field has a rule of its object.
  const got = ofField.some(({ keyword }) => keyword === 'required')
    ? ''
    : `, got ${describeValue(valueAt(event.data, pointer))}`
  return { broken: `${pathOf(pointer)} ${[...new Set(all)].join(', or ')}${got}` }
}

/** Keywords that only say that the rules below them are broken. */
const ofOtherErrors: ReadonlySet<string> = new Set(['anyOf', 'const', 'if'])

/** The words of ajv, except where they do not name the rule. */
const wordsOf = (keyword: string, message: string, pattern: unknown): string => {
  if (pattern === networkPattern) return 'must be a network in CIDR notation, such as 203.0.113.0/24 or 2001:db8::/32'
  if (keyword === 'not') return 'must not be minus zero: zero has no sign'
  return keyword === 'type' ? message.replaceAll(',', ' or ') : message
}

const valueAt = (data: unknown, pointer: string): unknown => {
  const names = pointer.split('/').slice(1)
  return names.reduce<unknown>((value, name) => {
    const member = name.replaceAll('~1', '/').replaceAll('~0', '~')
    return typeof value === 'object' && value !== null && Object.hasOwn(value, member)
      ? (value as Readonly<Record<string, unknown>>)[member]
      : undefined
  }, data)
}

/** The names of inputs are content of the record: a star stands for them. */
const pathOf = (pointer: string): string => pointer.replace(/\/inputs\/.*/s, '/inputs/*') || 'data'
