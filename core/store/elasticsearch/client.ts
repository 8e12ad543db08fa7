/**
 * The projector's requests to Elasticsearch, over the official client. Each is tried once. `retryUntilAborted` retries
 * all requests except bulk writes: `documents/documents.ts` retries those, whole or by item. `createBatcher` combines
 * small requests of several partitions.
 */
import { type Client, errors } from '@elastic/elasticsearch'
import { keepTrying, type Retrying, StopError, Unanswered, whenAllEnd } from '../../runtime/index.ts'
import { type Credentials, noCredentials } from '../elasticsearch-credentials.ts'
import {
  BATCHED_BYTES,
  BATCHED_IDS,
  ELASTICSEARCH_SLOW_MS,
  ELASTICSEARCH_TIMEOUT_MS,
  MGET_BYTES,
  SMALL_BULK_BYTES,
} from '../limits.ts'
import { type BulkItem, type DocumentVersion, reasonOf } from './answers.ts'
import { assertNoPipeline, assertPipelineExists, WITHOUT_PIPELINE, WITHOUT_PIPELINES } from './pipelines.ts'

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
  /** A question that a proxy need not permit: its own 400 or 404 counts as an answer, which tells nothing. */
  readonly isOptional?: boolean
  /** Throws if another owner has published what is written. Called last: a request may wait in `StreamStore`. */
  readonly assertUnpublished?: () => Promise<void>
}

/**
 * Sends one request, once.
 * @returns status and body for 2xx, 400, 404 and 409 of Elasticsearch itself, and for 413; see also `isOptional`
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
const TOO_LARGE = 413
const returnedStatuses = new Set([400, 404, 409, TOO_LARGE])
const documentPaths = /^\/([^/]+)\/_(?:doc|create)\//

export const createElasticsearch = (client: Client, credentials: Credentials = noCredentials): Elasticsearch => ({
  send: async <Body>(asked: Request, signal?: AbortSignal) => {
    const { method, path, query, body, bulk, answerBytesMax, isOptional = false } = asked
    const [, written] = (method === 'PUT' && documentPaths.exec(path)) || []
    const querystring = written === undefined ? query : { ...WITHOUT_PIPELINE, ...query }
    const params = {
      method,
      path,
      ...(querystring && { querystring }),
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
      if (statusCode >= 300) throw new Unanswered('elasticsearch', statusCode, 'a redirect of a proxy')
      if (written !== undefined) assertNoPipeline(written, answer as BulkItem['index'])
      return { status: statusCode, body: answer }
    } catch (error) {
      if (isBrokenCompression(error)) throw new Unanswered('elasticsearch')
      if (!(error instanceof errors.ElasticsearchClientError)) throw error
      // Except for our signal, the client aborts only a response that is too long.
      if (answerBytesMax && error instanceof errors.RequestAbortedError && !signal?.aborted) throw new AnswerTooLong()
      const status = error instanceof errors.ResponseError ? (error.statusCode ?? 0) : 0
      const answer = error instanceof errors.ResponseError ? error.body : undefined
      if (isBlock(answer)) throw new Unanswered('elasticsearch', status, errorType(answer), blockedIndex(answer))
      if (isTransient(status, answer) || (status === 401 && credentials.renew(headers)))
        throw new Unanswered('elasticsearch', status)
      if (returnedStatuses.has(status) && status !== TOO_LARGE && !isOptional && !isOfElasticsearch(error))
        throw new Unanswered('elasticsearch', status, 'without the header x-elastic-product')
      assertPipelineExists(path.split('/')[1] ?? '', answer)
      if (returnedStatuses.has(status)) return { status, body: answer }
      if (status === 401 || status === 403)
        throw new StopError('access_refused', `Elasticsearch answers ${status}`, { status })
      const what = `Elasticsearch answers ${status} to ${method} ${path.split('/').at(-1)}`
      throw new StopError('write_refused', what, { status, isOfElasticsearch: isOfElasticsearch(error) })
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

/**
 * A proxy answers 404 in place of Elasticsearch while it reloads, for example: that says nothing about documents. The
 * client itself refuses such an answer of status 2xx.
 */
const isOfElasticsearch = (error: errors.ElasticsearchClientError): boolean =>
  error instanceof errors.ResponseError && error.headers?.['x-elastic-product'] === 'Elasticsearch'

