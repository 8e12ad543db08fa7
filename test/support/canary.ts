/**
 * What no log may hold: ids of records and organizations, amounts, keys, names, addresses that were asked for. Every
 * process and every API that a test starts is listened to, at the level debug, and what it wrote is searched when the
 * test ends.
 */
import { expect } from 'vitest'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { idPrefixes } from '../../schemas/values.ts'

/** Words of ours that look like ids. */
const ours = new Set<string>([...parkCodes, ...Object.keys(refusals), 'payroll_files'])

const content: Readonly<Record<string, RegExp>> = {
  // A key's id may be logged.
  id: new RegExp(`(?:${idPrefixes.filter(prefix => prefix !== 'key').join('|')})_[0-9A-Za-z_]+`, 'g'),
  key: /ck_[0-9A-Za-z_-]{10,}|Bearer/gi,
  // A setting that is wrong is shown as it is.
  amount: /(?<!got )\\?"-?\d+\.\d+\\?"/g,
  field: /(?:net|earned|output)_amount|line_items|calculation_trace/g,
  address: /\/api\/v1[^"]*[?]|starting_after/g,
  name: /canary|@example/gi,
}

/** What a log holds that it must not, by kind. */
export const contentIn = (log: string): string[] =>
  Object.entries(content).flatMap(([kind, pattern]) =>
    [...new Set(log.match(pattern) ?? [])].filter(found => !ours.has(found)).map(found => `${kind}: ${found}`),
  )

export const expectNoContent = (log: string): void => expect(contentIn(log)).toEqual([])
