/** The last change of an organization: the page follows those after it. */
import type { Client } from '../../../client/src/index.ts'
import { lacksPermission } from '../refusals.ts'

/** Pages of 200 changes that a key reads to find the last one, if it may not read totals. */
const PAGES_MAX = 50

/**
 * Totals name the last change. Without the right to read them, a key finds it by reading all changes.
 * @returns the id of the change; null while the organization has no change
 */
export const lastChangeOf = async (client: Client): Promise<string | null | 'too far'> => {
  try {
    return (await client.totals()).last_change_id
  } catch (error) {
    if (!lacksPermission(error)) throw error
  }
  let last = ''
  let pages = 0
  for await (const { nextCursor, hasMore } of client.changes().pages()) {
    last = nextCursor
    if (hasMore && ++pages >= PAGES_MAX) return 'too far'
  }
  return last === '' ? null : last
}
