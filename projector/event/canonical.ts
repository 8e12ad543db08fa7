/**
 * In: an event that keeps its schema. Out: the same event with its known fields only, each in the schema's order and
 * free-form maps in the order of their keys, so that the same event is the same text however it was written.
 */
import type { TSchema } from 'typebox'
import { type AnyEvent, eventSchemas } from '../../schemas/events.ts'

export const canonical = <Event extends AnyEvent>(event: Event): Event =>
  ({
    type: event.type,
    data: pickers[event.type](event.data),
  }) as Event

type Picker = (value: unknown) => unknown

/** A function that copies what the schema knows. Schemas are closed JSON Schema, so their own shape says how. */
const pickerOf = (schema: TSchema): Picker => {
  if ('additionalProperties' in schema) return sortedMap
  if ('properties' in schema) return objectPicker(schema.properties as Record<string, TSchema>)
  if ('items' in schema) {
    const item = pickerOf(schema.items as TSchema)
    return item === asItIs ? asItIs : listPicker(item)
  }
  if ('anyOf' in schema) {
    const pickers = (schema.anyOf as TSchema[]).map(pickerOf)
    const notPlain = pickers.find(picker => picker !== asItIs)
    return notPlain === undefined ? asItIs : value => (value === null ? null : notPlain(value))
  }
  return asItIs
}

const asItIs: Picker = value => value

const listPicker =
  (item: Picker): Picker =>
  value => {
    const items = value as readonly unknown[]
    const picked = items.map(item)
    return picked.every((one, place) => one === items[place]) ? items : picked
  }

/**
 * What has the known fields only, in their order, is returned as it is: almost all that comes, and there is much of it.
 */
const objectPicker = (properties: Record<string, TSchema>): Picker => {
  const fields = Object.entries(properties).map(([name, schema]) => [name, pickerOf(schema)] as const)
  const names = fields.map(([name]) => name)
  const inner = fields.filter(([, pick]) => pick !== asItIs)
  const isInOrder = (value: Record<string, unknown>): boolean => {
    let place = 0
    // Parsed JSON has no members but its own.
    for (const name in value) if (name !== names[place++]) return false
    return place === names.length
  }
  return value => {
    const given = value as Record<string, unknown>
    const picked = inner.map(([name, pick]) => [name, pick(given[name])] as const)
    if (isInOrder(given) && picked.every(([name, inside]) => inside === given[name])) return given
    const copy = Object.fromEntries(names.map(name => [name, given[name]]))
    for (const [name, inside] of picked) copy[name] = inside
    return copy
  }
}

/** Keys are the publisher's, `__proto__` included: Object.fromEntries defines it like any other. */
const sortedMap: Picker = value => {
  const names = Object.keys(value as Record<string, unknown>)
  if (names.every((name, place) => place === 0 || (names[place - 1] ?? '') < name)) return value
  return Object.fromEntries(Object.entries(value as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const pickers = Object.fromEntries(
  Object.values(eventSchemas).flatMap(schemas =>
    Object.entries(schemas).map(([type, schema]) => [type, pickerOf(schema)]),
  ),
) as Record<AnyEvent['type'], Picker>
