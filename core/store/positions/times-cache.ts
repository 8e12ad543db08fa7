/**
 * The times of partitions whose position stands still: the projector stores them in one document for all partitions.
 * In: that document, which a request reads with its position when this process has not read it for a while. Out: a
 *   position with the latest time that is known.
 * Promises: at rest a time is at most TIMES_INTERVAL older than what is stored, without a request of its own. A read
 *   that fails, or whose client leaves, delays no other one: only an answer postpones the next read.
 * Can go wrong: the document is malformed → `unavailable`.
 */
import {
  type PartitionTime,
  type PositionDocument,
  type TimesDocument,
  timesId,
} from '../../../schemas/stored/documents.ts'
import { type Schedule, unavailable } from '../../runtime/index.ts'
import { TIMES_INTERVAL } from '../limits.ts'
import { type DocumentSlice, smallDocument } from '../read/slice-documents.ts'

type Position = PositionDocument['body']

/** A generation. Its name may come again, with another id and other times. */
type Named = { readonly name: string; readonly id: string }

export type TimesCache = {
  /** Returns the read of the document if a request should read it now. */
  readonly due: (generation: Named) => TimesRead | undefined
  /** Returns the position with the time of the remembered document, if that is later. */
  readonly withLatestTime: (generation: Named, partition: number, position: Position) => Position
}

type TimesRead = {
  readonly id: string
  /** Remembers the document that was read; undefined if it does not exist yet. */
  readonly remember: (document: DocumentSlice | undefined) => void
}

export const createTimesCache = (later: Schedule): TimesCache => {
  const remembered = new Map<string, TimesDocument['body']['partitions']>()
  /** Generations whose document was read, by a read that began less than TIMES_INTERVAL ago. */
  const recent = new Set<string>()
  return {
    due: ({ name, id }) => {
      if (recent.has(id)) return undefined
      let isRecent = true
      later(TIMES_INTERVAL, () => {
        isRecent = false
        recent.delete(id)
      })
      return {
        id: timesId(name),
        remember: document => {
          if (isRecent) recent.add(id)
          if (document !== undefined) remembered.set(id, timesOf(document))
        },
      }
    },
    withLatestTime: ({ id }, partition, position) => withTime(position, remembered.get(id)?.[partition]),
  }
}

const timesOf = (document: DocumentSlice): TimesDocument['body']['partitions'] => {
  const { body } = smallDocument<TimesDocument>(document)
  if (typeof body?.partitions !== 'object' || body.partitions === null) throw unavailable('no_times')
  for (const { position, time } of Object.values(body.partitions)) {
    if (!Number.isSafeInteger(position) || !Number.isSafeInteger(time)) throw unavailable('no_times')
  }
  return body.partitions
}

/** Whether the first time replaces the second. A time that was taken back since does not count. */
export const isLaterTime = (a: Omit<PartitionTime, 'position'>, b: Omit<PartitionTime, 'position'>): boolean =>
  (a.taken_back ?? 0) === (b.taken_back ?? 0) ? a.time > b.time : (a.taken_back ?? 0) > (b.taken_back ?? 0)

/** Returns a position with the time of the times document, if the position has reached it and it is later. */
export const withTime = (
  position: PositionDocument['body'],
  found: PartitionTime | undefined,
): PositionDocument['body'] => {
  if (found === undefined || found.position > position.position || !isLaterTime(found, position)) return position
  const { time, taken_back } = found
  return { ...position, time, ...(taken_back !== undefined && { taken_back }) }
}
