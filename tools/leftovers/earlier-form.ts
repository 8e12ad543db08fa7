/**
 * The form that a stored document had before some position, and the version that it had then: the offset of the last
 * event before the position that touched it.
 */

import { lastOffsetIn } from '../../core/store/index.ts'
import type { ApiKeyDocument, ApiKeyHeadDocument } from '../../schemas/stored/documents.ts'
import type { IndexKind } from '../../schemas/stored/layout.ts'
import { asOf, type Fields } from '../documents/as-of.ts'

export type EarlierForm = { readonly version: number; readonly source: Fields }

/** Returns undefined if the document did not exist before offset `position`. */
export const earlierForm = (kind: IndexKind, source: Fields, position: number): EarlierForm | undefined => {
  // Its version is its offset, and nothing touches it.
  if (kind === 'balances') return Number(source.seq) < position ? { version: Number(source.seq), source } : undefined
  const earlier = kind === 'api-keys' ? keyAsOf(source, position) : asOf(kind, { id: '', source }, position)?.source
  return earlier && { version: lastOffsetIn(earlier), source: earlier }
}

/** An API key by its hash, or its head. Both are made by one event, and revoked by another one. */
const keyAsOf = (source: Fields, position: number): Fields | undefined => {
  const key = source as Partial<ApiKeyDocument & ApiKeyHeadDocument> & Fields
  const { created_seq = 0, revoked_seq } = (key.body ?? {}) as Partial<ApiKeyHeadDocument['body']>
  if (created_seq >= position) return undefined
  if (key.key_id !== undefined) return { ...source, revoked: false }
  if (typeof revoked_seq !== 'number' || revoked_seq < position) return source
  const body = { ...key.body, revoked_seq: null }
  return { ...source, body_bytes: Buffer.byteLength(JSON.stringify(body)), body }
}
