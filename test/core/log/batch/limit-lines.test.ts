import { expect, test } from 'vitest'
import { createAdmitBatch } from '../../../../core/log/batch/limit-lines.ts'
import { UNDECODABLE_LOGGED, UNDECODABLE_LOGGED_MS } from '../../../../core/log/limits.ts'

test('a flood of batches gets a few lines a minute, and the first line of the next minute counts the others', () => {
  let time = 5
  const admit = createAdmitBatch(() => time)
  const lines = Array.from({ length: 1_000 }, admit).filter(line => line !== undefined)
  expect(lines).toEqual(
    Array.from({ length: UNDECODABLE_LOGGED }, (_, at) => ({ more: UNDECODABLE_LOGGED - 1 - at, unnamed: 0 })),
  )
  time += UNDECODABLE_LOGGED_MS - 1
  expect(admit()).toBeUndefined()
  time += 1
  expect(admit()).toEqual({ more: UNDECODABLE_LOGGED - 1, unnamed: 1_001 - UNDECODABLE_LOGGED })
  expect(admit()).toEqual({ more: UNDECODABLE_LOGGED - 2, unnamed: 0 })
})
