/** The state that the steps of a request share, and how the target of a request is read. */
import type Koa from 'koa'
import type { KeyHolder, Moment, Turn } from '../../core/reading/index.ts'
import type { ReadMemory, ReadPosition, ReadScope, Reservation } from '../../core/store/index.ts'

/** The records that an answer is about, and what was asked for. */
type AuditedRead = {
  /** Undefined until the route has set them. */
  ids?: readonly string[]
  /** Number of records, or of rows, in the body of the answer. */
  count?: number
  asOf?: Moment | undefined
  period?: string | undefined
}

export type RequestState = {
  requestId: string
  /** The raw target before the first question mark; `query` is the rest. */
  path: string
  query: string
  /** Pattern of the route; absent for unknown paths. */
  route?: string
  methodOffered?: boolean
  /** Whether the answer is made in a buffer of its own, beside the documents that it is made of. */
  isCopied?: boolean
  key?: KeyHolder
  /** The records of the answer; absent unless reads are audited. */
  read?: AuditedRead
  /** Bytes of the budget that the reads of the request and its answer hold. */
  reservation?: Reservation
  /** Bytes that all reads of the request took, also those that failed or were repeated. */
  bytesRead?: number
  /** Where the bytes of the reads count. */
  memory?: ReadMemory
  /** Answers of Elasticsearch that can be freed once the answer to the client is made. */
  reads?: Buffer[]
  /** The turn of the request for a large answer of its organization. */
  turn?: Turn
  /** Ends reads of Elasticsearch when the time is up or the client has gone. */
  signal: AbortSignal
  /** Begins the time limit of the request again, and extends it by these milliseconds. */
  renewTime: (milliseconds: number) => void
  /** Whether the answer is as of a change, so that it does not change. */
  isFixed?: boolean
  /** The state of the sealed texts in the answer; absent if it has none. Such an answer changes with an erasure. */
  sealState?: string
  /** Milliseconds that the request has waited for a change. */
  waited?: number
  /** Set if no change is between the cursor of the request and this position: its page is empty. */
  nothingBefore?: ReadPosition
  /** Rejects if the key was revoked after the request was authenticated. */
  recheckKey?: () => Promise<void>
  /** Refunds the unit that the request was charged. */
  refundUnit?: () => void
}
export type RequestStep = Koa.Middleware<RequestState>
export type RequestContext = Koa.ParameterizedContext<RequestState>

/** Returns the holder of the key of an authenticated request. @throws Error in a step before authentication */
export const holderOf = ({ key }: RequestState): KeyHolder => {
  if (!key) throw new Error('this step needs an authenticated request')
  return key
}

/** Returns the scope of the reads of an authenticated request. */
export const scopeOf = (state: RequestState): ReadScope => ({
  org: holderOf(state).org,
  signal: state.signal,
  memory: state.memory ?? 'process',
})

/** All paths of the API begin with this. */
export const BASE_PATH = '/api/v1'

/**
 * Returns path and query of a request target. Decodes, normalises and repairs nothing: a path must match exactly. The
 * absolute form (`GET http://host/path`) is the same target.
 */
export const readTarget = (target: string): { path: string; query: string } => {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)
  const from = origin ? origin[0].length : 0
  const mark = target.indexOf('?', from)
  const path = mark === -1 ? target.slice(from) : target.slice(from, mark)
  return { path: path === '' ? '/' : path, query: mark === -1 ? '' : target.slice(mark + 1) }
}

/** Counts a header in the raw headers, because Node merges or drops repeated ones. */
export const countHeader = (rawHeaders: readonly string[], name: string): number => {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) count++
  return count
}
