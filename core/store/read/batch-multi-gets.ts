/**
 * Batches the multi-gets of several requests. In: the names of documents that one request needs. Out: their answer.
 * While one multi-get is in flight, others wait a few milliseconds and are then sent together. So nothing waits at low
 * load, and there are few multi-gets at high load. A document that several requests need is read once. Requests that
 * read records are batched apart from those that read small documents only, so that these wait for no record.
 * Each request reads the position anew. Sent alone, these reads were most of the CPU of a request.
 * Promises: no document is read before its request asked for it. Each request gets its documents in its order, as if
 *   it was the only one. Nothing is sent for a request that has ended. No rejection is unhandled. Requests go together
 *   only for an answer that has room among the small ones: a large record travels alone, and counts for the request
 *   that asked for it. So no request is refused for the record of another one.
 * Can go wrong, if requests are batched:
 * - one document cannot be read → its requests fail, the others get their part of the same answer;
 * - the answer is larger than expected → the API drops it and asks for the sizes of its documents. Then small
 *   requests go together again. A large one is told its size, and is sent again when it may hold that much;
 * - the answer is malformed → the batch is retried in halves, one after the other, until only the request at fault is
 *   left;
 * - Elasticsearch is overloaded, away or slow → all fail: a retry would multiply its load.
 */

import { abortRefusal, Refusal, type Schedule, whenAllEnd } from '../../runtime/index.ts'
import {
  BATCH_TIME_MAX,
  BATCHED_DOCUMENTS,
  RECORD_BYTES_EXPECTED,
  RECORD_FRAME_BYTES,
  RECORDS_SURE,
  SMALL_ANSWER_BYTES,
} from '../limits.ts'
import { type CountBytes, free } from './answer-budget.ts'
import type { MultiGet } from './search-client.ts'
import { type DocumentName, divideMultiGet, type ReadDocument, sliceEachOf, smallDocument } from './slice-documents.ts'

/** The bytes that a request expects, and what is called with those of an answer that is read for it alone. */
type OwnBytes = { readonly expected: number; readonly arrived: CountBytes }

/** A read has its answer, or the bytes that its request must be able to hold before it asks again. */
export type ReadOutcome<Answer> = { readonly answer: Answer } | { readonly needs: number }

/**
 * Reads the documents of one request. `needs`: their bytes are more than expected and too many to be read with those of
 * others. Asked again with these bytes expected, the request is read alone.
 */
export type MultiGetOfRequest = (
  names: readonly DocumentName[],
  signal: AbortSignal,
  own: OwnBytes,
) => Promise<ReadOutcome<Buffer>>

type Waiting = {
  readonly names: readonly DocumentName[]
  readonly signal: AbortSignal
  readonly own: OwnBytes | undefined
  readonly resolve: (outcome: ReadOutcome<Buffer>) => void
  readonly reject: (error: unknown) => void
}

export type Batched = {
  readonly ofRequest: MultiGetOfRequest
  /** For reads that count for the process, not for a request. */
  readonly ofProcess: MultiGet
}

