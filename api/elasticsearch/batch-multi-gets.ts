/**
 * Batches multi-gets of several requests. In: the names of documents that one request needs. Out: their answer. While
 *   one multi-get is under way, further ones wait a few milliseconds and are then sent together: under low load nothing
 *   waits, under high load there are few multi-gets. A document that several requests need is read once.
 * Promises: no document is read before its request asked for it; each request gets its documents in its order, as if it
 *   was sent alone. Nothing is asked for a request that has ended, and every promise has a listener.
 * Can go wrong, when requests go together:
 *   - one document cannot be read → its requests fail, the others have their part of the same answer;
 *   - the answer is malformed or too large → it is asked again in halves, one after the other, until the request at
 *     fault is alone;
 *   - Elasticsearch is overloaded, away or slow → all fail: to ask again would multiply its load.
 */

import { free } from '../capacity/held-bytes.ts'
import { Refusal, unavailable } from '../failures.ts'
import { GATHER_TIME_MAX, GATHERED_NAMES, RECORDS_SURE } from '../limits.ts'
import type { Later } from '../time-limits.ts'
import type { MultiGet } from './client.ts'
import { type DocumentName, divideMultiGet } from './slice-documents.ts'

type Waiting = {
  readonly names: readonly DocumentName[]
  readonly signal: AbortSignal
  readonly resolve: (answer: Buffer) => void
  readonly reject: (error: unknown) => void
}

export const batchMultiGets = (multiGet: MultiGet, later: Later): MultiGet => {
  let waiting: Waiting[] = []
  let underWay = 0
  let cancel = (): void => undefined

  const sendWaiting = (): void => {
    cancel()
    for (let group = take(); group.length > 0; group = take()) void sendGroup(group)
  }
  const take = (): Waiting[] => {
    waiting = waiting.filter(isWaiting)
    let count = 0
    let names = 0
    const records = new Set<string>()
    for (const one of waiting) {
      names += one.names.length
      // A payout and its statement have one id, and come from one event: together they are no larger than it.
      for (const { form, id } of one.names) if (form === 'record') records.add(id)
      if (count > 0 && (names > GATHERED_NAMES || records.size > RECORDS_SURE)) break
      count++
    }
    return waiting.splice(0, count)
  }
  const send: MultiGet = async (names, signal) => {
    underWay++
    try {
      return await multiGet(names, signal)
    } finally {
      underWay--
      sendWaiting()
    }
  }
  /** Answers each of the group that still waits. Never fails. */
  const sendGroup = async (asking: readonly Waiting[]): Promise<void> => {
    const group = asking.filter(isWaiting)
    const [first] = group
    if (!first) return
    try {
      if (group.length === 1) first.resolve(await send(first.names, first.signal))
      else await sendTogether(group)
    } catch (error) {
      if (group.length > 1 && error instanceof Refusal && OF_ONE.test(error.because ?? '')) {
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
    for (const [place, { resolve, reject }] of group.entries()) {
      const answer = answers[place]
      if (answer) resolve(answer)
      else reject(new Error('an answer was not divided among all'))
    }
  }
  const wait: MultiGet = (names, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(gone(signal))
      const leave = (): void => reject(gone(signal))
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
      if (waiting.length === 1) cancel = later(GATHER_TIME_MAX, sendWaiting)
    })

  return (names, signal) => (underWay === 0 ? send(names, signal) : wait(names, signal))
}

/** Failures that a single request of the group may have caused, or the size of the group. */
const OF_ONE = /^elasticsearch_(?:malformed_|too_large$)/

const isWaiting = ({ signal }: Waiting): boolean => !signal.aborted

const gone = (signal: AbortSignal) => unavailable((signal.reason as DOMException).message)

/** All that a group asks for, and the places of what each one does: in its own order, whatever the others ask for. */
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

/** A signal that is aborted once nobody waits any more. */
const allOf = (group: readonly Waiting[]): { readonly signal: AbortSignal } & Disposable => {
  const nobody = new AbortController()
  const look = (): void => {
    if (group.every(({ signal }) => signal.aborted)) nobody.abort(group[0]?.signal.reason)
  }
  for (const { signal } of group) signal.addEventListener('abort', look)
  return {
    signal: nobody.signal,
    [Symbol.dispose]: () => {
      for (const { signal } of group) signal.removeEventListener('abort', look)
    },
  }
}
