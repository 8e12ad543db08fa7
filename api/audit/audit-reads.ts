/**
 * In: a request. Out: its answer, after its line is in the audit log.
 * Promises: nobody gets an answer with records before its line is written. A request has one line. An answer without
 *   a list of its records is a defect, and is not sent. Refusals have lines, too. Those without a valid key and those
 *   of a rate limit may be a flood; answer/log-refusals.ts limits their lines.
 * Can go wrong: the line cannot be written → `unavailable` if the audit is strict. Else the answer goes out, and the
 *   writer counts the lost line.
 */

import { NOT_MODIFIED, OK, Refusal, unavailable } from '../../core/runtime/index.ts'
import { refusals } from '../../schemas/errors.ts'
import type { AdmitLine } from '../answer/log-refusals.ts'
import { OPENAPI_PATH } from '../answer/serve-openapi.ts'
import type { AddressOf } from '../http/client-address.ts'
import type { Arrived, Audited, AuditedRead, Context, KnownSoFar, Step } from '../http/request.ts'
import { auditLineOf } from './audit-line.ts'
import type { AuditWriter } from './write-lines.ts'

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
 * Step: writes the line of each request; none for the OpenAPI document.
 * @throws Refusal `unavailable` if a strict audit has no line
 */
export const auditReads = ({ writer, isStrict, now, addressOf, admitLine }: Parts): Step<Needs, Audited> => {
  const write = async (ctx: Context<Needs>, read: AuditedRead, status: number): Promise<void> => {
    const { state, method } = ctx
    const address = addressOf(ctx.req)
    const isFlood = state.key === undefined || status === refusals.rate_limited
    const admitted = isFlood ? admitLine(address) : { unlogged: 0 }
    if (admitted === undefined) return
    const line = auditLineOf(state, read, { time: now(), method, status, address, ...admitted })
    const outcome = await writer.write(line)
    if (isStrict && outcome !== 'written') throw unavailable('audit_not_written')
  }

  return async (ctx, next) => {
    const read: AuditedRead = {
      ids: undefined,
      count: 0,
      asOf: undefined,
      rep: undefined,
      period: undefined,
      deal: undefined,
      refusedKey: undefined,
    }
    const isAudited = (): boolean => ctx.state.route !== OPENAPI_PATH
    try {
      await next({ read })
      if (isAudited()) requireRecords(ctx.status, read)
    } catch (error) {
      if (isAudited()) await write(ctx, read, statusOf(error))
      throw error
    }
    if (isAudited()) await write(ctx, read, ctx.status)
  }
}

/** Step in place of `auditReads` where reads are not audited. */
export const auditNothing: Step<unknown, Audited> = (_, next) => next({ read: undefined })

const statusOf = (error: unknown): number => refusals[error instanceof Refusal ? error.code : 'internal']

/** Refuses answers of a route that does not call `noteRecordsForAudit`: its reads would leave no trace. */
const requireRecords = (status: number, { ids }: AuditedRead): void => {
  if ((status === OK || status === NOT_MODIFIED) && ids === undefined) {
    throw new Error('an answer without a list of its records')
  }
}
