/** The records that an answer is about, for the audit. While reads are not audited, this costs nothing. */
import type { Audited, Context } from './request.ts'

/** Notes which records the answer is about. @param ids called only if reads are audited; @param count of them shown */
export const noteRecordsForAudit = (
  { state: { read } }: Context<Audited>,
  ids: () => readonly string[],
  count?: number,
): void => {
  if (read === undefined) return
  read.ids = ids()
  read.count = count ?? read.ids.length
}
