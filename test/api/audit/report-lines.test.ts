/** Lost lines are counted all, and logged at a bounded rate. */
import { expect, test } from 'vitest'
import { createAuditReport } from '../../../api/audit/report-lines.ts'
import { AUDIT_REPORT_INTERVAL } from '../../../api/limits.ts'

test('the first loss is logged at once, others together, the end of the losses once, and the rest at a stop', () => {
  let clock = 0
  const said: unknown[] = []
  const counted = { written: 0, lost: 0 }
  const { onLines: report, end } = createAuditReport({
    say: (_, message, details) => void said.push([message, details]),
    count: (outcome, lines) => {
      counted[outcome] += lines
    },
    elapsed: () => clock,
  })
  report('written', 5)
  for (let n = 0; n < 1_000; n++) report('lost', 2, 'ENOSPC')
  report('written', 1)
  expect(said).toEqual([['lines of the audit log are lost', { lines: 2, reason: 'ENOSPC' }]])
  clock += AUDIT_REPORT_INTERVAL
  report('written', 1)
  report('written', 1)
  report('written', 1)
  expect(said.slice(1)).toEqual([
    ['lines of the audit log are lost', { lines: 1_998, reason: 'ENOSPC' }],
    ['the audit log is written again', undefined],
  ])
  expect(counted).toEqual({ written: 9, lost: 2_000 })
  end()
  expect(said.length).toBe(3)
  report('lost', 1, 'ENOSPC')
  report('lost', 3, 'process_ended')
  end()
  end()
  expect(said.slice(3)).toEqual([['lines of the audit log are lost', { lines: 4, reason: 'process_ended' }]])
})
