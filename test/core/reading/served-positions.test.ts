/** A promise of core/store/positions/position.ts about requests that wait for a change. */
import { expect, test } from 'vitest'
import { scheduleTimer } from '../../../core/runtime/time-limits.ts'
import { createPositionReader } from '../../../core/store/positions/position.ts'
import { generationText, multiGetAnswer, positionText } from '../../api/answers.ts'

test('waiting requests see no position below the positions that any process may have shown', async () => {
  const servedWith = async (floor: readonly number[] | null | undefined) => {
    const documents = {
      live: JSON.stringify({ kind: 'live', body: { generation: 'g1', floor } }),
      'generation:g1': generationText('g1'),
      'position:g1:0': positionText(10, 1_000),
    }
    const reader = createPositionReader('p', async names => multiGetAnswer(names, documents), scheduleTimer)
    const { partitions, notServed } = await reader.readServedPositions(new AbortController().signal)
    return [...partitions.map(position => position?.publishedTo), ...notServed]
  }
  expect([await servedWith(undefined), await servedWith([10])]).toEqual([[10], [10]])
  const refused = [undefined, [0, 'position_went_back']]
  expect([await servedWith([11]), await servedWith(null)]).toEqual([refused, refused])
})
