/**
 * Says up to which offset a stored document has the effects of events. In: a document of any kind, as it is stored.
 * Out: the offset of the last event whose effect it shows. Its version is this offset, unless somebody else wrote it.
 */
import { UNTIL_FOREVER } from '../../../schemas/limits.ts'

type Item = { readonly seq: number }
/** The fields that have offsets, of all kinds. */
type Offsets = {
  readonly seq?: number
  readonly until_seq?: number
  readonly offset?: number
  readonly body?: {
    readonly versions?: readonly Item[]
    readonly payouts?: readonly Item[]
    readonly payroll?: readonly Item[]
    readonly created_seq?: number
    readonly revoked_seq?: number | null
  } | null
  readonly revoked?: boolean
}

/** Returns infinity if the document does not tell: a revoked API key, or a form that this version does not know. */
export const lastOffsetIn = (stored: unknown): number => {
  if (typeof stored !== 'object' || stored === null) return Number.POSITIVE_INFINITY
  const { seq, until_seq = UNTIL_FOREVER, offset, revoked, body }: Offsets = stored
  if (offset !== undefined) return offset
  if (seq !== undefined) return until_seq === UNTIL_FOREVER ? seq : until_seq
  // Only its head says at which offset it was revoked.
  if (revoked === true) return Number.POSITIVE_INFINITY
  const { versions, payouts, payroll, created_seq, revoked_seq } = body ?? {}
  if (created_seq !== undefined) return revoked_seq ?? created_seq
  const last = [versions, payouts, payroll].flatMap(items => items?.at(-1)?.seq ?? [])
  return last.length > 0 ? Math.max(...last) : Number.POSITIVE_INFINITY
}
