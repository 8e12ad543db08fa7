/**
 * In: an event that is valid by its schema. Out: the event with its known fields only, in the order of the schema, and
 * free-form maps sorted by key: equal events become equal texts.
 */
import type { TSchema } from 'typebox'
import { type AnyEvent, schemaOfType } from '../../../schemas/events.ts'
import { keysOf, objectOf } from '../../../schemas/objects.ts'
import type { Keywords } from './schema-regex.ts'

export const canonical = <Event extends AnyEvent>(event: Event): Event =>
  ({
    type: event.type,
    data: pickers[event.type](event.data),
  }) as Event

type Picker = (value: unknown) => unknown

/** Returns a function that copies the known fields of a value, derived from the keywords of the schema. */
const pickerOf = (schema: TSchema): Picker => {
  const { additionalProperties, properties, required = [], items, anyOf }: Keywords = schema
  if (additionalProperties) return sortedMap
  if (properties) return objectPicker(properties, new Set(required))
  if (items) {
    const item = pickerOf(items)
    return item === asItIs ? asItIs : listPicker(item)
  }
  if (anyOf) {
    const pickers = anyOf.map(pickerOf)
    const notPlain = pickers.find(picker => picker !== asItIs)
    return notPlain === undefined ? asItIs : value => (value === null ? null : notPlain(value))
  }
  return asItIs
}

const asItIs: Picker = value => value

const listPicker =
  (item: Picker): Picker =>
  value => {
    if (!Array.isArray(value)) return value
    const picked = value.map(item)
    return picked.every((one, index) => one === value[index]) ? value : picked
  }

/**
 * Returns a value uncopied if it has only the known fields, in order: nearly all values do, and there are many. A field
 * that is not required is left out if it is null: absent and null are one event.
 */
const objectPicker = (properties: Readonly<Record<string, TSchema>>, required: ReadonlySet<string>): Picker => {
  const fields = Object.entries(properties).map(([name, schema]) => [name, pickerOf(schema)] as const)
  const names = fields.map(([name]) => name)
  const optional = names.filter(name => !required.has(name))
  const inner = fields.filter(([, pick]) => pick !== asItIs)
  const isInOrder = (value: Readonly<Record<string, unknown>>): boolean => {
    let index = 0
    // In parsed JSON, for-in visits own members only.
    for (const name in value) if (name !== names[index++]) return false
    return index === names.length
  }
  return given => {
    if (!isObject(given)) return given
    const picked = inner.map(([name, pick]) => [name, pick(given[name])] as const)
    const isPicked = isInOrder(given) && picked.every(([name, inside]) => inside === given[name])
    if (isPicked && optional.every(name => given[name] !== null)) return given
    const present = names.filter(name => required.has(name) || (given[name] ?? null) !== null)
    const copy = Object.fromEntries(present.map(name => [name, given[name]]))
    for (const [name, inside] of picked) copy[name] = inside
    return copy
  }
}

/** The publisher chooses the keys, maybe `__proto__`: Object.fromEntries defines it like any other. */
const sortedMap: Picker = map => {
  if (!isObject(map)) return map
  const names = Object.keys(map)
  if (names.every((name, index) => index === 0 || (names[index - 1] ?? '') < name)) return map
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const pickers = objectOf(keysOf(schemaOfType), type => pickerOf(schemaOfType[type]))
