/**
 * In: an organization, a list, the ids of some of its records, and optionally a moment. Out: these records in the order
 *   of the ids, and the position they were read at.
 * Promises: exactly the records that a read by id finds at this position, in the same content: replaced payouts too,
 *   and neither unknown records nor those of another organization. Large records end an answer early, never before the
 *   first one: `left` has the ids from the first record on that had no room.
 * Can go wrong: Elasticsearch cannot answer completely → `unavailable`, never fewer records.
 */
import { PAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { listTraits } from '../../../schemas/lists.ts'
import { type ListKind, recordId, versionId } from '../../../schemas/stored/documents.ts'
import { Refusal, unavailable } from '../../runtime/index.ts'
import {
  type DocumentName,
  type DocumentsOf,
  type Hit,
  isVisible,
  type ReadPosition,
  type ReadScope,
  type ScopedMultiGet,
  sliceHits,
  sliceMultiGet,
  smallDocument,
} from '../../store/index.ts'
import { versionsIn } from './cursors.ts'
import type { Page, ReaderParts } from './read-list.ts'
import type { Moment } from './read-parameters.ts'
import { createReadDocumentsAsOf } from './read-record.ts'

/** `ids`: each once. */
export type IdsAsked = { readonly kind: ListKind; readonly ids: readonly string[]; readonly asOf: Moment | undefined }
/** `left`: the ids that are not answered; empty unless `hasMore`. */
export type PageOfIds = Page & { readonly left: readonly string[] }
export type ReadByIds = (scope: ReadScope, asked: IdsAsked) => Promise<PageOfIds>

/** A record that may exist, and the document that it is in at the position. */
type Named = { readonly id: string; readonly name: DocumentName }

/** Creates the reader of records by their ids. */
export const createReadByIds = (parts: ReaderParts, multiGet: ScopedMultiGet): ReadByIds => {
  const readDocumentsAsOf = createReadDocumentsAsOf(parts)

  /** Reads the position; for a rep or a period also which of its versions is current there. */
  const nameRecords = async (scope: ReadScope, { kind, ids, asOf }: IdsAsked) => {
    const { hasVersions } = listTraits[kind]
    const documentsOf: DocumentsOf = ({ layout }) =>
      ids.map(id => ({ ...layout.addressOf(kind, recordId(scope.org, id)), form: 'record' }))
    const { current, position, documents } = await readDocumentsAsOf(scope, hasVersions ? documentsOf : () => [], asOf)
    const { layout } = position.generation
    const records = ids.flatMap((id, index): Named[] => {
      if (!hasVersions) return [{ id, name: { ...layout.addressOf(kind, recordId(scope.org, id)), form: 'record' } }]
      const head = documents[index]
      const version = head && versionsIn(head).findLast(({ seq }) => isVisible(seq, position))
      if (version === undefined) return []
      const address = layout.addressOf(kind, versionId(scope.org, id, version.seq))
      return [{ id, name: { ...address, form: 'record' } }]
    })
    return { current, position, records, hasVersions }
  }

  const readHits = async (scope: ReadScope, kind: ListKind, records: readonly Named[]) => {
    if (records.length === 0) return []
    const names = records.map(({ name }) => name)
    return sliceHits(await multiGet(names, scope), names, kind, scope.org)
  }

  /** Asks for the sizes, and then for the records that an answer has room for. */
  const readBySize = async (scope: ReadScope, kind: ListKind, records: readonly Named[], position: ReadPosition) => {
    const names = records.map(({ name }) => ({ ...name, form: 'size' }) as const)
    const found = sliceMultiGet(await multiGet(names, scope), names)
    const sizes = found.map(document => {
      const { seq, body_bytes } = document ? smallDocument<{ seq: number; body_bytes: number }>(document) : {}
      return seq !== undefined && isVisible(seq, position) ? (body_bytes ?? 0) : undefined
    })
    const answered = answeredOf(sizes)
    const some = records.filter((_, index) => index < answered && sizes[index] !== undefined)
    return { hits: await readHits(scope, kind, some), answered }
  }

  const readSome = async (scope: ReadScope, kind: ListKind, records: readonly Named[], position: ReadPosition) => {
    try {
      const hits = (await readHits(scope, kind, records)).map(hit =>
        hit && isPublishedAt(hit, position) ? hit : undefined,
      )
      const answered = answeredOf(hits.map(hit => hit && hit.bodyEnd - hit.bodyStart))
      return { hits: hits.slice(0, answered), answered }
    } catch (error) {
      const isTooMuch = error instanceof Refusal && error.reason === 'elasticsearch_too_large'
      // Other records are small.
      if (!isTooMuch || kind !== 'payouts') throw error
      return readBySize(scope, kind, records, position)
    }
  }

  return async (scope, asked) => {
    const { kind } = asked
    const { current, position, records, hasVersions } = await nameRecords(scope, asked)
    const found = await readSome(scope, kind, records, position)
    if (hasVersions && found.hits.includes(undefined)) throw unavailable('version_missing')
    const hits = found.hits.filter(hit => hit !== undefined)
    const left = records.slice(found.answered).map(({ id }) => id)
    const time = await parts.projectionTime(scope, current, hits.length > 0 ? 'records' : 'unknown')
    return { position: { ...position, time }, hits, hasMore: left.length > 0, left }
  }
}

const isPublishedAt = (hit: Hit, position: ReadPosition): boolean => isVisible(hit.sortValue, position)

/** Returns how many records are answered. @param sizes the bytes of each; undefined for one that is not shown */
const answeredOf = (sizes: readonly (number | undefined)[]): number => {
  let bytes = 0
  for (const [index, size] of sizes.entries()) {
    if (size === undefined) continue
    if (bytes > 0 && bytes + size > PAGE_BYTES_MAX) return index
    bytes += size
  }
  return sizes.length
}
