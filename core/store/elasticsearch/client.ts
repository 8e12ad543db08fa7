/**
 * The projector's requests to Elasticsearch, over the official client. Each is tried once. `retryUntilAborted` retries
 * all requests except bulk writes: `documents/documents.ts` retries those, whole or by item.
 */
import { type Client, errors } from '@elastic/elasticsearch'
import type { Address } from '../../../schemas/stored/layout.ts'
import { keepTrying, type Retrying, StopError, Unanswered } from '../../runtime/index.ts'
import { type Credentials, noCredentials } from '../elasticsearch-credentials.ts'
import { ELASTICSEARCH_SLOW_MS, ELASTICSEARCH_TIMEOUT_MS, MGET_BYTES, MGET_IDS } from '../limits.ts'
import type { DocumentVersion } from './answers.ts'

/** The response is longer than `answerBytesMax`. */
export class AnswerTooLong extends Error {
  override name = 'AnswerTooLong'
}

/** `Body` is the form of a successful answer (`answers.ts`). Another status has a body of another form. */
export type Answer<Body = unknown> = { readonly status: number; readonly body: Body }
export type Request = {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Record<string, string | number | boolean>
  readonly body?: object | string
  /** Lines of JSON. */
  readonly bulk?: Buffer
  /** Longest response that is read, in bytes. */
  readonly answerBytesMax?: number
  /** Throws Unanswered if an item of the answer may succeed later: see `sendWhole`. */
  readonly check?: (answer: Answer) => void
}

/**
 * Sends one request, once.
 * @returns status and body for 2xx, 400, 404, 409 and 413
 * @throws Unanswered if a retry may succeed; AnswerTooLong; StopError `access_refused`, `index_unsuitable`,
 *   `write_refused`
 */
export type Send = <Body = unknown>(request: Request, signal?: AbortSignal) => Promise<Answer<Body>>
/** Like `Send`, without a signal. The projector retries until answered. */
export type Ask = <Body = unknown>(request: Request) => Promise<Answer<Body>>

export type Elasticsearch = { readonly send: Send }

export const ELASTICSEARCH_OVERLOADED = 429
/** The statuses that a retry may mend, of a request or of an item in a bulk response. 0: no response. */
const retriable = new Set([0, 408, ELASTICSEARCH_OVERLOADED, 502, 503, 504])
const CLOSED = 'index_closed_exception'
const returnedStatuses = new Set([400, 404, 409, 413])

export const createElasticsearch = (client: Client, credentials: Credentials = noCredentials): Elasticsearch => ({
  send: async <Body>({ method, path, query, body, bulk, answerBytesMax }: Request, signal?: AbortSignal) => {
    const params = {
      method,
      path,
      ...(query && { querystring: query }),
      ...(body && { body }),
      ...(bulk && { bulkBody: bulk }),
    }
    const headers = credentials.header()
    const options = {
      headers,
      meta: true,
      maxRetries: 0,
      requestTimeout: ELASTICSEARCH_TIMEOUT_MS,
      ...(signal && { signal }),
      ...(answerBytesMax && { maxResponseSize: answerBytesMax }),
    } as const
    try {
      const { statusCode, body: answer } = await client.transport.request<Body>(params, options)
      return { status: statusCode, body: answer }
    } catch (error) {
      if (!(error instanceof errors.ElasticsearchClientError)) throw error
      // Except for our signal, the client aborts only a response that is too long.
      if (answerBytesMax && error instanceof errors.RequestAbortedError && !signal?.aborted) throw new AnswerTooLong()
      const status = error instanceof errors.ResponseError ? (error.statusCode ?? 0) : 0
      const answer = error instanceof errors.ResponseError ? error.body : undefined
      if (isBlock(answer)) throw new Unanswered('elasticsearch', status, errorType(answer), blockedIndex(answer))
      if (isTransient(status, answer) || (status === 401 && credentials.renew(headers)))
        throw new Unanswered('elasticsearch', status)
      assertPipelineExists(path.split('/')[1] ?? '', answer)
      if (returnedStatuses.has(status)) return { status, body: answer }
      if (status === 401 || status === 403) {
        throw new StopError('access_refused', `Elasticsearch answers ${status}`, { status })
      }
      throw new StopError('write_refused', `Elasticsearch answers ${status} to ${method} ${path.split('/').at(-1)}`)
    }
  },
})

