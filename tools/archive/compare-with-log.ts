/**
 * Compares entries of an archive with its log, before they are signed. In: entries, in order. Out: nothing, or an error
 * that names the first offset that differs. Promises: each byte of an entry is compared, its time and headers too.
 */
import { type LogEntry, type LogReader, readUntilFound } from '../../core/log/index.ts'
import { StopError } from '../../core/runtime/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { THROTTLED_RECORDS } from '../limits.ts'
import { encodeEntry } from './segment.ts'
import type { CompareWithLog } from './sign-target.ts'
import type { Throttle } from './throttle.ts'

type Comparing = {
  readonly readerOf: (stream: Stream) => LogReader | undefined
  readonly throttle: Throttle
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly signal: AbortSignal
}

export const comparesWithLog =
  ({ readerOf, throttle, sleep, signal }: Comparing): CompareWithLog =>
  async (stream, partition, entries) => {
    const reader = readerOf(stream)
    if (reader === undefined) throw new Error('an archive of a stream without its log')
    const { topic } = reader
    for (let compared = 0; compared < entries.length; ) {
      signal.throwIfAborted()
      const offset = entries[compared]?.offset ?? 0
      const found = await readUntilFound(reader, partition, offset, async milliseconds => {
        await sleep(milliseconds)
        signal.throwIfAborted()
      })
      if (found.entries.length === 0) {
        const detail = `partition ${partition} of ${topic} ends before offset ${offset}, which is archived`
        throw new StopError('records_deleted', detail, { topic, partition, offset })
      }
      const part = entries.slice(compared, compared + found.entries.length)
      const differing = part.find((entry, at) => !isSameEntry(entry, found.entries[at]))
      if (differing !== undefined) {
        const { offset } = differing
        const detail = `partition ${partition} of ${topic} has another record at offset ${offset} than the archive`
        throw new StopError('source_changed', `${detail}. Nothing is signed`, { topic, partition, offset })
      }
      for (let at = 0; at < part.length; at += THROTTLED_RECORDS) {
        await throttle(Math.min(THROTTLED_RECORDS, part.length - at))
      }
      compared += part.length
    }
  }

const isSameEntry = (ours: LogEntry, theirs: LogEntry | undefined): boolean =>
  theirs !== undefined && encodeEntry(ours).equals(encodeEntry(theirs))
