/** Objects whose keys are known when they are compiled: TypeScript's own functions forget them. The type of a value. */

/** The keys of an object that has no others. */
export const keysOf = <Key extends string>(object: Readonly<Partial<Record<Key, unknown>>>): Key[] =>
  Object.keys(object) as Key[]

/** An object with a value for each of the keys. */
export const objectOf = <Key extends string, Value>(
  keys: readonly Key[],
  valueFor: (key: Key) => Value,
): Record<Key, Value> => Object.fromEntries(keys.map(key => [key, valueFor(key)] as const)) as Record<Key, Value>

/** The type of a value, for messages that must not have its content. */
export const typeNameOf = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The type and the size of a value: *a text of 4 characters*, *a list of 3 items*. */
export const describeValue = (value: unknown): string => {
  const name = typeNameOf(value)
  if (typeof value === 'string') {
    const length = [...value].length
    return `${name} of ${length} character${length === 1 ? '' : 's'}`
  }
  if (Array.isArray(value)) return `${name} of ${value.length} item${value.length === 1 ? '' : 's'}`
  return name
}