/**
 * Sends a request once, for callers that retry requests. A shard can be away for a moment: then Elasticsearch answers
 * the request, but not the item.
 * @throws Unanswered also if an item was not answered
 */
export const sendWhole = async <Body>(send: Send, request: Request, signal?: AbortSignal): Promise<Answer<Body>> => {
  const answer = await send<Body>(request, signal)
  request.check?.(answer)
  return answer
}

/** Retries until Elasticsearch answers, and reports failures to health. */
export const retryUntilAborted = <Result>(
  operation: string,
  signal: AbortSignal,
  { retryOptions, health }: Retrying,
  attempt: () => Promise<Result>,
): Promise<Result> =>
  health.during(
    `elasticsearch ${operation}`,
    report => keepTrying(attempt, signal, { ...retryOptions, onTrouble: trouble => report(trouble?.message) }),
    ELASTICSEARCH_SLOW_MS,
  )

/** Whether a retry may succeed. */
export const isTransient = (status: number, answer: unknown): boolean => retriable.has(status) || isBlock(answer)

/**
 * A read-only index answers 403, and a closed one 400: a temporary state of the cluster, not a matter of credentials or
 * of the request.
 */
const isBlock = (answer: unknown): boolean => blocks.has(errorType(answer))
const blocks: ReadonlySet<string | undefined> = new Set(['cluster_block_exception', CLOSED])

/**
 * Returns the index that is closed, or that a block is on. A block is named in the reason of the error. This form of a
 * reason quotes no document.
 */
const blockedIndex = (answer: unknown): string | undefined => {
  if (errorType(answer) !== CLOSED) return /^index \[([^\]\s"]{1,255})\] blocked by: \[/.exec(reasonOf(answer))?.[1]
  const { index } = (answer as { error: { index?: unknown } }).error
  return typeof index === 'string' ? index : undefined
}

/**
 * @param answer with an error. This form of a reason quotes no document
 * @throws StopError if the index names an ingest pipeline that does not exist: it takes no document
 */
export const assertPipelineExists = (index: string, answer: unknown): void => {
  const pipeline = /^pipeline with id \[([^\]\s"]{1,255})\] does not exist$/.exec(reasonOf(answer))?.[1]
  if (pipeline === undefined) return
  const what = `the ingest pipeline ${pipeline} does not exist; remove index.default_pipeline and index.final_pipeline`
  throw new StopError('index_unsuitable', `${index}: ${what}`, { index })
}

const reasonOf = (answer: unknown): string => {
  const { reason } = ((answer as { error?: unknown } | undefined)?.error ?? {}) as { reason?: unknown }
  return String(reason)
}

/** Returns the type of an Elasticsearch error. Reasons of other forms are never read, because they quote values. */
export const errorType = (answer: unknown): string | undefined => {
  const error = typeof answer === 'object' && answer !== null && 'error' in answer ? answer.error : undefined
  const type = typeof error === 'object' && error !== null && 'type' in error ? error.type : undefined
  return typeof type === 'string' ? type : undefined
}

/**
 * Returns the type of the innermost error. The outer one of a search says only that the search failed:
 * `too_many_buckets_exception`, for example, is the cause of a `search_phase_execution_exception`.
 */
export const causeType = (answer: unknown): string | undefined => {
  const { error } = (answer ?? {}) as { error?: { caused_by?: unknown; root_cause?: unknown } }
  const roots: unknown = error?.root_cause
  const inner = error?.caused_by ?? (Array.isArray(roots) ? roots[0] : undefined)
  return errorType({ error: inner }) ?? errorType(answer)
}

/** The path of a document that is not routed, as those of the control index. Its id may have any character. */
export const documentPath = (index: string, id: string): string => `/${index}/_doc/${encodeURIComponent(id)}`

/** The condition of a write: the document still has this version. */
export const ifVersion = ({ _seq_no, _primary_term }: DocumentVersion) => ({
  if_seq_no: _seq_no,
  if_primary_term: _primary_term,
})

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