/** The client passes on an error of `unzip`: a compressed answer was cut off. */
const isBrokenCompression = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')

/** Whether a retry may succeed. */
export const isTransient = (status: number, answer: unknown): boolean => retriable.has(status) || isBlock(answer)

/**
 * A read-only index answers 403, and a closed one 400: a temporary state, not a matter of credentials or the request.
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

/** Requests that can be combined, and how their answer is divided. */
export type BatchableKind = {
  readonly sizeOf: (request: Request) => number
  /** The largest size of a request that is combined with others, and of a combined request. */
  readonly smallSize: number
  readonly maxSize: number
  readonly combine: (requests: readonly [Request, ...Request[]]) => Request
  /**
   * The answer of each request, or the error it would have had alone; undefined if the answer cannot be divided.
   * @throws StopError, for all of them
   */
  readonly divide: (answer: Combined, requests: readonly Request[]) => readonly (Answer | Unanswered)[] | undefined
}

/** The answer to a combined request. */
type Combined = Answer<{ readonly items?: readonly (BulkItem | null)[] } | undefined>

type Waiting = {
  readonly request: Request
  readonly signal: AbortSignal | undefined
  readonly resolve: (answer: Answer | Promise<Answer>) => void
  readonly reject: (error: unknown) => void
}

/**
 * Combines small requests of several partitions. In: requests of one kind, each for one partition. Out: an answer for
 * each. While one small request is under way, further ones wait and are then sent together. So under low load nothing
 * waits, and under high load there are few requests. A large request is sent at once, alone.
 * Promises: each request is answered as if it were sent alone. If an answer cannot be divided, its requests are sent
 * again one by one. If it tells that an ingest pipeline ran, all requests of the group fail. It is separate from
 * read/batch-multi-gets.ts, because that one waits for no answer before it sends the next group, groups by expected
 * bytes, and sends halves or sizes after a failure. Here one group is under way at a time, in order.
 * @param ready resolves when a request may be sent. All that came until then go together
 */
export const createBatcher = (
  { sizeOf, smallSize, maxSize, combine, divide }: BatchableKind,
  send: Send,
  ready?: () => Promise<void>,
): Send => {
  let waiting: Waiting[] = []
  let isSending = false

  const sendAll = async (): Promise<void> => {
    isSending = true
    while (waiting.length > 0) {
      if (ready !== undefined) await ready()
      await sendGroup(take())
    }
    isSending = false
  }
  const take = (): Waiting[] => {
    for (const { signal, reject } of waiting) if (signal?.aborted) reject(signal.reason)
    waiting = waiting.filter(({ signal }) => !signal?.aborted)
    let size = 0
    let count = 0
    for (const { request } of waiting) {
      size += sizeOf(request)
      if (size > maxSize) break
      count++
    }
    return waiting.splice(0, count)
  }
  const sendGroup = async (group: readonly Waiting[]): Promise<void> => {
    const [first, ...others] = group
    if (first === undefined) return
    if (others.length === 0) return resolveWith(first, send(first.request, first.signal))
    const requests = [first.request, ...others.map(({ request }) => request)] as const
    using given = whenAllEnd(group.map(({ signal }) => signal))
    let isSent = false
    try {
      const answer = await send<Combined['body']>(combine(requests), given.signal)
      isSent = true
      const answers = divide(answer, requests)
      if (answers === undefined) return sendEach(group)
      for (const [index, { resolve, reject }] of group.entries()) {
        const answer = answers[index]
        if (answer === undefined || answer instanceof Unanswered) reject(answer)
        else resolve(answer)
      }
    } catch (error) {
      // A pipeline has run: sent again, the request would only be told that the document has another version.
      const isKnown = error instanceof Unanswered || (isSent && error instanceof StopError)
      if (!isKnown) return sendEach(group)
      for (const { reject } of group) reject(error)
    }
  }
  const sendEach = async (group: readonly Waiting[]): Promise<void> => {
    await Promise.all(group.map(one => resolveWith(one, send(one.request, one.signal))))
  }

  const sendAlone = async <Body>(request: Request, signal?: AbortSignal): Promise<Answer<Body>> => {
    if (ready !== undefined) await ready()
    return await send<Body>(request, signal)
  }

  return <Body>(request: Request, signal?: AbortSignal) => {
    if (sizeOf(request) > smallSize) return sendAlone<Body>(request, signal)
    const { promise, resolve, reject } = Promise.withResolvers<Answer<Body>>()
    // The caller knows the form of its own answer, also if it is a part of a combined one.
    waiting.push({ request, signal, resolve: resolve as Waiting['resolve'], reject })
    if (!isSending) void sendAll()
    return promise
  }
}

