import { expect, test } from 'vitest'
import { firstToRemove } from '../../../tools/leftovers/written.ts'

const positionOf = (position: number) => ({ position, last: null, at: 1, time: 2, serve_from: 0 })

test('while a partition is read again, the last written record says whether its documents are of the log', async () => {
  const position = { ...positionOf(20), serve_from: 45 }
  const at = (offset: number) => ({ offset, sha256: 'a' })
  const [isOfLog, isOfOther] = [async () => true, async () => false]
  expect(await firstToRemove('g1', position, at(30), isOfLog)).toBe(45)
  expect(await firstToRemove('g1', position, at(30), isOfOther)).toBe(20)
  // It is of what was read again already.
  expect(await firstToRemove('g1', position, at(19), isOfLog)).toBe(20)
  expect(await firstToRemove('api-keys', position, at(30), isOfLog)).toBe(20)
  expect(await firstToRemove('g1', positionOf(20), at(30), isOfLog)).toBe(20)
})
