/**
 * Asks Elasticsearch for the roles of this user or API key. A role with `query` or `field_security` hides documents,
 * and answers are short, with status 200 (schemas/stored/hiding-roles.ts).
 * In: how one question is asked. Out: privileges for `hiddenAmong`, or why there are none.
 * Promises: an API key with roles of its own is asked for these: somebody may change them at any time. `no security` is
 *   said only if Elasticsearch does not know the question of who the user is: with security it always answers it.
 */
import {
  OWN_PRIVILEGES_PATH,
  OWN_USER_PATH,
  ownKeyIn,
  ownKeyPath,
  privilegesOfKey,
} from '../../../schemas/stored/hiding-roles.ts'

/** `unknown`: Elasticsearch does not know the question. `refused`: it does not answer, or a proxy in its place. */
export type Told = { readonly answer: unknown } | 'unknown' | 'refused'

/** `isAll` is false for the own roles of an API key: those of its maker limit it, too, and no answer tells them. */
export type OwnRoles = { readonly privileges: unknown; readonly isAll: boolean } | 'no security' | 'not told'

/** Statuses of Elasticsearch for a path that it does not know. With security, `OWN_USER_PATH` has none of them. */
export const isUnknownPath = (status: number | null): boolean => [400, 405, 410, 501].includes(status ?? 0)

export const readOwnRoles = async (ask: (path: string) => Promise<Told>): Promise<OwnRoles> => {
  const own = await ask(OWN_PRIVILEGES_PATH)
  if (typeof own === 'object') return { privileges: own.answer, isAll: true }
  const user = await ask(OWN_USER_PATH)
  if (typeof user !== 'object') return user === 'unknown' ? 'no security' : 'not told'
  const id = ownKeyIn(user.answer)
  const key = id === undefined ? 'refused' : await ask(ownKeyPath(id))
  const privileges = typeof key === 'object' ? privilegesOfKey(key.answer) : undefined
  return privileges === undefined ? 'not told' : { privileges, isAll: false }
}
