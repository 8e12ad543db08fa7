/**
 * Whether a role of Elasticsearch hides documents or fields of an index. Elasticsearch answers such a user with fewer
 * rows and status 200. Only the answer about the user's own privileges tells.
 */

/** Every user may ask this. Without security, and for an API key with roles of its own, the answer is 400. */
export const OWN_PRIVILEGES_PATH = '/_security/user/_privileges'

type Entry = {
  readonly names: readonly string[]
  readonly privileges: readonly string[]
  readonly field_security?: readonly { readonly grant?: readonly string[]; readonly except?: readonly string[] }[]
  readonly query?: readonly unknown[]
}

/**
 * Returns the first of these indices of which a role hides something. An entry without restriction that permits to read
 * the index makes all of it visible again: Elasticsearch unites the entries of an index.
 * @throws TypeError if the answer has another form: it must not pass for one without restrictions
 */
export const hiddenAmong = (answer: unknown, indices: readonly string[]): string | undefined => {
  const entries = entriesIn(answer)
  const hiding = entries.filter(hides)
  const whole = entries.filter(entry => !hides(entry) && entry.privileges.some(one => one === 'read' || one === 'all'))
  return indices.find(
    index =>
      hiding.some(({ names }) => names.some(name => matches(name, index) !== false)) &&
      !whole.some(({ names }) => names.some(name => matches(name, index) === true)),
  )
}

const entriesIn = (answer: unknown): readonly Entry[] => {
  const { indices } = (answer ?? {}) as { indices?: unknown }
  if (!Array.isArray(indices)) throw new TypeError('no privileges')
  for (const { names, privileges, query = [], field_security: fields = [] } of indices) {
    if (![names, privileges, query, fields].every(Array.isArray)) throw new TypeError('no privileges')
  }
  return indices as readonly Entry[]
}

/** A group without `grant` may be one that grants nothing: Elasticsearch leaves out an empty list. */
const hides = ({ query = [], field_security: groups = [] }: Entry): boolean =>
  query.length > 0 ||
  (groups.length > 0 && !groups.some(({ grant = [], except = [] }) => grant.includes('*') && except.length === 0))

/** Returns undefined for a pattern that JavaScript may read in another way than Elasticsearch. */
const matches = (pattern: string, index: string): boolean | undefined => {
  const isExpression = pattern.startsWith('/')
  if (isExpression ? /[~&@<>#"\\^$]|\(\?/.test(pattern) : pattern.includes('\\')) return undefined
  const text = isExpression
    ? pattern.slice(1, -1)
    : pattern
        .replace(/[.+^${}()|[\]]/g, '\\$&')
        .replace(/\*/g, '.*')
        .replace(/\?/g, '.')
  try {
    return new RegExp(`^(?:${text})$`).test(index)
  } catch {
    return undefined
  }
}
