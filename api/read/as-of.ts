/**
 * In: an organization, the position of its partition, and the moment that a client asks about. Out: the position at
 *   that moment.
 * Promises: a moment has the same answer forever: on the next page, tomorrow and in another process.
 * Can go wrong: a moment that is not over, or a change of another organization → `invalid_request`.
 *
 * An instant is over when every event with its time, or an earlier time, is published. A later published event of the
 * organization proves this, because the time of events, `at`, never goes back in a partition. Without one, the
 * projection must have passed the instant by AS_OF_MARGIN.
 */
import { LRUCache } from 'lru-cache'
import { indexOf, listKinds } from '../../schemas/stored/documents.ts'
import { type Search, searchSmall } from '../elasticsearch/client.ts'
import { smallSearch } from '../elasticsearch/slice-documents.ts'
import { Refusal, unavailable } from '../failures.ts'
import { AS_OF_MARGIN, AS_OF_REMEMBERED } from '../limits.ts'
import { isVisible, type ReadPosition, visibleRange } from './position.ts'
import type { ProjectionTime } from './projection-time.ts'
import { invalidAsOf, type Moment } from './read-parameters.ts'

/** @param changeOffset offset of the change that `as_of` names, if the change exists */
export type PositionAt = (
  org: string,
  position: ReadPosition,
  asOf: Moment | undefined,
  changeOffset: number | undefined,
  signal: AbortSignal,
) => Promise<ReadPosition>

/** Creates the search for the position at a moment. @param now milliseconds since 1970 */
export const createPositionAt = (
  prefix: string,
  search: Search,
  projectionTime: ProjectionTime,
  now: () => number,
): PositionAt => {
  const remembered = new LRUCache<string, number>({ max: AS_OF_REMEMBERED })

  /** Returns the offset of the first event after an instant, if there is one. */
  const firstAfter = async (
    org: string,
    position: ReadPosition,
    instant: number,
    signal: AbortSignal,
  ): Promise<number | undefined> => {
    const indices = listKinds.map(kind => indexOf(prefix, position.generation.name, kind))
    const [hit] = smallSearch(await searchSmall(search, indices, firstAfterBody(org, position, instant), signal)).hits
    if (!hit) return undefined
    const [seq] = hit.sort
    if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) throw unavailable('elasticsearch_malformed_search')
    return seq
  }

  return async (org, position, asOf, changeOffset, signal) => {
    if (asOf === undefined) return position
    if (asOf.kind === 'change') {
      if (changeOffset === undefined || !isVisible(changeOffset, position)) throw invalidAsOf()
      return { ...position, publishedTo: changeOffset + 1 }
    }
    const { milliseconds } = asOf
    // If the projector takes a time back, an instant that counted as over may not be over. `takenBack` then differs, so
    // that the result is not found again.
    const key = `${position.generation.name}:${position.takenBack}:${org}:${milliseconds}`
    const known = remembered.get(key)
    if (known !== undefined) return { ...position, publishedTo: known }
    const after = await firstAfter(org, position, milliseconds, signal)
    if (after === undefined) {
      const time = await projectionTime(org, position, 'unknown', signal)
      // Only the projection time proves that an instant is over. But the projector's clock may have been ahead: an
      // instant that the local clock has not passed is not over.
      const latest = Math.min(time, now()) - AS_OF_MARGIN
      if (milliseconds > latest) throw notOver(latest)
    }
    const publishedTo = after ?? position.publishedTo
    remembered.set(key, publishedTo)
    return { ...position, publishedTo }
  }
}

const notOver = (latest: number): Refusal =>
  new Refusal('invalid_request', {
    message: `\`as_of\` must not be later than ${new Date(latest).toISOString()}: later events may not be known yet.`,
  })

const firstAfterBody = (org: string, position: ReadPosition, instant: number): object => ({
  size: 1,
  _source: false,
  sort: [{ seq: 'asc' }],
  query: {
    bool: {
      filter: [
        { term: { org_id: org } },
        { range: { at: { gt: instant } } },
        { range: { seq: visibleRange(position) } },
      ],
    },
  },
})
