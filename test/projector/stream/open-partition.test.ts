import { expect, test } from 'vitest'
import { laterOf } from '../../../projector/stream/open-partition.ts'

test('a start after a crash does not forget later records whose documents are written', () => {
  const before = { offset: 20, sha256: 'before' }
  expect(laterOf(before, { offset: 10, sha256: 'again' })).toEqual(before)
  const further = { offset: 21, sha256: 'further' }
  expect([laterOf(before, further), laterOf(null, further), laterOf(undefined, further)]).toEqual([
    further,
    further,
    further,
  ])
})
