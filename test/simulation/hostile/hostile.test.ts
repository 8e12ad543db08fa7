/** API processes under attack. `run.ts` has the checks. */
import { expect, test } from 'vitest'
import { attacks, Coverage } from '../coverage.ts'
import { FIRST_SEED, repeatAttackWith } from '../many.ts'
import { runAttack } from './run.ts'

const ATTACKS = 150

test('a seed repeats the same attack, event by event', async () => {
  const once = await runAttack(FIRST_SEED)
  await runAttack(FIRST_SEED + 1_000)
  expect((await runAttack(FIRST_SEED)).trace).toBe(once.trace)
})

test('whatever hostile clients do, others get correct answers, no request fails with an internal error, and everything is released', async () => {
  console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + ATTACKS - 1}`)
  const coverage = new Coverage(attacks)
  for (let seed = FIRST_SEED; seed < FIRST_SEED + ATTACKS; seed++) {
    const verdict = await runAttack(seed)
    coverage.add(verdict.coverage)
    expect(verdict.failure, repeatAttackWith(seed)).toBeUndefined()
  }
  console.log(coverage.toString())
  expect(coverage.missing()).toEqual([])
})
