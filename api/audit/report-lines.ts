/**
 * Counts the lines of the audit log, and logs at a bounded rate that lines are lost.
 * Promises: logs at most once in AUDIT_REPORT_INTERVAL how many lines were lost since the last time; the first loss at
 *   once, and the rest at the end of the process.
 */

import type { Log } from '../answer/answer-and-log.ts'
import { AUDIT_REPORT_INTERVAL } from '../limits.ts'
import type { OnLines } from './audit-reads.ts'

type Parts = {
  readonly say: Log['say']
  readonly count: (outcome: 'written' | 'lost', lines: number) => void
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
}

export type AuditReport = {
  readonly onLines: OnLines
  /** Logs how many lines were lost since the last time, if any. */
  readonly end: () => void
}

export const createAuditReport = ({ say, count, elapsed }: Parts): AuditReport => {
  let unreported = 0
  let isLosing = false
  let reportedAt = Number.NEGATIVE_INFINITY
  let lastReason = 'unknown'

  const report = (): void => {
    say('error', 'lines of the audit log are lost', { lines: unreported, reason: lastReason })
    unreported = 0
    reportedAt = elapsed()
  }
  const reportInTurn = (): void => {
    if (elapsed() - reportedAt >= AUDIT_REPORT_INTERVAL) report()
  }

  const onLines: OnLines = (outcome, lines, reason = 'unknown') => {
    count(outcome, lines)
    if (outcome === 'lost') {
      unreported += lines
      isLosing = true
      lastReason = reason
      reportInTurn()
    } else if (isLosing && unreported === 0) {
      isLosing = false
      say('info', 'the audit log is written again')
    } else if (isLosing) reportInTurn()
  }

  return {
    onLines,
    end: () => {
      if (unreported > 0) report()
    },
  }
}
