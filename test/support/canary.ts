/**
 * Content that no log may hold: ids of records and organizations, amounts, keys, names, requested addresses. Tests
 * start every process and API at log level debug, and search its log when the test ends.
 */
import { expect } from 'vitest'
import { parkCodes, refusals } from '../../schemas/errors.ts'
import { idPrefixes } from '../../schemas/values.ts'

/** Codes and names of the product that look like ids. A message about a mapping names a field. */
const ours = new Set<string>([...parkCodes, ...Object.keys(refusals), 'payroll_files', 'org_id', 'rep_id', 'period_id'])

const content: Readonly<Record<string, RegExp>> = {
  // The id of a key may be logged.
  id: new RegExp(`(?:${idPrefixes.filter(prefix => prefix !== 'key').join('|')})_[0-9A-Za-z_]+`, 'g'),
  // A random id of a cluster, a topic or an index may have these letters in its middle.
  key: /(?:(?<![\w-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[bfnrt]))ck_[\w-]{10,}|[Bb]earer|BEARER/g,
  // An error about a setting shows its value.
  amount: /(?<!got )\\?"-?\d+\.\d+\\?"/g,
  field: /(?:net|earned|output)_amount|line_items|calculation_trace/g,
  address: /\/api\/v1[^"]*[?]|starting_after/g,
  name: /canary|@example/gi,
}

/** Returns the forbidden content of a log, each with its kind. */
export const contentIn = (log: string): string[] =>
  Object.entries(content).flatMap(([kind, pattern]) =>
    [...new Set(log.match(pattern) ?? [])].filter(found => !ours.has(found)).map(found => `${kind}: ${found}`),
  )

/** Lines of the audit log may hold ids, and nothing else of these. */
export const expectNoContent = (log: string): void => {
  const isAudit = (line: string): boolean => line.startsWith('{"audit":true,')
  const lines = log.split('\n')
  expect(contentIn(lines.filter(line => !isAudit(line)).join('\n'))).toEqual([])
  expect(contentIn(lines.filter(isAudit).join('\n')).filter(found => !found.startsWith('id: '))).toEqual([])
}
