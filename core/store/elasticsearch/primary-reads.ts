/**
 * Reads documents by id. Decisions rest on the reads from primaries. In: addresses of documents. Out: the documents in
 * order, as many as one answer holds.
 */
import type { Address } from '../../../schemas/stored/layout.ts'
import { StopError, Unanswered } from '../../runtime/index.ts'
import { MGET_BYTES, MGET_IDS } from '../limits.ts'
import { type Answer, AnswerTooLong, errorType, isTransient, type Send } from './client.ts'

/** A document to read. `_source`: the fields to read; all if absent; none if `false`, to see whether it exists. */
export type DocumentAddress = Address & { readonly _source?: readonly string[] | false }
/** A document in the response to a realtime multi-get. */
export type FoundDocument<Source = unknown> = { readonly _id: string } & (
  | { readonly found: true; readonly _version: number; readonly _source: Source }
  | { readonly found: false }
)
/** Reads the first documents, as many as one answer holds. Retries until answered. */
export type GetDocuments = <Source = unknown>(docs: readonly DocumentAddress[]) => Promise<FoundDocument<Source>[]>

/**
 * Reads documents by id in realtime: as last written, searchable or not. Any copy of a shard may answer, also an old
 * one: a node that stood still does not know at once that the cluster removed it. See `getFromPrimaries`.
 * @returns the first documents, in order: as many as one answer may hold, at least one
 * @throws Unanswered if a shard does not answer; StopError `index_missing`: a missing index must not look empty
 */
export const multiGet = <Source = unknown>(
  send: Send,
  docs: readonly DocumentAddress[],
  signal?: AbortSignal,
): Promise<FoundDocument<Source>[]> =>
  getAsManyAsFit(docs, (part, answerBytesMax) => multiGetAll<Source>(send, part, answerBytesMax, signal))

/** Reads all documents, with as many requests as their answers need. */
export const getEach = async <Source>(
  docs: readonly DocumentAddress[],
  get: (docs: readonly DocumentAddress[]) => Promise<FoundDocument<Source>[]>,
): Promise<FoundDocument<Source>[]> => {
  const found: FoundDocument<Source>[] = []
  while (found.length < docs.length) found.push(...(await get(docs.slice(found.length, found.length + MGET_IDS))))
  return found
}

/** Halves the documents until one answer holds them. A single document may be of any size. */
const getAsManyAsFit = async <Source>(
  docs: readonly DocumentAddress[],
  getAll: (docs: readonly DocumentAddress[], answerBytesMax: number | undefined) => Promise<FoundDocument<Source>[]>,
): Promise<FoundDocument<Source>[]> => {
  try {
    return await getAll(docs, docs.length > 1 ? MGET_BYTES : undefined)
  } catch (error) {
    if (!(error instanceof AnswerTooLong)) throw error
    return getAsManyAsFit(docs.slice(0, docs.length >> 1), getAll)
  }
}

const multiGetAll = async <Source>(
  send: Send,
  docs: readonly DocumentAddress[],
  answerBytesMax: number | undefined,
  signal: AbortSignal | undefined,
): Promise<FoundDocument<Source>[]> => {
  const request = { method: 'POST', path: '/_mget', body: { docs }, ...(answerBytesMax && { answerBytesMax }) } as const
  const { status, body } = await send<{ docs: (FoundDocument<Source> & { error?: unknown })[] }>(request, signal)
  const found = status === 200 ? body.docs : []
  for (const [index, { _id, _index }] of docs.entries()) {
    const document = found[index]
    if (errorType(document) === 'index_not_found_exception') throw new StopError('index_missing', _index)
    if (document?.error !== undefined) throw new Unanswered('elasticsearch', 503)
    if (document?._id !== _id || typeof document.found !== 'boolean') {
      throw new StopError('write_refused', `Elasticsearch answers ${status} to a multi-get, with other documents`)
    }
  }
  return found
}

/** An item of the answer to a read from primaries. Each part is checked before it is used. */
type UpdateItem = {
  readonly _index?: unknown
  readonly _id?: unknown
  readonly _version?: unknown
  readonly result?: unknown
  readonly status?: unknown
  readonly get?: { readonly _source?: unknown }
}

type UpdateItems = { readonly items?: readonly { readonly update?: UpdateItem }[] }

/**
 * Reads documents that a decision rests on, by id. A multi-get may get an old copy: a node that stood still, and that
 * the cluster has removed meanwhile, answers for some milliseconds as if nothing had happened. An old copy of a chain
 * would park a record for good, or apply one that must be parked. So each read is an update without a change:
 * Elasticsearch answers `noop` with the document, and stores nothing. The primary of the shard carries it out. All
 * copies confirm it, so that the primary is not an old one either. Results and errors are those of `multiGet`.
 */
export const getFromPrimaries = <Source = unknown>(
  send: Send,
  docs: readonly DocumentAddress[],
  signal?: AbortSignal,
): Promise<FoundDocument<Source>[]> =>
  getAsManyAsFit(docs, async (part, answerBytesMax) => {
    const bulk = linesOf(part)
    const check = (answer: Answer): void => void foundIn(answer as Answer<UpdateItems>, part)
    const request = { method: 'POST', path: '/_bulk', query: { _source: true }, bulk, check } as const
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
