/** More seeds of `foreign-logs.test.ts`, and the loss of the topics at every request of the projectors in turn. */
import { expect, test } from 'vitest'
import { runEveryRequest, runManyLogs } from './foreign-logs/many.ts'
import type { Plan } from './foreign-logs/plan.ts'
import { API_KEYS, EVENTS } from './history.ts'
import { FIRST_SEED } from './many.ts'

const RUNS = 400

test('no log but that of the publishers is shown, with more seeds', async () => {
  const first = FIRST_SEED + 10_000
  console.log(`seeds ${first} to ${first + RUNS - 1}`)
  expect((await runManyLogs(first, RUNS)).failure).toBeUndefined()
})

const both = [EVENTS, API_KEYS]
const plain = {
  topics: both,
  snapshot: 'none',
  killCommandAt: 0,
  latency: 5,
  noticedAfter: 4_000,
} satisfies Partial<Plan>

test.each([
  { kind: 'made anew', moment: 'before', killed: 'all', stranger: 'little', projectors: 2 },
  { kind: 'made anew', moment: 'after', killed: 'one', stranger: 'much', projectors: 2 },
  { kind: 'lost tail', moment: 'before', killed: 'all', stranger: 'none', projectors: 1 },
  { kind: 'lost tail', moment: 'after', killed: 'all', stranger: 'little', projectors: 2 },
  { kind: 'cut', moment: 'after', killed: 'all', stranger: 'none', projectors: 1 },
] as const)('topics can be lost at any request: $kind, $moment it, killed: $killed', async given => {
  const plan = { ...plain, ...given, hasSpare: false, hasTopicIds: true }
  const { failure, requests } = await runEveryRequest(FIRST_SEED + 2, plan)
  expect(failure).toBeUndefined()
  expect(requests).toBeGreaterThan(15)
})
