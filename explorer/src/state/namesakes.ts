/** Tells reps of the same name apart: each gets its e-mail address as a mark, or its id. */
import type { Rep } from '../../../client/src/index.ts'

/** @returns the marks by the id of the rep; none for a rep whose name no other rep has */
export const marksOf = (reps: readonly Rep[]): ReadonlyMap<string, string> => {
  const named = reps.filter(({ name }) => name !== '')
  const shared = [...Map.groupBy(named, ({ name }) => name).values()].filter(({ length }) => length > 1)
  return new Map(
    shared.flatMap(namesakes => {
      // An address that two of them have tells nobody apart.
      const emails = namesakes.map(({ email }) => email)
      const isOwn = (email: string | null): boolean => emails.filter(other => other === email).length === 1
      return namesakes.map(({ id, email }) => [id, email && isOwn(email) ? email : id] as const)
    }),
  )
}
