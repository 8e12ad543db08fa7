/**
 * In: a file of the audit log, whose lines may stand between lines of the log of the API. Out: its lines, parsed, in
 *   order. A line that is not of the audit log, or was cut off, is left out.
 */
import { createReadStream } from 'node:fs'
import { linesIn } from '../export/lines.ts'
import { CommandError } from '../failures.ts'

/** The fields of a line that commands read; each may be of any type. */
export type AuditFields = Readonly<
  Partial<Record<'audit' | 'org_id' | 'key_id' | 'route' | 'time' | 'count' | 'refused_for', unknown>>
>

/** @throws CommandError for a file without any line of the audit log */
export async function* auditLines(file: string, signal?: AbortSignal): AsyncGenerator<AuditFields> {
  let lines = 0
  for await (const bytes of linesIn(createReadStream(file), 'a line')) {
    signal?.throwIfAborted()
    const line = parsed(bytes)
    if (line?.audit !== true) continue
    lines++
    yield line
  }
  if (lines === 0) throw new CommandError(`${file}: expected lines of the audit log ("audit":true), and there is none`)
}

const parsed = (bytes: Buffer): AuditFields | undefined => {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the time of the last request of each key of an organization that was let in, by key id, from several files.
 * @throws CommandError for a file without any line of the audit log
 */
export const lastUses = async (files: readonly string[], org: string): Promise<ReadonlyMap<string, string>> => {
  const last = new Map<string, string>()
  for (const file of files) {
    for await (const { org_id, key_id, time, refused_for } of auditLines(file)) {
      // A key that was refused for its address was tried, and not used.
      if (org_id !== org || typeof key_id !== 'string' || typeof time !== 'string' || refused_for !== undefined)
        continue
      if (time > (last.get(key_id) ?? '')) last.set(key_id, time)
    }
  }
  return last
}
