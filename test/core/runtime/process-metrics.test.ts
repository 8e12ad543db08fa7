import { expect, test } from 'vitest'
import { createProcessMetrics } from '../../../core/runtime/process-metrics.ts'

test.each(['api', 'projector'] as const)('each process of %s says its version, and measures itself', async program => {
  const lines = (await createProcessMetrics(program).metrics()).split('\n')
  const build = new RegExp(`^commission_build_info\\{program="${program}",version="\\d+\\.\\d+\\.\\d+"\\} 1$`)
  expect(lines).toContainEqual(expect.stringMatching(build))
  expect(lines).toContainEqual(expect.stringMatching(/^process_cpu_seconds_total \d/))
})