const resolveWith = async ({ resolve }: Waiting, answer: Promise<Answer>): Promise<void> => {
  resolve(answer)
  await answer.catch(() => undefined)
}

export const bulks: BatchableKind = {
  sizeOf: ({ bulk }) => bulk?.length ?? 0,
  smallSize: SMALL_BULK_BYTES,
  maxSize: BATCHED_BYTES,
  combine: requests => {
    const bulk = Buffer.concat(requests.flatMap(({ bulk: one }) => one ?? []))
    const asserts = requests.flatMap(({ assertUnpublished }) => assertUnpublished ?? [])
    const assertUnpublished = async (): Promise<void> => void (await Promise.all(asserts.map(assert => assert())))
    return { ...requests[0], bulk, ...(asserts.length > 0 && { assertUnpublished }) }
  },
  divide: (answer, requests) => {
    const counts = requests.map(({ bulk }) => countLines(bulk) / 2)
    return split(itemsOf(answer), counts)?.map(items => ({ ...answer, body: { items } }))
  },
}

/** Bulk requests that only read: `getFromPrimaries`. A request for one document accepts an answer of any size. */
export const primaryReads: BatchableKind = {
  ...bulks,
  sizeOf: ({ bulk }) => countLines(bulk) / 2,
  smallSize: BATCHED_IDS,
  maxSize: BATCHED_IDS,
  combine: requests => ({ ...bulks.combine(requests), answerBytesMax: MGET_BYTES }),
}

/** PUTs of single documents, conditional on seq_no, which are combined into a bulk request. */
export const replacements: BatchableKind = {
  sizeOf: () => 1,
  smallSize: 1,
  maxSize: BATCHED_IDS,
  combine: requests => ({
    method: 'POST',
    path: '/_bulk',
    query: WITHOUT_PIPELINES,
    bulk: Buffer.from(
      requests
        .map(
          request =>
            `${JSON.stringify({ index: { ...addressOf(request), ...request.query } })}\n${JSON.stringify(request.body)}\n`,
        )
        .join(''),
    ),
  }),
  divide: (answer, requests) => {
    const items = itemsOf(answer)
    const answers = requests.map((request, index) => answerOf(items?.[index], addressOf(request)))
    return answers.every(known => known !== undefined) ? answers : undefined
  },
}

const countLines = (bulk: Buffer = Buffer.alloc(0)): number => {
  let count = 0
  for (let at = bulk.indexOf('\n'); at !== -1; at = bulk.indexOf('\n', at + 1)) count++
  return count
}

const addressOf = ({ path }: Request) => {
  const [, _index = '', , _id = ''] = path.split('/')
  return { _index, _id: decodeURIComponent(_id) }
}

const itemsOf = ({ status, body }: Combined) => (status === 200 ? body?.items : undefined)

/** Divides the results; undefined if there are more or fewer than requested. */
const split = (all: readonly unknown[] | undefined, counts: readonly number[]): unknown[][] | undefined => {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (all?.length !== total) return undefined
  const rest: unknown[] = [...all]
  return counts.map(count => rest.splice(0, count))
}

/** Converts an item of a bulk response to the answer of a single request; undefined if it is about another document. */
const answerOf = (
  item: BulkItem | null | undefined,
  { _index, _id }: ReturnType<typeof addressOf>,
): Answer | Unanswered | undefined => {
  const index = item?.index
  const status = index?.status
  if (index?._id !== _id || index._index !== _index || typeof status !== 'number') return undefined
  assertNoPipeline(_index, index)
  if (status === 200 || status === 201 || status === 404 || status === 409) return { status, body: index }
  return isTransient(status, index) ? new Unanswered('elasticsearch', status, errorType(index), _index) : undefined
}
