/**
 * Batches the multi-gets of several requests. In: the names of documents that one request needs. Out: their answer.
 * While one multi-get is in flight, others wait a few milliseconds and are then sent together. So nothing waits at low
 * load, and there are few multi-gets at high load. A document that several requests need is read once. Requests that
 * read records are batched apart from those that read small documents only: a large record of one organization may
 * exceed the budget of the process, and then refuses no key look-up and no page of another organization.
 * Promises: no document is read before its request asked for it. Each request gets its documents in its order, as if
 *   it was the only one. Nothing is sent for a request that has ended. No rejection is unhandled.
 * Can go wrong, if requests are batched:
 * - one document cannot be read → its requests fail, the others get their part of the same answer;
 * - the answer is malformed or too large → the batch is retried in halves, one after the other, until only the
 *   request at fault is left;
 * - Elasticsearch is overloaded, away or slow → all fail: a retry would multiply its load.
 */

import { free } from '../capacity/held-bytes.ts'
import { Refusal } from '../failures.ts'
import { BATCH_TIME_MAX, BATCHED_DOCUMENTS, RECORDS_SURE } from '../limits.ts'
import { abortRefusal, type Schedule } from '../time-limits.ts'
import type { MultiGet } from './client.ts'
import { type DocumentName, divideMultiGet } from './slice-documents.ts'

type Waiting = {
  readonly names: readonly DocumentName[]
  readonly signal: AbortSignal
  readonly resolve: (answer: Buffer) => void
  readonly reject: (error: unknown) => void
}

/** Returns a multi-get that batches its calls and rejects as the given one does. */
export const batchMultiGets = (multiGet: MultiGet, later: Schedule): MultiGet => {
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
    const records = new Set<string>()
    for (const one of waiting) {
      if (readsRecords(one) !== readsRecords(waiting[0] ?? one)) continue
      names += one.names.length
      // A payout and its statement share one id and one event: together they are no larger than the event.
      for (const { form, id } of one.names) if (form === 'record') records.add(id)
      if (group.size > 0 && (names > BATCHED_DOCUMENTS || records.size > RECORDS_SURE)) break
      group.add(one)
    }
    waiting = waiting.filter(one => !group.has(one))
    return [...group]
  }
  const send: MultiGet = async (names, signal) => {
    inFlight++
    try {
      return await multiGet(names, signal)
    } finally {
      inFlight--
      sendWaiting()
    }
  }
  /** Answers each request of the group that still waits. Never rejects. */
  const sendGroup = async (asking: readonly Waiting[]): Promise<void> => {
    const group = asking.filter(isWaiting)
    const [first] = group
    if (!first) return
    try {
      if (group.length === 1) first.resolve(await send(first.names, first.signal))
      else await sendTogether(group)
    } catch (error) {
      if (group.length > 1 && error instanceof Refusal && error.retry === 'in parts') {
        const middle = Math.ceil(group.length / 2)
        await sendGroup(group.slice(0, middle))
        await sendGroup(group.slice(middle))
      } else for (const { reject } of group) reject(error)
    }
  }
  const sendTogether = async (group: readonly Waiting[]): Promise<void> => {
    const { names, parts } = together(group)
    using given = allOf(group)
    const all = await send(names, given.signal)
    const answers = divideMultiGet(all, names, parts)
    // The answers are copies.
    free(all)
    for (const [index, { resolve, reject }] of group.entries()) {
      const answer = answers[index]
      if (answer) resolve(answer)
      else reject(new Error('a request has no part of the batched answer'))
    }
  }
  const wait: MultiGet = (names, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortRefusal(signal))
      const leave = (): void => reject(abortRefusal(signal))
      signal.addEventListener('abort', leave, { once: true })
      const stay = (): void => signal.removeEventListener('abort', leave)
      waiting.push({
        names,
        signal,
        resolve: answer => {
          stay()
          resolve(answer)
        },
        reject: error => {
          stay()
          reject(error)
        },
      })
      if (waiting.length === 1) cancel = later(BATCH_TIME_MAX, sendWaiting)
    })

  return (names, signal) => (inFlight === 0 ? send(names, signal) : wait(names, signal))
}

const isWaiting = ({ signal }: Waiting): boolean => !signal.aborted
const readsRecords = ({ names }: Waiting): boolean => names.some(({ form }) => form === 'record')

/**
 * Returns the names of all requests, and for each request the indexes of its names. The names of a request keep their
 * order, because a shard reads its documents in the order of the multi-get, and position.ts relies on it.
 */
const together = (group: readonly Waiting[]) => {
  const names: DocumentName[] = []
  const parts = group.map(one => {
    let before = -1
    return one.names.map(name => {
      const same = names.findIndex(({ index, id }, at) => at > before && id === name.id && index === name.index)
      before = same === -1 ? names.push(name) - 1 : same
      return before
    })
  })
  return { names, parts }
}

/** Returns a signal that aborts once every request of the group has ended. */
const allOf = (group: readonly Waiting[]): { readonly signal: AbortSignal } & Disposable => {
  const nobody = new AbortController()
  const abortIfAllEnded = (): void => {
    if (group.every(({ signal }) => signal.aborted)) nobody.abort(group[0]?.signal.reason)
  }
  for (const { signal } of group) signal.addEventListener('abort', abortIfAllEnded)
  return {
    signal: nobody.signal,
    [Symbol.dispose]: () => {
      for (const { signal } of group) signal.removeEventListener('abort', abortIfAllEnded)
    },
  }
}
