/**
 * Cuts long work into slices of a few milliseconds, so that other requests are answered in between.
 * Promises: no slice begins after the request has ended.
 */

import { abortRefusal } from '../runtime/index.ts'
import { allocate, SLICE } from '../store/index.ts'

/** Cuts the work of one request: lines that are compared, and bytes that are searched or copied. */
export type Pace = {
  /** Counts this much work. Returns true if it is time for a rest. */
  readonly countWork: (items: number, bytes: number) => boolean
  /** Lets other work run. @throws Refusal `unavailable` if the request has ended */
  readonly rest: () => Promise<void>
}
type Slice = { readonly items: number; readonly bytes: number }
type PaceOf = (signal: AbortSignal) => Pace

/** @param turn lets everything else that waits for the thread run */
export const createPace =
  (slice: Slice, turn: () => Promise<unknown>): PaceOf =>
  signal => {
    let items = 0
    let bytes = 0
    return {
      countWork: (moreItems, moreBytes) => {
        items += moreItems
        bytes += moreBytes
        return items >= slice.items || bytes >= slice.bytes
      },
      rest: async () => {
        items = 0
        bytes = 0
        await turn()
        if (signal.aborted) throw abortRefusal(signal)
      },
    }
  }

const nextTurn = (): Promise<void> => new Promise(resolve => void setImmediate(resolve))

/** The pace of a process: slices of SLICE. */
export const usualPace: PaceOf = createPace(SLICE, nextTurn)

/** A part of an answer, as a range of bytes in a buffer. */
export type Part = { readonly bytes: Buffer; readonly from: number; readonly to: number }
/** Returns a text as a part. */
export const partOf = (text: string): Part => {
  const bytes = Buffer.from(text)
  return { bytes, from: 0, to: bytes.length }
}
/** Returns the bytes of all parts. */
export const lengthOf = (parts: readonly Part[]): number => parts.reduce((sum, { from, to }) => sum + to - from, 0)

/** Joins all parts in one buffer. Copies a long part in several slices. */
export const joinParts = async (parts: readonly Part[], pace: Pace): Promise<Buffer> => {
  const joined = allocate(lengthOf(parts))
  let at = 0
  for (const { bytes, from, to } of parts) {
    for (let start = from; start < to; start += COPY_BYTES) {
      const end = Math.min(to, start + COPY_BYTES)
      at += bytes.copy(joined, at, start, end)
      if (pace.countWork(1, end - start)) await pace.rest()
    }
  }
  return joined
}
const COPY_BYTES = 256 * 1024
