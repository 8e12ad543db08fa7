/**
 * Receipts: tell a publisher the outcome of a record. Any projector answers for any partition; nothing is stored. In: a
 * record's place in Kafka, and how long to wait. Out: published (applied or a duplicate), parked with its code, or not
 * yet.
 * Promises: a parked record is never reported as published. All waiting requests share one read of Elasticsearch, with
 * a pause after each. A request is answered when its time is over, and at once when the projector stops.
 * Can go wrong: Elasticsearch does not answer (a later read may succeed); too many requests wait.
 */

import type { ParkCode } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import {
  API_KEYS_GENERATION,
  apiKeysParkedIndexOf,
  controlIndexOf,
  indexOf,
  LIVE_ID,
  type LiveDocument,
  type ParkedDocument,
  type PositionDocument,
  parkedId,
  positionId,
} from '../../schemas/stored/documents.ts'
import {
  type DocumentAddress,
  type Elasticsearch,
  type FoundDocument,
  multiGet,
  type RetryOptions,
  Unavailable,
} from '../elasticsearch/client.ts'
import { StopError } from '../failures.ts'
import { RECEIPTS_LOOK_INTERVAL_MS, RECEIPTS_LOOK_TIMEOUT_MS, RECEIPTS_WAITING_MAX } from '../limits.ts'

export type RecordPlace = {
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
export type ReceiptOutcome = Receipt | { readonly state: 'unavailable' | 'too_many' | 'stopping' }

/** Returns the receipts of these records, in order. @throws Unavailable, StopError if they cannot be read now */
export type ReadReceipts = (places: readonly RecordPlace[], signal: AbortSignal) => Promise<Receipt[]>

export type Receipts = {
  /** @param gone aborts when the client has disconnected: no answer is needed */
  readonly ask: (place: RecordPlace, milliseconds: number, gone: AbortSignal) => Promise<ReceiptOutcome>
  readonly waiting: () => number
  readonly stop: () => void
}

type Waiting = {
  readonly place: RecordPlace
  /** The result of the latest look. */
  seen: ReceiptOutcome | undefined
  timeIsOver: boolean
  readonly settle: (outcome: ReceiptOutcome) => void
  readonly fail: (error: unknown) => void
}

export const createReceipts = (look: ReadReceipts, sleep: RetryOptions['sleep']): Receipts => {
  const waiting = new Set<Waiting>()
  const stopping = new AbortController()
  let isLooking = false

  const keepLooking = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    // Pause also after the last answer: requests in quick succession must not cause reads in quick succession.
    while (waiting.size > 0) {
      await lookForAll()
      await sleep(RECEIPTS_LOOK_INTERVAL_MS, stopping.signal).catch(() => undefined)
    }
    isLooking = false
  }

  const lookForAll = async (): Promise<void> => {
    const all = [...waiting]
    try {
      const seen = await lookInTime(all.map(({ place }) => place))
      for (const [index, one] of all.entries()) see(one, seen[index] ?? { state: 'not_yet' })
    } catch (error) {
      const forNow = error instanceof Unavailable || error instanceof StopError
      for (const one of all) forNow ? see(one, { state: 'unavailable' }) : one.fail(error)
    }
  }

  const lookInTime = async (places: readonly RecordPlace[]): Promise<Receipt[]> => {
    const over = new AbortController()
    const late = sleep(RECEIPTS_LOOK_TIMEOUT_MS, over.signal)
    late.then(() => over.abort()).catch(() => undefined)
    try {
      return await look(places, AbortSignal.any([over.signal, stopping.signal]))
    } finally {
      over.abort()
    }
  }

  const see = (one: Waiting, seen: ReceiptOutcome): void => {
    one.seen = seen
    if (one.timeIsOver || seen.state === 'published' || seen.state === 'parked') one.settle(seen)
  }

  return {
    ask: async (place, milliseconds, gone) => {
      if (stopping.signal.aborted) return { state: 'stopping' }
      if (waiting.size >= RECEIPTS_WAITING_MAX) return { state: 'too_many' }
      const answered = new AbortController()
      const { promise, resolve, reject } = Promise.withResolvers<ReceiptOutcome>()
      const leave = (): void => {
        waiting.delete(one)
        answered.abort()
      }
      const one: Waiting = {
        place,
        seen: undefined,
        timeIsOver: milliseconds === 0,
        settle: outcome => {
          leave()
          resolve(outcome)
        },
        fail: error => {
          leave()
          reject(error)
        },
      }
      waiting.add(one)
      gone.addEventListener('abort', () => one.settle({ state: 'not_yet' }), { signal: answered.signal })
      if (gone.aborted) one.settle({ state: 'not_yet' })
      const timeIsOver = (): void => {
        one.timeIsOver = true
        if (one.seen !== undefined) one.settle(one.seen)
      }
      if (milliseconds > 0) sleep(milliseconds, answered.signal).then(timeIsOver, () => undefined)
      void keepLooking()
      return promise
    },
    waiting: () => waiting.size,
    stop: () => {
      stopping.abort()
      for (const one of waiting) one.settle(one.seen ?? { state: 'not_yet' })
    },
  }
}

/**
 * Reads in this order: the live generation, its positions, its parked records. A parked record is stored before the
 * position moves past it: a published record that is not found as parked was not parked.
 */
export const lookInto =
  (send: Elasticsearch['send'], prefix: string): ReadReceipts =>
  async (places, signal) => {
    const control = controlIndexOf(prefix)
    const read = async (docs: readonly DocumentAddress[]): Promise<Map<string, FoundDocument>> =>
      new Map((docs.length === 0 ? [] : await multiGet(send, docs, signal)).map(found => [found._id, found]))
    const readControl = async (ids: readonly string[]): Promise<Map<string, unknown>> => {
      const all = await read(ids.map(_id => ({ _index: control, _id })))
      for (const { _id, found } of all.values())
        if (!found) throw new StopError('index_missing', `${_id} in ${control}`)
      return new Map([...all].map(([id, { _source }]) => [id, _source]))
    }

    const live = (await readControl([LIVE_ID])).get(LIVE_ID) as LiveDocument
    const positionOf = ({ stream, partition }: RecordPlace): string =>
      positionId(stream === 'events' ? live.body.generation : API_KEYS_GENERATION, partition)
    const positions = await readControl([...new Set(places.map(positionOf))])
    const isPublished = (place: RecordPlace): boolean => {
      const document = positions.get(positionOf(place)) as PositionDocument | undefined
      return document !== undefined && document.body.position > place.offset
    }

    const idOf = ({ topic, partition, offset }: RecordPlace): string => parkedId(topic, partition, offset)
    const published = new Map(places.filter(isPublished).map(place => [idOf(place), place.stream]))
    const parkedIndex = (stream: Stream): string =>
      stream === 'events' ? indexOf(prefix, live.body.generation, 'parked') : apiKeysParkedIndexOf(prefix)
    // Only the code: the parked bytes may be many.
    const parked = await read(
      [...published].map(([_id, stream]) => ({ _index: parkedIndex(stream), _id, _source: ['code'] })),
    )
    return places.map(place => {
      const document = parked.get(idOf(place))
      if (document === undefined) return { state: 'not_yet' }
      if (!document.found) return { state: 'published' }
      return { state: 'parked', code: (document._source as Pick<ParkedDocument, 'code'>).code }
    })
  }
