/**
 * Receipts: report the outcome of a record to its publisher. Any projector answers for any partition; nothing is
 * stored, because a document or a message for each event would cost every event something. In: a record's location in
 * Kafka, and how long to wait. Out: published (applied or a duplicate), parked with its code, or not yet. Or no
 * receipt: the live generation is of another topic, or may lack documents.
 * Promises: a parked record is never reported as published. If its index was replaced, or has lost it, this is noticed
 * within INTACT_REMEMBERED_MS. All waiting requests share one read of Elasticsearch, with a pause after each. A request
 * is answered when its time is over, and at once when the projector stops.
 * Can go wrong: Elasticsearch does not answer (a later read may succeed); too many requests wait.
 */

import { type RetryOptions, StopError, Unanswered } from '../../core/runtime/index.ts'
import { getFromPrimaries, type Send } from '../../core/store/index.ts'
import type { ParkCode } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import { type ParkedDocument, parkedId } from '../../schemas/stored/documents.ts'
import { type Address, parkedAddress } from '../../schemas/stored/layout.ts'
import { RECEIPTS_POLL_MS, RECEIPTS_WAITING_MAX } from '../limits.ts'
import type { IsIntact } from './is-intact.ts'
import { generationOfStream, getLivePositions, NOT_SERVED, type NoReceipt } from './read-control.ts'
import { readInTime } from './read-in-time.ts'

export type RecordLocation = {
  readonly stream: Stream
  readonly topic: string
  readonly partition: number
  readonly offset: number
}
export type Receipt =
  | { readonly state: 'published' }
  | { readonly state: 'parked'; readonly code: ParkCode }
  | { readonly state: 'not_yet' }
/** A receipt, or why there is none. */
export type ReceiptOutcome = Receipt | NoReceipt | { readonly state: 'unavailable' | 'too_many' | 'stopping' }

/** Returns the receipts of these records, in order. @throws Unanswered, StopError if they cannot be read now */
type ReadReceipts = (
  locations: readonly RecordLocation[],
  signal: AbortSignal,
) => Promise<readonly (Receipt | NoReceipt)[]>

export type Receipts = {
  /** @param gone aborts when the client has disconnected: no answer is needed */
  readonly ask: (location: RecordLocation, milliseconds: number, gone: AbortSignal) => Promise<ReceiptOutcome>
  readonly waiting: () => number
  /** Aborts at `stop`. */
  readonly stopping: AbortSignal
  readonly stop: () => void
}

type Waiting = {
  readonly location: RecordLocation
  /** The outcome of the latest poll. */
  seen: ReceiptOutcome | undefined
  timeIsOver: boolean
  readonly resolve: (outcome: ReceiptOutcome) => void
  readonly fail: (error: unknown) => void
}

export const createReceipts = (readReceipts: ReadReceipts, sleep: RetryOptions['sleep']): Receipts => {
  const waiting = new Set<Waiting>()
  const stopping = new AbortController()
  let isPolling = false

  const keepPolling = async (): Promise<void> => {
    if (isPolling) return
    isPolling = true
    // Also pauses after the last answer, so that requests one after the other do not each cause a read.
    while (waiting.size > 0) {
      await pollAll()
      await sleep(RECEIPTS_POLL_MS, stopping.signal).catch(() => undefined)
    }
    isPolling = false
  }

  const pollAll = async (): Promise<void> => {
    const all = [...waiting]
    try {
      const locations = all.map(({ location }) => location)
      const seen = await readInTime(sleep, [stopping.signal], signal => readReceipts(locations, signal))
      for (const [index, one] of all.entries()) see(one, seen[index] ?? { state: 'not_yet' })
    } catch (error) {
      const mayPass = error instanceof Unanswered || error instanceof StopError
      for (const one of all) mayPass ? see(one, { state: 'unavailable' }) : one.fail(error)
    }
  }

  const see = (one: Waiting, seen: ReceiptOutcome): void => {
    one.seen = seen
    const mayChange = seen.state === 'not_yet' || seen.state === 'unavailable' || seen.state === 'not_served'
    if (one.timeIsOver || !mayChange) one.resolve(seen)
  }

  return {
    ask: async (location, milliseconds, gone) => {
      if (stopping.signal.aborted) return { state: 'stopping' }
      if (waiting.size >= RECEIPTS_WAITING_MAX) return { state: 'too_many' }
      const done = new AbortController()
      const { promise, resolve, reject } = Promise.withResolvers<ReceiptOutcome>()
      const leave = (): void => {
        waiting.delete(one)
        done.abort()
      }
      const one: Waiting = {
        location,
        seen: undefined,
        timeIsOver: milliseconds === 0,
        resolve: outcome => {
          leave()
          resolve(outcome)
        },
        fail: error => {
          leave()
          reject(error)
        },
      }
      waiting.add(one)
      gone.addEventListener('abort', () => one.resolve({ state: 'not_yet' }), { signal: done.signal })
      if (gone.aborted) one.resolve({ state: 'not_yet' })
      const timeIsOver = (): void => {
        one.timeIsOver = true
        if (one.seen !== undefined) one.resolve(one.seen)
      }
      if (milliseconds > 0) sleep(milliseconds, done.signal).then(timeIsOver, () => undefined)
      void keepPolling()
      return promise
    },
    waiting: () => waiting.size,
    stopping: stopping.signal,
    stop: () => {
      stopping.abort()
      for (const one of waiting) one.resolve(one.seen ?? { state: 'not_yet' })
    },
  }
}

/**
 * Reads in this order: positions of the generation that is live then, its parked records, the ids of its indices. A
 * parked record is stored before the position moves past it: a published record that is not found as parked was not
 * parked, if the indices are still those that it was stored in.
 */
export const createReceiptReader =
  (send: Send, prefix: string, isIntact: IsIntact): ReadReceipts =>
  async (locations, signal) => {
    const { live, positionOf, identityOf } = await getLivePositions(send, prefix, locations, signal)
    const isDecided = (location: RecordLocation): boolean => {
      const at = positionOf(location)
      return !('state' in at) && at.position > location.offset
    }

    const idOf = ({ topic, partition, offset }: RecordLocation): string => parkedId(topic, partition, offset)
    const decided = new Map(locations.filter(isDecided).map(location => [idOf(location), location.stream]))
    const addressOf = (stream: Stream, id: string): Address =>
      parkedAddress(prefix, generationOfStream(stream, live.generation), id)
    // Only the code: the parked bytes may be many. From the primaries: an old copy may lack a parked record.
    const docs = [...decided].map(([id, stream]) => ({ ...addressOf(stream, id), _source: ['code'] }))
    const found = docs.length === 0 ? [] : await getFromPrimaries<Pick<ParkedDocument, 'code'>>(send, docs, signal)
    const parked = new Map(found.map(document => [document._id, document]))
    const intact = new Set<Stream>()
    for (const stream of new Set(decided.values())) if (await isIntact(identityOf(stream), signal)) intact.add(stream)
    return locations.map(location => {
      const at = positionOf(location)
      if ('state' in at) return at
      const document = parked.get(idOf(location))
      if (document === undefined) return { state: 'not_yet' }
      if (!intact.has(location.stream)) return NOT_SERVED
      if (document.found) return { state: 'parked', code: document._source.code }
      return { state: at.isServed ? 'published' : 'not_yet' }
    })
  }
