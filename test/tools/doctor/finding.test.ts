import { expect, test } from 'vitest'
import {
  exitCodeOf,
  failed,
  type IdentityFinding,
  lineOf,
  notTried,
  ok,
  reportOf,
  summaryOf,
  warning,
} from '../../../tools/doctor/finding.ts'
import { exitCodes } from '../../../tools/failures.ts'

const identity = 'projector'
const of = (...findings: readonly Omit<IdentityFinding, 'identity'>[]): IdentityFinding[] =>
  findings.map(finding => ({ identity, ...finding }))

test('a finding is one line: outcome, identity, check, detail and how to mend it', () => {
  const [first, second] = of(failed('Kafka: Read on topic x', 'Kafka refuses it', 'allow it'), ok('Redis\nok'))
  expect(first && lineOf(first)).toBe(
    'failed     projector  Kafka: Read on topic x; Kafka refuses it; to mend: allow it',
  )
  expect(second && lineOf(second)).toBe('ok         projector  Redis\\u000aok')
})

test.for([
  [of(ok('a'), notTried('b', 'why')), 'ok', exitCodes.done],
  [of(ok('a'), warning('b', 'why')), 'warning', exitCodes.done],
  [of(failed('a', 'why'), warning('b', 'why')), 'failed', exitCodes.failed],
] as const)('only a failed check changes the exit code: %#', ([findings, result, code]) => {
  expect(exitCodeOf(findings)).toBe(code)
  expect(JSON.parse(reportOf(findings))).toEqual({ result, checks: findings })
})

test('the summary counts each outcome', () => {
  expect(summaryOf(of(ok('a'), ok('b'), failed('c', 'd'), notTried('e', 'f')))).toBe(
    '1 failed, 0 warning, 1 not tried, 2 ok',
  )
})
