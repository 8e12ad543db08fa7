/**
 * Whether a role of Elasticsearch hides documents or fields of an index. Elasticsearch answers such a user with fewer
 * rows and status 200. Only the answer about the user's own privileges tells.
 */

/** Every user may ask this. Without security, and for an API key with roles of its own, the answer is 400. */
export const OWN_PRIVILEGES_PATH = '/_security/user/_privileges'

/** With security, every user and API key gets an answer. */
export const OWN_USER_PATH = '/_security/_authenticate'

/** Returns the id of the API key of this process; undefined for a user. */
export const ownKeyIn = (answer: unknown): string | undefined => {
  const { id } = ((answer ?? {}) as { api_key?: { id?: unknown } }).api_key ?? {}
  return typeof id === 'string' ? id : undefined
}

/** An API key may read its own roles, but not those of the user who made it. */
export const ownKeyPath = (id: string): string => `/_security/api_key?id=${encodeURIComponent(id)}`

/** Returns the roles of the only API key of an answer, in the form of OWN_PRIVILEGES_PATH; undefined without roles. */
export const privilegesOfKey = (answer: unknown): unknown => {
  const { api_keys: keys } = (answer ?? {}) as { api_keys?: unknown }
  const [key] = (Array.isArray(keys) ? keys : []) as readonly { role_descriptors?: RoleDescriptors }[]
  if (!key?.role_descriptors) return undefined
  const listOf = (one: unknown): readonly unknown[] => (one == null ? [] : [one])
  const entries = Object.values(key.role_descriptors).flatMap(role => role.indices ?? [])
  return {
    indices: entries.map(entry => ({
      ...entry,
      query: listOf(entry.query),
      field_security: listOf(entry.field_security),
    })),
  }
}

type Restricting = { readonly query?: unknown; readonly field_security?: unknown }
type RoleDescriptors = Readonly<Record<string, { readonly indices?: readonly Restricting[] }>>

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
