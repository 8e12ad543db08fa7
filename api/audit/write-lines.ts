/**
 * In: lines of the audit log. Out: whether each is written. Lines that arrive during a write are written together next.
 * Promises: each line is written at most once, in order. Waiting lines take a bounded amount of memory, and nobody
 *   waits longer than AUDIT_WAIT_MAX.
 * Can go wrong: the log takes no line → `lost`. It is slow → `late`: the line is still written if the audit is not
 *   strict, and dropped if it is.
 */
import { AUDIT_BATCH_BYTES, AUDIT_BYTES_MAX, AUDIT_WAIT_MAX } from '../limits.ts'
import type { Schedule } from '../time-limits.ts'
import type { AuditLine } from './audit-line.ts'

/** How many of the first lines are written, and why the others are not. `failure` is a fixed word. */
export type Written = { readonly lines: number; readonly failure?: string }

/** A log that lines are written to: a file, the standard output or a topic. One write at a time. */
export type AuditLog = {
  /** Never rejects. */
  readonly write: (lines: readonly AuditLine[]) => Promise<Written>
  readonly end: () => Promise<void>
}

type WriteOutcome = 'written' | 'late' | 'lost'

export type AuditWriter = {
  readonly write: (line: AuditLine) => Promise<WriteOutcome>
  /** Waits for the lines that are under way. */
  readonly end: () => Promise<void>
}

/** Told about every line once: `written`, or `lost` and why. */
export type OnLines = (outcome: 'written' | 'lost', lines: number, because?: string) => void

type Parts = {
  readonly log: AuditLog
  readonly isStrict: boolean
  readonly onLines: OnLines
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly later: Schedule
}

/** `settle` runs at most once: later calls have no effect. */
type Waiting = { readonly line: AuditLine; readonly bytes: number; readonly settle: (outcome: WriteOutcome) => void }

export const createAuditWriter = ({ log, isStrict, onLines, now, later }: Parts): AuditWriter => {
  const queue = new Set<Waiting>()
  let held = 0
  /** When the present write began. */
  let writingSince: number | undefined
  let writing = Promise.resolve()
  /** The last write took too long. */
  let wasSlow = false

  const isStuck = (): boolean => writingSince !== undefined && now() - writingSince >= AUDIT_WAIT_MAX

  const takeBatch = (): Waiting[] => {
    const batch: Waiting[] = []
    let bytes = 0
    for (const one of queue) {
      if (batch.length > 0 && bytes + one.bytes > AUDIT_BATCH_BYTES) break
      bytes += one.bytes
      batch.push(one)
      queue.delete(one)
    }
    return batch
  }

  const writeAll = async (): Promise<void> => {
    while (queue.size > 0) {
      const batch = takeBatch()
      writingSince = now()
      const { lines, failure } = await log.write(batch.map(({ line }) => line))
      wasSlow = isStuck()
      for (const [index, { bytes, settle }] of batch.entries()) {
        held -= bytes
        settle(index < lines ? 'written' : 'lost')
      }
      if (lines > 0) onLines('written', lines)
      if (lines < batch.length) onLines('lost', batch.length - lines, failure)
    }
    writingSince = undefined
  }

  const lost = (because: string): WriteOutcome => {
    onLines('lost', 1, because)
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
      settle: (outcome: WriteOutcome) => {
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
      writingSince = now()
      writing = writeAll()
    }
    // A strict audit always tries the line: otherwise nothing would notice that the log works again.
    return stuck || (wasSlow && !isStrict) ? 'late' : promise
  }

  return {
    write: async line => write(line),
    end: async () => {
      await writing
      await log.end()
    },
  }
}
