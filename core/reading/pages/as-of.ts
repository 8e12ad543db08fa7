/**
 * In: an organization, the position of its partition, and the moment that a client asks about. Out: the position at
 *   that moment.
 * Promises: the answer for an instant has exactly the events of the organization whose `published_at` is the instant or
 *   before it. No event of another organization has any influence. A moment has one answer for ever: on the next page,
 *   tomorrow and in another process.
 * Can go wrong: a moment that is not over, an instant that the times of the events do not decide, or a change of
 *   another organization → `invalid_request`.
 *
 * An instant is over when every event with its time, or an earlier time, is published. A published event of the
 * organization with a later time proves this. Without one, the projection must have passed the instant by AS_OF_MARGIN.
 * That is enough for times of the broker. An event that a publisher sends later than that, with its old time, can still
 * become a part of an instant without a later event.
 *
 * Times of events (`at`) are those of Kafka: the broker's, or the publisher's on a topic with `CreateTime`. A publisher
 * can send anything. The position at an instant is that of the first event with a later time. The instant is refused if
 * an event after that one has an earlier time: then no position separates the times. A time that is ahead of our clock,
 * or far before Kafka existed, says nothing. Between the neighbours of such an event it is not known whether it was
 * published, and the instant is refused. Such a time may come true later, and then takes part. This can only change
 * answers into refusals, because an event after it has an earlier time.
 */
import { EVENT_TIME_AHEAD_MAX_MS, EVENT_TIME_MIN } from '../../../schemas/limits.ts'
import { listKinds } from '../../../schemas/stored/documents.ts'
import { lruOptions, Refusal, unavailable } from '../../runtime/index.ts'
import {
  isVisible,
  type ReadPosition,
  type ReadScope,
  type ScopedSearch,
  searchSmall,
  smallSearch,
  visibleRange,
} from '../../store/index.ts'
import { AS_OF_MARGIN, AS_OF_REMEMBERED } from '../limits.ts'
import { createAgreed, type Proofs } from './agreed.ts'
import type { PositionAsOf, ProjectionTime } from './read-list.ts'
import { invalidAsOf } from './read-parameters.ts'

export type ReaderClocks = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
}

/** Creates the search for the position at a moment. */
export const createPositionAsOf = (
  search: ScopedSearch,
  projectionTime: ProjectionTime,
  { now, elapsed }: ReaderClocks,
  proofs?: Proofs,
): PositionAsOf => {
  const remembered = createAgreed<number>(lruOptions(AS_OF_REMEMBERED), elapsed, proofs)

  /** Returns the first event of an organization in an order, with its offset and time, if there is one. */
  const firstEvent = async (
    scope: ReadScope,
    position: ReadPosition,
    order: 'asc' | 'desc',
    filter: readonly object[],
  ): Promise<{ readonly seq: number; readonly at: number } | undefined> => {
    const where = position.generation.layout.searchOf(listKinds, scope.org)
    const query = { bool: { filter: [...where.filters, ...filter] } }
    const body = { size: 1, _source: false, sort: [{ seq: order }, { at: order }], query }
    const [hit] = smallSearch(await searchSmall(search, where, body, scope)).hits
    if (!hit) return undefined
    const [seq, at] = hit.sort
    if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(at)) throw unavailable('elasticsearch_malformed_search')
    return { seq: Number(seq), at: Number(at) }
  }

  return async (scope, position, asOf, changeOffset) => {
    if (asOf === undefined) return position
    if (asOf.kind === 'change') {
      if (changeOffset === undefined || !isVisible(changeOffset, position)) throw invalidAsOf()
      return { ...position, publishedTo: changeOffset + 1 }
    }
    const { milliseconds } = asOf
    // If the projector takes a time back, an instant that counted as over may not be over. `takenBack` then differs, so
    // that the result is not found again.
    const key = `${position.generation.id}:${position.takenBack}:${scope.org}:${milliseconds}`
    const known = remembered.get(key)
    if (known !== undefined) return { ...position, publishedTo: known.value }
    const remember = remembered.begin()
    const latestTime = now() + EVENT_TIME_AHEAD_MAX_MS
    const isLater = { range: { at: { gt: Math.max(milliseconds, EVENT_TIME_MIN - 1), lte: latestTime } } }
    const after = await firstEvent(scope, position, 'asc', [isLater, { range: { seq: visibleRange(position) } }])
    if (after === undefined) {
      const time = await projectionTime(scope, position, 'unknown')
      // Only the projection time proves that an instant is over. But the projector's clock may have been ahead: an
      // instant that the local clock has not passed is not over.
      const latest = Math.min(time, now()) - AS_OF_MARGIN
      if (milliseconds > latest) throw notOver(latest)
    }
    const publishedTo = after?.seq ?? position.publishedTo
    const isBefore = { range: { seq: { lt: publishedTo } } }
    const last = await firstEvent(scope, position, 'desc', [isBefore])
    if (last && (last.at < EVENT_TIME_MIN || last.at > latestTime)) throw undecided()
    if (after) {
      const isEarlier = { range: { at: { gte: EVENT_TIME_MIN, lte: milliseconds } } }
      const isAfter = { range: { seq: { gt: after.seq, ...visibleRange(position) } } }
      if (await firstEvent(scope, position, 'asc', [isEarlier, isAfter])) throw undecided()
    }
    remember(key, publishedTo, position.generation.name)
    return { ...position, publishedTo }
  }
}

const notOver = (latest: number): Refusal =>
  new Refusal('invalid_request', {
    message: `\`as_of\` must not be later than ${new Date(latest).toISOString()}: later events may not be known yet.`,
  })

const undecided = (): Refusal =>
  new Refusal('invalid_request', {
    message: [
      '`as_of`: the times of the events of this organization do not say what was published by then.',
      'One of them is wrong, or not in the order of publishing. Use the id of a change, or another instant.',
    ].join(' '),
  })
