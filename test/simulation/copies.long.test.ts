/** Copies under load, restored and rewound. */
import { expect, test } from 'vitest'
import { runManyCopies } from './copies/run.ts'
import { FIRST_SEED } from './many.ts'

const SEEDS = 50

test('50 copies that were taken under load, restored and rewound, become equal to a projection from nothing', async () => {
  const first = FIRST_SEED + 100
  console.log(`seeds ${first} to ${first + SEEDS - 1}`)
  const { failure, spared, adopted } = await runManyCopies(first, SEEDS)
  console.log(`${spared.length} rewound, ${adopted} adopted; records not read again: ${spared.join(' ')}`)
  expect(failure).toBeUndefined()
  expect(spared.filter(records => records > 0).length).toBeGreaterThanOrEqual(SEEDS * 0.9)
})
