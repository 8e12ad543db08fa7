/** The outcome of a check, and its text for an operator and for a program. Names no secret. */
import type { IdentityName } from '../../schemas/access.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { printable } from '../terminal.ts'

/** `not tried`: no request can try it without a trace, or another check must pass first. */
type Outcome = 'ok' | 'warning' | 'failed' | 'not tried'

export type Finding = {
  /** The subject: *Kafka: Read on topic commission.events*. */
  readonly check: string
  readonly outcome: Outcome
  readonly detail: string
  /** How to mend it. */
  readonly mend?: string
}
export type IdentityFinding = Finding & { readonly identity: IdentityName }

export const ok = (check: string, detail = ''): Finding => ({ check, outcome: 'ok', detail })
export const failed = (check: string, detail: string, mend?: string): Finding => ({
  check,
  outcome: 'failed',
  detail,
  ...(mend !== undefined && { mend }),
})
export const warning = (check: string, detail: string, mend?: string): Finding => ({
  ...failed(check, detail, mend),
  outcome: 'warning',
})
export const notTried = (check: string, detail: string): Finding => ({ check, outcome: 'not tried', detail })

const OUTCOME_WIDTH = 'not tried'.length

/** Colours an outcome on a terminal: what needs attention stands out of many lines. */
export type Paint = (outcome: Outcome, text: string) => string

const plain: Paint = (_, text) => text

/** One line. */
export const lineOf = ({ identity, check, outcome, detail, mend }: IdentityFinding, paint: Paint = plain): string => {
  const told = [check, detail, ...(mend === undefined ? [] : [`to mend: ${mend}`])].filter(Boolean)
  return `${paint(outcome, outcome)}${printable(`${' '.repeat(OUTCOME_WIDTH - outcome.length)}  ${identity}  ${told.join('; ')}`)}`
}

const countOf = (findings: readonly Finding[], outcome: Outcome): number =>
  findings.filter(finding => finding.outcome === outcome).length

export const summaryOf = (findings: readonly Finding[]): string =>
  (['failed', 'warning', 'not tried', 'ok'] as const)
    .map(outcome => `${countOf(findings, outcome)} ${outcome}`)
    .join(', ')

/** One document. Its `result` is the worst outcome; a check that was not tried counts as `ok`. */
export const reportOf = (findings: readonly IdentityFinding[]): string => {
  const result = (['failed', 'warning'] as const).find(outcome => countOf(findings, outcome) > 0) ?? 'ok'
  return JSON.stringify({ result, checks: findings })
}

export const exitCodeOf = (findings: readonly Finding[]): ExitCode =>
  countOf(findings, 'failed') > 0 ? exitCodes.failed : exitCodes.done
