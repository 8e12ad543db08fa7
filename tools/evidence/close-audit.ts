/**
 * Who read, from the audit log. In: a file of lines of JSON, as the API writes them, also between lines of its log.
 * Out: for each key of the organization, how much it read and when. Lines of other organizations, and refusals, are
 * ignored.
 */
import { auditLines } from './audit-lines.ts'

export type AuditReads = readonly {
  readonly key_id: string
  readonly route: string
  readonly requests: number
  readonly records: number
  readonly first: string
  readonly last: string
}[]
type Reads = { -readonly [Field in keyof AuditReads[number]]: AuditReads[number][Field] }

/** By key and route. @throws CommandError for a file without any line of the audit log */
export const readAuditLog = async (file: string, org: string, signal: AbortSignal): Promise<AuditReads> => {
  const found = new Map<string, Reads>()
  for await (const { org_id, key_id, route, time, count } of auditLines(file, signal)) {
    if (org_id !== org || typeof key_id !== 'string' || typeof route !== 'string') continue
    if (typeof time !== 'string' || typeof count !== 'number' || count === 0) continue
    const name = `${key_id} ${route}`
    const reads = found.get(name) ?? { key_id, route, requests: 0, records: 0, first: time, last: time }
    reads.requests++
    reads.records += count
    if (time < reads.first) reads.first = time
    if (time > reads.last) reads.last = time
    found.set(name, reads)
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, reads]) => reads)
}