/** Returns multi-gets that batch their calls and reject as the given one does. */
export const batchMultiGets = (multiGet: MultiGet, later: Schedule): Batched => {
  let waiting: Waiting[] = []
  let inFlight = 0
  let cancel = (): void => undefined

  const sendWaiting = (): void => {
    cancel()
    for (let group = take(); group.length > 0; group = take()) void sendGroup(group)
  }
  const take = (): Waiting[] => {
    waiting = waiting.filter(isWaiting)
    const group = new Set<Waiting>()
    let names = 0
    let expected = 0
    const records = new Set<string>()
    for (const one of waiting) {
      if (readsRecords(one) !== readsRecords(waiting[0] ?? one)) continue
      names += one.names.length
      expected += expectedBy(one)
      // A payout and its statement share one id and one event: together they are no larger than the event.
      for (const { form, _id } of one.names) if (form === 'record') records.add(_id)
      const isMuch = names > BATCHED_DOCUMENTS || records.size > RECORDS_SURE || expected > SMALL_ANSWER_BYTES
      if (group.size > 0 && isMuch) break
      group.add(one)
    }
    waiting = waiting.filter(one => !group.has(one))
    return [...group]
  }
  const send: MultiGet = async (names, signal, limits) => {
    inFlight++
    try {
      return await multiGet(names, signal, limits)
    } finally {
      inFlight--
      sendWaiting()
    }
  }
  const sendAlone = (names: readonly DocumentName[], signal: AbortSignal, own?: OwnBytes): Promise<Buffer> =>
    send(names, signal, { arrived: own?.arrived })
  const answerAlone = async (...asked: Parameters<typeof sendAlone>) => ({ answer: await sendAlone(...asked) })

  /** Answers each request of the group that still waits. Never rejects. @param isSized whether the sizes were read */
  const sendGroup = async (asking: readonly Waiting[], isSized = false): Promise<void> => {
    const group = asking.filter(isWaiting)
    const [first] = group
    if (!first) return
    try {
      if (group.length === 1) first.resolve(await answerAlone(first.names, first.signal, first.own))
      else await sendTogether(group)
    } catch (error) {
      if (group.length === 1 || !(error instanceof Refusal) || error.retry !== 'in parts') {
        for (const { reject } of group) reject(error)
      } else if (error.reason !== 'elasticsearch_too_large') await sendHalves(group)
      else if (!isSized) await sendBySize(group)
      // A document has grown since, or its size is wrong.
      else for (const { resolve } of group) resolve({ needs: SMALL_ANSWER_BYTES + 1 })
    }
  }
  const sendHalves = async (group: readonly Waiting[]): Promise<void> => {
    const middle = Math.ceil(group.length / 2)
    await sendGroup(group.slice(0, middle))
    await sendGroup(group.slice(middle))
  }
  const sendTogether = async (group: readonly Waiting[]): Promise<void> => {
    const { names, parts } = together(group)
    using given = whenAllEnd(group.map(({ signal }) => signal))
    const all = await send(names, given.signal, { bytesMax: SMALL_ANSWER_BYTES })
    const answers = divideMultiGet(all, names, parts)
    // The answers are copies.
    free(all)
    for (const [index, { resolve, reject }] of group.entries()) {
      const answer = answers[index]
      if (answer) resolve({ answer })
      else reject(new Error('a request has no part of the batched answer'))
    }
  }
  /** Sends the requests for little together again. Answers the others with their bytes. Never rejects. */
  const sendBySize = async (group: readonly Waiting[]): Promise<void> => {
    const { names, parts } = together(group)
    let sizes: readonly number[]
    try {
      using given = whenAllEnd(group.map(({ signal }) => signal))
      const sizeNames = names.map(name => ({ ...name, form: 'size' }) as const)
      const answer = await send(sizeNames, given.signal, { bytesMax: SMALL_ANSWER_BYTES })
      sizes = sliceEachOf(answer, sizeNames).map(bytesOf)
    } catch (error) {
      for (const { reject } of group) reject(error)
      return
    }
    let small: Waiting[] = []
    let bytes = 0
    for (const [index, one] of group.entries()) {
      const own = (parts[index] ?? []).reduce((sum, nameIndex) => sum + (sizes[nameIndex] ?? 0), 0)
      if (own > SMALL_ANSWER_BYTES) {
        one.resolve({ needs: own })
        continue
      }
      if (bytes + own > SMALL_ANSWER_BYTES) {
        await sendGroup(small, true)
        small = []
        bytes = 0
      }
      small.push(one)
      bytes += own
    }
    await sendGroup(small, true)
  }
  const wait = (names: readonly DocumentName[], signal: AbortSignal, own?: OwnBytes): Promise<ReadOutcome<Buffer>> =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortRefusal(signal))
      const leave = (): void => reject(abortRefusal(signal))
      signal.addEventListener('abort', leave, { once: true })
      const stay = (): void => signal.removeEventListener('abort', leave)
      waiting.push({
        names,
        signal,
        own,
        resolve: outcome => {
          stay()
          resolve(outcome)
        },
        reject: error => {
          stay()
          reject(error)
        },
      })
      if (waiting.length === 1) cancel = later(BATCH_TIME_MAX, sendWaiting)
    })

  return {
    ofRequest: async (names, signal, own) =>
      inFlight === 0 || own.expected > SMALL_ANSWER_BYTES ? answerAlone(names, signal, own) : wait(names, signal, own),
    ofProcess: async (names, signal) => {
      const outcome = inFlight === 0 ? undefined : await wait(names, signal)
      return outcome && 'answer' in outcome ? outcome.answer : sendAlone(names, signal)
    },
  }
}

const isWaiting = ({ signal }: Waiting): boolean => !signal.aborted
const readsRecords = ({ names }: Waiting): boolean => names.some(({ form }) => form === 'record')
const expectedBy = (one: Waiting): number => one.own?.expected ?? (readsRecords(one) ? RECORD_BYTES_EXPECTED : 0)

/** Returns the bytes of a document in an answer, if only its size was read. */
const bytesOf = (document: ReadDocument): number => {
  const { body_bytes = 0 } =
    document && document !== 'unreadable' ? smallDocument<{ body_bytes: number }>(document) : {}
  return body_bytes + RECORD_FRAME_BYTES
}

/**
 * Returns the names of all requests, and for each request the indexes of its names. The names of a request keep their
 * order, because a shard reads its documents in the order of the multi-get, and position.ts relies on it.
 */
const together = (group: readonly Waiting[]) => {
  const names: DocumentName[] = []
  const parts = group.map(one => {
    let before = -1
    return one.names.map(name => {
      const same = names.findIndex((other, at) => at > before && isSame(other, name))
      before = same === -1 ? names.push(name) - 1 : same
      return before
    })
  })
  return { names, parts }
}

const isSame = (a: DocumentName, b: DocumentName): boolean =>
  a._id === b._id && a._index === b._index && a.routing === b.routing
