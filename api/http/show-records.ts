/** The records that an answer is about, for the audit. While reads are not audited, this costs nothing. */
import type { RequestContext } from './request.ts'

/** Tells which records the answer shows. @param ids called only if reads are audited */
export const showRecords = (
  { state: { read } }: RequestContext,
  ids: () => readonly string[],
  count?: number,
): void => {
  if (read === undefined) return
  read.ids = ids()
  read.count = count ?? read.ids.length
}
