/**
 * Reads documents that a decision rests on. A multi-get may get an old copy: a node that stood still, and that the
 * cluster has removed meanwhile, answers for some milliseconds as if nothing had happened. An old copy of a chain would
 * park a record for good, or apply one that must be parked.
 * So each read is an update without a change: Elasticsearch answers `noop` with the document, and stores nothing. The
 * primary of the shard carries it out. All copies confirm it, so that the primary is not an old one either.
 */
import { StopError, Unanswered } from '../../runtime/index.ts'
import {
  type Answer,
  type DocumentAddress,
  errorType,
  type FoundDocument,
  getAsManyAsFit,
  isTransient,
  type Send,
} from './client.ts'

/** An item of the answer. Each part is checked before it is used. */
type UpdateItem = {
  readonly _index?: unknown
  readonly _id?: unknown
  readonly _version?: unknown
  readonly result?: unknown
  readonly status?: unknown
  readonly get?: { readonly _source?: unknown }
}

type UpdateItems = { readonly items?: readonly { readonly update?: UpdateItem }[] }

/** Reads documents by id from the primaries of their shards. Results and errors are those of `multiGet`. */
export const getFromPrimaries = <Source = unknown>(
  send: Send,
  docs: readonly DocumentAddress[],
  signal?: AbortSignal,
): Promise<FoundDocument<Source>[]> =>
  getAsManyAsFit(docs, async (part, answerBytesMax) => {
    const bulk = linesOf(part)
    const request = { method: 'POST', path: '/_bulk', query: { _source: true }, bulk } as const
    return foundIn<Source>(
      await send<UpdateItems>({ ...request, ...(answerBytesMax && { answerBytesMax }) }, signal),
      part,
    )
  })

const linesOf = (docs: readonly DocumentAddress[]): Buffer => Buffer.from(docs.map(lineOf).join(''))

const lineOf = ({ _index, _id, _source, routing }: DocumentAddress): string => {
  const fields = _source ? { includes: _source } : _source
  return `${JSON.stringify({ update: { _index, _id, routing, _source: fields } })}\n{"doc":{}}\n`
}

const foundIn = <Source>({ status, body }: Answer<UpdateItems>, docs: readonly DocumentAddress[]) => {
  const items = status === 200 ? body.items : undefined
  return docs.map((address, index) => {
    const found = documentOf<Source>(items?.[index]?.update, address)
    if (found !== undefined) return found
    throw new StopError('write_refused', `Elasticsearch answers ${status} to a read, with other documents`)
  })
}

/** Errors that stay. Others do not: Elasticsearch answers 404 or 500 if a shard closes, and repeats no update. */
const refused = new Set([400, 401, 403])

/** Returns undefined if the item is not the answer for this document. */
const documentOf = <Source>(
  item: UpdateItem | undefined,
  { _index, _id, _source: fields }: DocumentAddress,
): FoundDocument<Source> | undefined => {
  const type = errorType(item)
  if (type === 'index_not_found_exception') throw new StopError('index_missing', _index)
  const { _version, result, status, get } = item ?? {}
  if (item?._index !== _index || item._id !== _id || typeof status !== 'number') return undefined
  if (type === 'document_missing_exception') return { _id, found: false }
  if (type !== undefined) {
    if (isTransient(status, item) || !refused.has(status)) throw new Unanswered('elasticsearch', status, type, _index)
    throw new StopError('write_refused', `status ${status}, ${type}, while reading`, { index: _index })
  }
  if (result !== 'noop' || typeof _version !== 'number' || (fields !== false && !get?._source)) return undefined
  return { _id, found: true, _version, _source: get?._source as Source }
}
