/**
 * In: a request and its outcome. Out: its line in the audit log: JSON with ids, times and numbers.
 * Promises: has no name, amount or key. From the request it takes only well-formed ids, instants, and the name of a
 *   known method. `ids` has the records that the answer is about; `count` says how many of them it shows: none to HEAD
 *   and with 304.
 */

import { type Moment, textOfName } from '../../core/reading/index.ts'
import { OK } from '../../core/runtime/index.ts'
import type { Arrived, AuditedRead, KnownSoFar } from '../http/request.ts'

/** A line, and the organization of its request, if it has one. */
export type AuditLine = { readonly text: string; readonly org: string | undefined }

type Outcome = {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly method: string
  readonly status: number
  readonly address: string | undefined
  /** How many refusals of this address got no line since its last line. */
  readonly unlogged: number
}

export const auditLineOf = (
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
