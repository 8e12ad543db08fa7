/**
 * In: a request. Out: its answer, after its line is in the audit log: JSON with ids, times and numbers.
 * Promises: a strict audit lets no answer with records out before its line is written; else an answer waits at most
 *   AUDIT_WAIT_MAX, and a late line is still written. A request has one line. An answer without a list of its records
 *   is a defect, and is not sent. Refusals have lines, too. Those without a valid key and those of a rate limit may be
 *   a flood; `createAdmitLine` limits their lines. A line has no name, amount or key. From the request it takes only
 *   well-formed ids, instants, and the name of a known method.
 * Can go wrong: the line cannot be written → `unavailable` if the audit is strict. Else the answer goes out, and the
 *   writer counts the lost line.
 */

import { type Moment, textOfName } from '../../core/reading/index.ts'
import { NO_CONTENT, NOT_MODIFIED, OK, Refusal, type Schedule, unavailable } from '../../core/runtime/index.ts'
import { refusals } from '../../schemas/errors.ts'
import type { AdmitLine } from '../answer/answer-and-log.ts'
import { OPENAPI_PATH } from '../answer/serve-openapi.ts'
import type { AddressOf } from '../http/client-address.ts'
import type { Arrived, Audited, AuditedRead, Context, KnownSoFar, Step } from '../http/request.ts'
import { AUDIT_BATCH_BYTES, AUDIT_BATCH_BYTES_MIN, AUDIT_BYTES_MAX, AUDIT_WAIT_MAX } from '../limits.ts'

export type Audit = {
  readonly writer: AuditWriter
  readonly isStrict: boolean
}

type Parts = Audit & {
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly addressOf: AddressOf
  readonly admitLine: AdmitLine
}

type Needs = Arrived & KnownSoFar

/**
 * Step: writes the line of each request; none for the OpenAPI document and preflight requests: these read nothing.
 * @throws Refusal `unavailable` if a strict audit has no line
 */
export const auditReads = ({ writer, isStrict, now, addressOf, admitLine }: Parts): Step<Needs, Audited> => {
  const write = async (ctx: Context<Needs>, audited: AuditedRead, status: number): Promise<void> => {
    const { state, method } = ctx
    const address = addressOf(ctx.req)
    const isFlood = state.key === undefined || status === refusals.rate_limited
    const admitted = isFlood ? admitLine(address) : { unlogged: 0 }
    if (admitted === undefined) return
    const line = auditLineOf(state, audited, { time: now(), method, status, address, ...admitted })
    const outcome = await writer.write(line)
    if (isStrict && outcome !== 'written') throw unavailable('audit_not_written')
  }

  return async (ctx, next) => {
    const audited: AuditedRead = {
      ids: undefined,
      count: 0,
      asOf: undefined,
      rep: undefined,
      period: undefined,
      deal: undefined,
      refusedKey: undefined,
    }
    const isAudited = (): boolean => ctx.state.route !== OPENAPI_PATH && ctx.status !== NO_CONTENT
    try {
      await next({ audited })
      if (isAudited()) requireRecords(ctx.status, audited)
    } catch (error) {
      if (isAudited()) await write(ctx, audited, statusOf(error))
      throw error
    }
    if (isAudited()) await write(ctx, audited, ctx.status)
  }
}

/** Step in place of `auditReads` where reads are not audited. */
export const auditNothing: Step<unknown, Audited> = (_, next) => next({ audited: undefined })

const statusOf = (error: unknown): number => refusals[error instanceof Refusal ? error.code : 'internal']

/** Refuses answers of a route that does not call `noteRecordsForAudit`: its reads would leave no trace. */
const requireRecords = (status: number, { ids }: AuditedRead): void => {
  if ((status === OK || status === NOT_MODIFIED) && ids === undefined) {
    throw new Error('an answer without a list of its records')
  }
}

type Outcome = {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly method: string
  readonly status: number
  readonly address: string | undefined
  /** How many refusals of this address got no line since its last line. */
  readonly unlogged: number
}

/** `ids` has the records that the answer is about, `count` how many of them it shows: none to HEAD and with 304. */
const auditLineOf = (
  state: Arrived & KnownSoFar,
  read: AuditedRead,
  { time, method, status, address, unlogged }: Outcome,
): AuditLine => {
  const { requestId, route } = state
  const key = state.key ?? read.refusedKey
  const line = {
    audit: true,
    time: new Date(time).toISOString(),
    request_id: requestId,
    // An unknown method is text of the client.
    method: METHODS.has(method) ? method : 'other',
    route,
    status,
    org_id: key?.org,
    key_id: key?.id,
    refused_for: read.refusedKey && 'address',
    address,
    as_of: read.asOf && textOfMoment(read.asOf),
    rep_id: read.rep,
    period_id: read.period,
    deal_id: read.deal,
    count: status === OK && method !== 'HEAD' ? read.count : 0,
    ids: read.ids ?? [],
    unlogged: unlogged || undefined,
  }
  return { text: `${JSON.stringify(line)}\n`, org: key?.org }
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])

const textOfMoment = (moment: Moment): string =>
  moment.kind === 'change' ? textOfName(moment.name) : new Date(moment.milliseconds).toISOString()

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
  /**
   * Waits for the lines that are under way. Those that are left after these milliseconds are lost, because the process
   * ends.
   */
  readonly end: (within: number) => Promise<void>
}

/** Told about every line once: `written`, or `lost` and why. */
export type OnLines = (outcome: 'written' | 'lost', lines: number, reason?: string) => void

type WriterParts = {
  readonly auditLog: AuditLog
  readonly isStrict: boolean
  readonly onLines: OnLines
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  readonly later: Schedule
}

/** A line in the queue. `onWritten` is called when its write ends; without effect if its request waits no longer. */
type Waiting = { readonly line: AuditLine; readonly bytes: number; readonly onWritten: (outcome: WriteOutcome) => void }

/**
 * In: lines of the audit log. Out: whether each is written. Lines that arrive during a write are written together next.
 * Promises: each line is written at most once, in order. Waiting lines take a bounded amount of memory, and nobody
 *   waits longer than AUDIT_WAIT_MAX.
 * Can go wrong: the audit log takes no line → `lost`. It is slow → `late`: the line is still written. Only a strict
 *   audit drops a late line whose write has not begun: its request is refused. The process ends → lines that are not
 *   written in the time of `end` are lost, although the audit log may have some of them.
 */
export const createAuditWriter = ({ auditLog, isStrict, onLines, elapsed, later }: WriterParts): AuditWriter => {
  const queue = new Set<Waiting>()
  /** Lines of the present write. */
  let beingWritten = 0
  /** The time of a stop is up, and the lines that were left are told as lost. */
  let isEnded = false
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
      beingWritten = batch.length
      writingSince = elapsed()
      const { lines, reason, isTooLarge } = await auditLog.write(batch.map(({ line }) => line))
      if (isEnded) return
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
      beingWritten = 0
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
    end: async within => {
      const { promise: timeIsUp, resolve } = Promise.withResolvers<void>()
      const cancel = later(within, resolve)
      await Promise.race([writing, timeIsUp])
      cancel()
      const left = beingWritten + queue.size
      // Nobody waits: a client of a silent broker takes long to disconnect.
      if (left === 0) return void auditLog.end()
      isEnded = true
      queue.clear()
      onLines('lost', left, 'process_ended')
    },
  }
}
