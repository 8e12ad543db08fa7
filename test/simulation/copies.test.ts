/** A few copies under load, restored and rewound; `copies.long.test.ts` has 50. */
import { expect, test } from 'vitest'
import { runManyCopies } from './copies/run.ts'
import { FIRST_SEED } from './many.ts'

test('a copy that was taken under load, restored and rewound, becomes equal to a projection from nothing', async () => {
  console.log(`seeds ${FIRST_SEED} to ${FIRST_SEED + 7}`)
  const { failure, spared } = await runManyCopies(FIRST_SEED, 8)
  expect(failure).toBeUndefined()
  // At least the first restore of each seed must go back to past positions: otherwise nothing is proved.
  expect(spared.filter(records => records > 0).length).toBeGreaterThanOrEqual(7)
})
