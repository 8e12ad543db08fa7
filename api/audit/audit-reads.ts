/**
 * In: a request. Out: its answer, after its line is in the audit log: JSON with ids, times and numbers.
 * Promises: a strict audit lets no answer with records out before its line is written; else an answer waits at most
 *   AUDIT_WAIT_MAX, and a late line is still written. A request has one line. An answer without a list of its records
 *   is a defect, and is not sent. Refusals have lines, too. Those without a valid key and those of a rate limit may be
 *   a flood; `createRefusalLog` limits their lines. A line has no name, amount or key. From the request it takes only
 *   well-formed ids, instants, and the name of a known method.
 * Can go wrong: the line cannot be written → `unavailable` if the audit is strict. Else the answer goes out, and the
 *   writer counts the lost line.
 */

import { type Moment, textOfName } from '../../core/reading/index.ts'
import { NO_CONTENT, NOT_MODIFIED, OK, Refusal, unavailable } from '../../core/runtime/index.ts'
import { refusals } from '../../schemas/errors.ts'
import { OPENAPI_PATH } from '../answer/serve-openapi.ts'
import type { AddressOf } from '../http/client-address.ts'
import type { AdmitLine } from '../http/log.ts'
import type { Arrived, Audited, AuditedRead, Context, KnownSoFar, Step } from '../http/request.ts'
import type { AuditLine, AuditWriter } from './write-lines.ts'

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
    const isAudited = (): boolean => ctx.state.route !== OPENAPI_PATH && ctx.status !== NO_CONTENT
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
