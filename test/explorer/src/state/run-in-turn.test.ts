import { expect, test } from 'vitest'
import { runInTurn, type Settled } from '../../../../explorer/src/state/run-in-turn.ts'

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

const started = () => {
  const runs: PromiseWithResolvers<number>[] = []
  const shown: (Settled<number> & { readonly isLast: boolean })[] = []
  const turns = runInTurn(
    () => {
      const run = Promise.withResolvers<number>()
      runs.push(run)
      return run.promise
    },
    (outcome, isLast) => shown.push({ ...outcome, isLast }),
  )
  return { runs, shown, turns }
}

test('a reading that takes longer than changes need to come is shown, and read once more, however many came', async () => {
  const { runs, shown, turns } = started()
  turns.want()
  for (let change = 0; change < 5; change++) turns.want()
  expect(runs).toHaveLength(1)
  runs[0]?.resolve(1)
  await settled()
  expect(shown).toEqual([{ value: 1, isLast: false }])
  expect(runs).toHaveLength(2)
  runs[1]?.resolve(2)
  await settled()
  expect(shown.at(-1)).toEqual({ value: 2, isLast: true })
  turns.want()
  expect(runs).toHaveLength(3)
})

test('an error is an outcome like another, and after the end nothing is shown or begun', async () => {
  const { runs, shown, turns } = started()
  const error = new Error('away')
  turns.want()
  runs[0]?.reject(error)
  await settled()
  expect(shown).toEqual([{ error, isLast: true }])
  turns.want()
  turns.want()
  turns.end()
  runs[1]?.resolve(1)
  await settled()
  expect(shown).toHaveLength(1)
  expect(runs).toHaveLength(2)
})
