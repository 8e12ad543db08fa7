/** A generation that follows another: the decisions of the followed generation that bind it. */

import type { ParkCode } from '../../../schemas/errors.ts'
import type { Assessed, Skipped } from './project.ts'

/** The code of each record that the followed generation parked, by offset. */
export type ParkedThere = ReadonlyMap<number, ParkCode>

/** `decidableTo` is the first offset that may not be decided yet. */
export type Followed = { readonly decidableTo: number; readonly parked: ParkedThere }

/** Parks a record that the followed generation parked, with the same code, whatever these rules decide. */
export const parkAsFollowed = (assessed: Assessed | Skipped, parked: ParkedThere | undefined): Assessed | Skipped => {
  const code = parked?.get(assessed.record.offset)
  if (code === undefined || 'skipped' in assessed) return assessed
  return { ...assessed, verdict: code, reads: {}, rules: undefined }
}
