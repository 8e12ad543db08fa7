/** A promise of api/read/position.ts about requests that wait for a change. */
import { expect, test } from 'vitest'
import { createPositionReader } from '../../../api/read/position.ts'
import { scheduleTimer } from '../../../api/time-limits.ts'
import { generationText, multiGetAnswer, positionText } from '../answers.ts'

test('waiting requests see no position below the positions that any process may have shown', async () => {
  const servedWith = async (floor: readonly number[] | null | undefined) => {
    const documents = {
      live: JSON.stringify({ kind: 'live', body: { generation: 'g1', floor } }),
      'generation:g1': generationText('g1'),
      'position:g1:0': positionText(10, 1_000),
    }
    const reader = createPositionReader('p', async names => multiGetAnswer(names, documents), scheduleTimer)
    const { partitions } = await reader.readServedPositions(new AbortController().signal)
    return partitions.map(position => position?.publishedTo)
  }
  expect([await servedWith(undefined), await servedWith([10])]).toEqual([[10], [10]])
  expect([await servedWith([11]), await servedWith(null)]).toEqual([[undefined], [undefined]])
})
