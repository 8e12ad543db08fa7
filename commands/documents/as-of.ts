/** A stored document as of an earlier position of its partition: takes back what later events did to it. */

import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Kind } from '../../schemas/stored/documents.ts'

/** The fields of a stored document of any kind. */
export type Fields = Readonly<Record<string, unknown>> & { readonly body?: Readonly<Record<string, unknown>> }
export type Document<Source extends Fields = Fields> = { readonly id: string; readonly source: Source }

/**
 * Undefined if the document did not exist at `position`, which is the next offset: excludes events from it on.
 * `body_bytes` of a body that never changes is returned as stored. For a list it is reduced by the size of the removed
 * items; an error in the stored value remains.
 */
export const asOf = <Source extends Fields>(
  kind: Kind,
  { id, source: fields }: Document<Source>,
  position: number,
): Document<Source> | undefined => {
  if (kind === 'parked') return Number(fields.offset) < position ? { id, source: fields } : undefined
  // Chains, and version lists of reps and periods.
  if (fields.seq === undefined) {
    const body = Object.fromEntries(
      Object.entries(fields.body as Record<string, { readonly seq: number }[]>).map(([name, items]) => [
        name,
        items.filter(({ seq }) => seq < position),
      ]),
    )
    if (Object.values(body).every(items => items.length === 0)) return undefined
    const body_bytes = Number(fields.body_bytes) + bytesOf(body) - bytesOf(fields.body)
    return { id, source: { ...fields, body_bytes, body } }
  }
  if (Number(fields.seq) >= position) return undefined
  if (Number(fields.until_seq ?? 0) < position) return { id, source: fields }
  const current = { until_seq: UNTIL_FOREVER, ...('superseded_by_id' in fields && { superseded_by_id: null }) }
  return { id, source: { ...fields, ...current } }
}

const bytesOf = (body: unknown): number => Buffer.byteLength(JSON.stringify(body))
