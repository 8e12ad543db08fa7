/**
 * Combines small requests of several partitions. In: requests of one kind, each for one partition. Out: an answer for
 * each. While one small request is under way, further ones wait and are then sent together. So under low load nothing
 * waits, and under high load there are few requests. A large request is sent at once, alone.
 * Promises: each request is answered as if it were sent alone. If an answer cannot be divided, its requests are sent
 * again one by one. It is separate from read/batch-multi-gets.ts, because that one waits for no answer before it sends
 * the next group, groups by expected bytes, and sends halves or sizes after a failure. Here one group is under way at a
 * time, in order.
 */

import { Unanswered } from '../../runtime/index.ts'
import { BATCHED_BYTES, BATCHED_IDS, MGET_BYTES, SMALL_BULK_BYTES } from '../limits.ts'
import type { BulkItem } from './answers.ts'
import { type Answer, errorType, isTransient, type Request, type Send } from './client.ts'

/** Requests that can be combined, and how their answer is divided. */
export type BatchableKind = {
  readonly sizeOf: (request: Request) => number
  /** The largest size of a request that is combined with others, and of a combined request. */
  readonly smallSize: number
  readonly maxSize: number
  readonly combine: (requests: readonly [Request, ...Request[]]) => Request
  /** The answer of each request, or the error it would have had alone; undefined if the answer cannot be divided. */
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

/** @param ready resolves when a request may be sent. All that came until then go together */
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
    using given = allOf(group)
    try {
      const answers = divide(await send<Combined['body']>(combine(requests), given.signal), requests)
      if (answers === undefined) return sendEach(group)
      for (const [index, { resolve, reject }] of group.entries()) {
        const answer = answers[index]
        if (answer === undefined || answer instanceof Unanswered) reject(answer)
        else resolve(answer)
      }
    } catch (error) {
      if (!(error instanceof Unanswered)) return sendEach(group)
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

/** Returns a signal that aborts once all requests of the group are aborted. */
const allOf = (group: readonly Waiting[]): { readonly signal: AbortSignal } & Disposable => {
  const nobody = new AbortController()
  const abortIfAllAborted = (): void => {
    if (group.every(({ signal }) => signal?.aborted)) nobody.abort()
  }
  for (const { signal } of group) signal?.addEventListener('abort', abortIfAllAborted)
  return {
    signal: nobody.signal,
    [Symbol.dispose]: () => {
      for (const { signal } of group) signal?.removeEventListener('abort', abortIfAllAborted)
    },
  }
}

export const bulks: BatchableKind = {
  sizeOf: ({ bulk }) => bulk?.length ?? 0,
  smallSize: SMALL_BULK_BYTES,
  maxSize: BATCHED_BYTES,
  combine: requests => ({ ...requests[0], bulk: Buffer.concat(requests.flatMap(({ bulk }) => bulk ?? [])) }),
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
  const [, _index, , _id = ''] = path.split('/')
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
  if (status === 200 || status === 201 || status === 404 || status === 409) return { status, body: index }
  return isTransient(status, index) ? new Unanswered('elasticsearch', status, errorType(index), _index) : undefined
}
