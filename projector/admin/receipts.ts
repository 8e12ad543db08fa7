/**
 * Receipts: tells a publisher what has become of a record. Any projector can tell it for any partition; nothing is
 * stored.
 * In: where Kafka put a record, and how long to wait. Out: published (applied or a duplicate), parked with its code, or
 * not yet.
 * Promises: never published where it is parked; all who wait share one look at Elasticsearch, and the next comes a
 * while after it; who waits is answered when the time is over, or at once when the projector stops.
 * Can go wrong: Elasticsearch does not answer (a look that follows may), and more may come than can wait.
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
  type Found,
  multiGet,
  type Patience,
  Unavailable,
} from '../elasticsearch/client.ts'
import { StopError } from '../failures.ts'
import { RECEIPTS_LOOK_INTERVAL_MS, RECEIPTS_LOOK_TIMEOUT_MS, RECEIPTS_WAITING_MAX } from '../limits.ts'

/** Where a record is. */
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

/** The receipts of all these records, in their order. @throws Unavailable, StopError: now they cannot be known */
export type Look = (places: readonly RecordPlace[], signal: AbortSignal) => Promise<Receipt[]>

export type Receipts = {
  /** @param gone who asked does not wait any more, and is not answered */
  readonly ask: (place: RecordPlace, milliseconds: number, gone: AbortSignal) => Promise<ReceiptOutcome>
  readonly waiting: () => number
  readonly stop: () => void
}

type Waiting = {
  readonly place: RecordPlace
  /** What the latest look saw. */
  seen: ReceiptOutcome | undefined
  timeIsOver: boolean
  readonly settle: (outcome: ReceiptOutcome) => void
  readonly fail: (error: unknown) => void
}

export const createReceipts = (look: Look, sleep: Patience['sleep']): Receipts => {
  const waiting = new Set<Waiting>()
  const stopping = new AbortController()
  let isLooking = false

  const keepLooking = async (): Promise<void> => {
    if (isLooking) return
    isLooking = true
    // Also after the last has been answered: however quickly one question follows another, looks do not.
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
 * Looks in this order: which generation is live now, how far it is published, and what of that is parked. A parked
 * record is stored before the position moves past it, so that where none is found then, there is none.
 */
export const lookInto =
  (send: Elasticsearch['send'], prefix: string): Look =>
  async (places, signal) => {
    const control = controlIndexOf(prefix)
    const read = async (docs: readonly DocumentAddress[]): Promise<Map<string, Found>> =>
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
    // Without the bytes that were parked: they may be many.
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
