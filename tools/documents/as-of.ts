/** A stored document as of an earlier position of its partition: takes back what later events did to it. */

import { UNTIL_FOREVER } from '../../schemas/limits.ts'
import type { Kind } from '../../schemas/stored/documents.ts'

/** The fields of a stored document of any kind. */
export type Fields = Readonly<Record<string, unknown>> & { readonly body?: Readonly<Record<string, unknown>> }
export type Document<Source extends Fields = Fields> = { readonly id: string; readonly source: Source }

/**
 * Returns the document without the effects of events from offset `position` on; undefined if it did not exist then.
 * `body_bytes` of an unchanged body stays. For a list, the bytes of the removed items are subtracted from the stored
 * number, even if that number is wrong.
 */
export const asOf = <Source extends Fields>(
  kind: Kind,
  { id, source: fields }: Document<Source>,
  position: number,
): Document<Source> | undefined => {
  if (kind === 'parked') return Number(fields.offset) < position ? { id, source: fields } : undefined
  // Chains, and heads of reps and periods.
  if (fields.seq === undefined) {
    const lists = Object.entries(fields.body ?? {})
    const body = Object.fromEntries(lists.map(([name, items]) => [name, itemsBefore(position, items)]))
    if (Object.values(body).every(items => items.length === 0)) return undefined
    const body_bytes = Number(fields.body_bytes) + bytesOf(body) - bytesOf(fields.body)
    return { id, source: { ...fields, body_bytes, body } }
  }
  if (Number(fields.seq) >= position) return undefined
  if (Number(fields.until_seq ?? 0) < position) return { id, source: fields }
  const current = { until_seq: UNTIL_FOREVER, ...('superseded_by_id' in fields && { superseded_by_id: null }) }
  return { id, source: { ...fields, ...current } }
}

const itemsBefore = (position: number, items: unknown): { readonly seq: number }[] => {
  if (!Array.isArray(items)) throw new TypeError('a chain or a head has a field that is no list')
  return items.filter(({ seq }: { readonly seq: number }) => seq < position)
}

const bytesOf = (body: unknown): number => Buffer.byteLength(JSON.stringify(body))
