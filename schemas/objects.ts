/** Objects whose keys are known when they are compiled. TypeScript's own functions forget the keys. */

/** The keys of an object that has no others. */
export const keysOf = <Key extends string>(object: Readonly<Partial<Record<Key, unknown>>>): Key[] =>
  Object.keys(object) as Key[]

/** An object with a value for each of the keys. */
export const objectOf = <Key extends string, Value>(
  keys: readonly Key[],
  valueFor: (key: Key) => Value,
): Record<Key, Value> => Object.fromEntries(keys.map(key => [key, valueFor(key)] as const)) as Record<Key, Value>
