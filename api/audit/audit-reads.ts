/**
 * In: a request. Out: its answer, after its line is in the audit log.
 * Promises: nobody gets an answer with records before its line is written, and a request has one line. An answer
 *   without a list of its records is a defect, and is not sent. Refusals have lines, too; those without a key and those
 *   of a limit may be a flood, so `answer/log-refusals.ts` limits them.
 * Can go wrong: the line cannot be written → `unavailable` if the audit is strict. Else the answer goes out, and the
 *   writer counts the lost line.
 */
import { refusals } from '../../schemas/errors.ts'
import type { AdmitLine } from '../answer/log-refusals.ts'
import { NOT_MODIFIED, OK, Refusal, unavailable } from '../failures.ts'
import type { AddressOf } from '../http/client-address.ts'
import { BASE_PATH, type RequestContext, type RequestStep } from '../http/request.ts'
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

/** It has no records, and nobody needs a key for it. */
const DESCRIPTION = `${BASE_PATH}/openapi.json`

/** Step: writes the line of each request. @throws Refusal `unavailable` if a strict audit has no line */
export const auditReads = ({ writer, isStrict, now, addressOf, admitLine }: Parts): RequestStep => {
  const write = async (ctx: RequestContext, status: number): Promise<void> => {
    const { state, method } = ctx
    const address = addressOf(ctx.req)
    const isFlood = state.key === undefined || status === refusals.rate_limited
    const admitted = isFlood ? admitLine(address) : { unlogged: 0 }
    if (admitted === undefined) return
    const line = auditLineOf(state, { time: now(), method, status, address, ...admitted })
    const outcome = await writer.write(line)
    if (isStrict && outcome !== 'written') throw unavailable('audit_not_written')
  }

  return async (ctx, next) => {
    ctx.state.read = {}
    try {
      await next()
      if (ctx.state.route !== DESCRIPTION) requireRecords(ctx)
    } catch (error) {
      if (ctx.state.route !== DESCRIPTION) await write(ctx, statusOf(error))
      throw error
    }
    if (ctx.state.route !== DESCRIPTION) await write(ctx, ctx.status)
  }
}

const statusOf = (error: unknown): number => refusals[error instanceof Refusal ? error.code : 'internal']

/** A new route that tells no records would be read without a trace. */
const requireRecords = ({ status, state }: RequestContext): void => {
  if ((status === OK || status === NOT_MODIFIED) && state.read?.ids === undefined) {
    throw new Error('an answer without a list of its records')
  }
}
