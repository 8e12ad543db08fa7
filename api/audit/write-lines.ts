/**
 * In: lines of the audit log. Out: whether each is written. Lines that arrive during a write are written together next.
 * Promises: each line is written at most once, in order. Waiting lines take a bounded amount of memory, and nobody
 *   waits longer than AUDIT_WAIT_MAX.
 * Can go wrong: the audit log takes no line → `lost`. It is slow → `late`: the line is still written. Only a strict
 *   audit drops a late line whose write has not begun: its request is refused.
 */

import type { Schedule } from '../../core/runtime/index.ts'
import { AUDIT_BATCH_BYTES, AUDIT_BATCH_BYTES_MIN, AUDIT_BYTES_MAX, AUDIT_WAIT_MAX } from '../limits.ts'

/** A line, and the organization of its request, if it has one. */
export type AuditLine = { readonly text: string; readonly org: string | undefined }

/**
 * `lines`: the number of lines written, from the first on. `reason`: why the others are not, in fixed words.
 * `isTooLarge`: fewer bytes at a time may be taken.
 */
export type WriteResult = { readonly lines: number; readonly reason?: string; readonly isTooLarge?: boolean }

/** Where the lines are written: a file, the standard output or a topic. One write at a time. */
export type AuditLog = {
  /** Never rejects. */
  readonly write: (lines: readonly AuditLine[]) => Promise<WriteResult>
  readonly end: () => Promise<void>
}

type WriteOutcome = 'written' | 'late' | 'lost'

export type AuditWriter = {
  readonly write: (line: AuditLine) => Promise<WriteOutcome>
  /** Waits for the lines that are under way. */
  readonly end: () => Promise<void>
}

/** Told about every line once: `written`, or `lost` and why. */
export type OnLines = (outcome: 'written' | 'lost', lines: number, reason?: string) => void

type Parts = {
  readonly auditLog: AuditLog
  readonly isStrict: boolean
  readonly onLines: OnLines
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  readonly later: Schedule
}

/** A line in the queue. `onWritten` is called when its write ends; without effect if its request waits no longer. */
type Waiting = { readonly line: AuditLine; readonly bytes: number; readonly onWritten: (outcome: WriteOutcome) => void }

export const createAuditWriter = ({ auditLog, isStrict, onLines, elapsed, later }: Parts): AuditWriter => {
  const queue = new Set<Waiting>()
  let held = 0
  /** When the present write began. */
  let writingSince: number | undefined
  let writing = Promise.resolve()
  /** The last write took too long. */
  let wasSlow = false
  /** Bytes of one write: the audit log may take fewer than this program writes. */
  let batchBytes = AUDIT_BATCH_BYTES

  const isStuck = (): boolean => writingSince !== undefined && elapsed() - writingSince >= AUDIT_WAIT_MAX

  const takeBatch = (): Waiting[] => {
    const batch: Waiting[] = []
    let bytes = 0
    for (const one of queue) {
      if (batch.length > 0 && bytes + one.bytes > batchBytes) break
      bytes += one.bytes
      batch.push(one)
      queue.delete(one)
    }
    return batch
  }

  const writeAll = async (): Promise<void> => {
    while (queue.size > 0) {
      const batch = takeBatch()
      writingSince = elapsed()
      const { lines, reason, isTooLarge } = await auditLog.write(batch.map(({ line }) => line))
      wasSlow = isStuck()
      // Never more again: each attempt that is too large loses its lines. One line alone says nothing about several.
      if (isTooLarge && batch.length > 1) {
        const half = batch.reduce((sum, { bytes }) => sum + bytes, 0) / 2
        batchBytes = Math.min(batchBytes, Math.max(half, AUDIT_BATCH_BYTES_MIN))
      }
      for (const [index, { bytes, onWritten }] of batch.entries()) {
        held -= bytes
        onWritten(index < lines ? 'written' : 'lost')
      }
      if (lines > 0) onLines('written', lines)
      if (lines < batch.length) onLines('lost', batch.length - lines, reason)
    }
    writingSince = undefined
  }

  const lost = (reason: string): WriteOutcome => {
    onLines('lost', 1, reason)
    return 'lost'
  }

  const write = (line: AuditLine): WriteOutcome | Promise<WriteOutcome> => {
    const bytes = Buffer.byteLength(line.text)
    if (held + bytes > AUDIT_BYTES_MAX) return lost('too_many_wait')
    const stuck = isStuck()
    if (stuck && isStrict) return lost('too_slow')
    const { promise, resolve } = Promise.withResolvers<WriteOutcome>()
    const waiting = {
      line,
      bytes,
      onWritten: (outcome: WriteOutcome) => {
        cancel()
        resolve(outcome)
      },
    }
    const cancel = later(AUDIT_WAIT_MAX, () => {
      // A request that gets 503 needs no line; one that gets its answer still does.
      if (isStrict && queue.delete(waiting)) {
        held -= bytes
        lost('too_slow')
      }
      resolve('late')
    })
    queue.add(waiting)
    held += bytes
    if (writingSince === undefined) {
      writingSince = elapsed()
      writing = writeAll()
    }
    // If the audit is not strict, nobody waits for a slow audit log: the line is written later. A strict request waits,
    // also after a slow write: otherwise all requests would be refused even when the audit log is fast again.
    const isSlow = stuck || wasSlow
    return isSlow && !isStrict ? 'late' : promise
  }

  return {
    write: async line => write(line),
    end: async () => {
      await writing
      await auditLog.end()
    },
  }
}
