/**
 * The changes of an organization, the latest first. The API lists them from the first one on, and says how many there
 * are: the page of the latest 50 begins 50 changes before the end.
 */
import type { Change, Client } from '../../../client/src/index.ts'
import { lacksPermission } from '../refusals.ts'

/** The pages of a list, as the client has them. */
export type Paged<Item> = {
  readonly pages: () => AsyncIterable<{ readonly data: readonly Item[]; readonly hasMore: boolean }>
}

/**
 * @param size changes of a page; `first`: of the first one, if that is another number
 * @param since the moment after which they were published: an instant that is over, or the id of a change
 */
export const latestChanges = (client: Client, size: number, first = size, since?: string): Paged<Change> => ({
  pages: async function* () {
    let end = (await client.totals()).last_sequence
    const earlier = since === undefined ? 0 : (await client.asOf(since).totals()).last_sequence
    const oldest = Math.min(earlier, end)
    let wanted = first
    do {
      const begin = Math.max(oldest, end - wanted)
      wanted = size
      const data = await changesBetween(client, begin, end)
      yield { data: data.toReversed(), hasMore: begin > oldest }
      end = begin
    } while (end > oldest)
  },
})

/** The same for a view. A key that may not read totals cannot count the changes: it gets the first ones first. */
export const allChanges = (client: Client, size: number): Paged<Change> => ({
  pages: async function* () {
    let hasBegun = false
    try {
      for await (const page of latestChanges(client, size).pages()) {
        hasBegun = true
        yield page
      }
    } catch (error) {
      // A key that loses the right later must not begin anew: the changes would come twice.
      if (hasBegun || !lacksPermission(error)) throw error
      yield* client.changes({ limit: size }).pages()
    }
  },
})

/** The most changes of one request. */
const REQUEST_MAX = 200

/** A page of large records can be shorter than asked: then more are read. */
const changesBetween = async (client: Client, begin: number, end: number): Promise<Change[]> => {
  const found: Change[] = []
  if (end === begin) return found
  for await (const change of client.changes({ after: begin, limit: Math.min(REQUEST_MAX, end - begin) })) {
    found.push(change)
    if (change.sequence >= end) break
  }
  return found
}
