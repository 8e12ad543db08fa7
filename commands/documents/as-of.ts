/**
 * A stored document as it was when its partition was at an earlier position: what later events did to it is taken back.
 */

import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Kind } from '../../schemas/stored/documents.ts'

export type Document = { readonly id: string; readonly source: Readonly<Record<string, unknown>> }

/**
 * Undefined where it was not there yet. `position` is the next offset: what lies at it or behind has not happened.
 * `body_bytes` is what was stored, for a body that never changes; of a list it is what it was then, as much too large
 * or too small as it is now.
 */
export const asOf = (kind: Kind, { id, source: fields }: Document, position: number): Document | undefined => {
  if (kind === 'parked') return Number(fields.offset) < position ? { id, source: fields } : undefined
  // Chains, and which versions of a rep or period there are: lists of what happened.
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
