/** What the steps of a request hand to each other, and how the target of a request is read. */
import type Koa from 'koa'
import type { Reservation } from '../capacity/answer-budget.ts'
import type { Turn } from '../capacity/large-answers.ts'
import type { KeyHolder } from '../read/api-keys.ts'

export type State = {
  requestId: string
  /** The target as it came, cut at the first question mark. */
  path: string
  query: string
  /** Pattern of the route that answers; absent for paths that are none. */
  route?: string
  methodOffered?: boolean
  key?: KeyHolder
  /** What the request's reads and its answer hold of the budget of bytes. */
  reservation?: Reservation
  /** Its turn among the large answers of its organization. */
  turn?: Turn
  /** Ends what is asked of Elasticsearch: the time is up, or the client has gone. */
  signal: AbortSignal
  /** Gives back what the request counted against its key. */
  uncount?: () => void
}
export type Step = Koa.Middleware<State>
export type Context = Koa.ParameterizedContext<State>

export const BASE_PATH = '/api/v1'

/**
 * Path and query of a request target, with nothing decoded, normalised or repaired: what is not a path of ours as it
 * stands is none. The absolute form (`GET http://host/path`) is a way to write the same target.
 */
export const readTarget = (target: string): { path: string; query: string } => {
  const origin = /^https?:\/\/[^/?#]*/i.exec(target)
  const from = origin ? origin[0].length : 0
  const mark = target.indexOf('?', from)
  const path = mark === -1 ? target.slice(from) : target.slice(from, mark)
  return { path: path === '' ? '/' : path, query: mark === -1 ? '' : target.slice(mark + 1) }
}

/** How often a header came, whatever Node makes of repeated ones. */
export const countHeader = (rawHeaders: readonly string[], name: string): number => {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === name) count++
  return count
}
