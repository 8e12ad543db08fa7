/** A copy that grows is killed at any request and any write of a file; then the same commands bring it to its end. */
import { expect, test } from 'vitest'
import { FIRST_SEED } from './many.ts'
import { copiedPairs, runCopied } from './pairs/copied.ts'
import { runPairs } from './pairs/many.ts'

test('a copy that was killed at any step has the same bytes after the same command, beside another run too', async () => {
  const every = await runPairs({ seed: FIRST_SEED, only: 'add-next,alone', among: copiedPairs })
  expect(every.failure).toBeUndefined()
  expect(every.runs).toBeGreaterThan(50)
  const { failure, outcomes } = await runPairs({ seed: FIRST_SEED, kills: 3, among: copiedPairs })
  expect(failure).toBeUndefined()
  const ends = [...outcomes.keys()]
  expect(ends).toEqual(expect.arrayContaining(['export killed', 'export ended with 0']))
  expect(ends.some(end => end.includes('another export writes into'))).toBe(true)
})

test('a seed repeats the same run, files too', async () => {
  const run = () => runCopied(['add-next', 'alone'], FIRST_SEED, { who: 'first', at: 9 })
  expect(await run()).toEqual(await run())
})
