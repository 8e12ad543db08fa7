/**
 * Topics that are lost, made anew by a stranger, cut and restored, while projectors project and readers read.
 * `foreign-logs/run.ts` has the checks; `foreign-logs.long.test.ts` has more seeds, and the loss at every request.
 */
import { expect, test } from 'vitest'
import { runManyLogs } from './foreign-logs/many.ts'
import { runReadAgain } from './foreign-logs/read-again.ts'
import { runForeignLog } from './foreign-logs/run.ts'
import { API_KEYS } from './history.ts'
import { FIRST_SEED } from './many.ts'

const RUNS = 90

test('a seed repeats the same loss', async () => {
  const once = await runForeignLog(FIRST_SEED)
  await runForeignLog(FIRST_SEED + 1_000)
  expect((await runForeignLog(FIRST_SEED)).trace).toEqual(once.trace)
})

test('a key that only a lost record has made does not open anything after a cut', async () => {
  const cut = { kind: 'cut', topics: [API_KEYS], killed: 'all', adoptsFirst: false } as const
  const { failure, stops } = await runManyLogs(FIRST_SEED, 20, {
    ...cut,
    snapshot: 'none',
    hasSpare: false,
    projectors: 1,
  })
  expect(failure).toBeUndefined()
  // A projector has seen that the keys are of another record.
  expect(stops.get('source_changed')).toBeGreaterThan(0)
})

test('after a cut while restored indices are read again, adopt leaves no document of a lost record', async () => {
  let between = 0
  for (let requests = 0; requests < 60; requests += 3) {
    const { failure, isBetween } = await runReadAgain(FIRST_SEED + requests, requests)
    expect(failure).toBeUndefined()
    if (isBetween) between++
  }
  expect(between).toBeGreaterThan(5)
})

test('no log but that of the publishers is shown, and no document outlives a log that was lost', async () => {
  console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + RUNS - 1}`)
  const { failure, outcomes, stops, answers } = await runManyLogs(FIRST_SEED, RUNS)
  expect(failure).toBeUndefined()
  // Logs were taken over, went on after a cut, and were refused; projectors refused by name; readers read meanwhile.
  expect([...outcomes.keys()].sort()).toEqual(['refused', 'restored', 'went on'])
  expect([...stops.keys()]).toEqual(expect.arrayContaining(['records_deleted', 'source_changed', 'topic_missing']))
  expect(answers).toBeGreaterThan(100 * RUNS)
})
