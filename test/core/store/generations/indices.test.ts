/** Optional questions about indices, behind a proxy that answers 404 to them, or only reloads. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../../../core/runtime/keep-trying.ts'
import {
  assertSameIndices,
  assertSeesAll,
  readRecordableIds,
  readShardIds,
} from '../../../../core/store/generations/indices.ts'
import { proxied, sending } from '../../../support/answering.ts'
import { answerIds, recordedIds } from '../../../support/shard-answers.ts'

const NAMES = ['p-control', 'p-g1-payouts']
const recorded = { generation: 'g1', ...recordedIds(NAMES) }
const steps = {
  prefix: 'p',
  request: sending(async ({ path, isOptional = false }) => {
    const answer = path.endsWith('/_settings') ? answerIds(path, NAMES) : undefined
    return answer ?? proxied(isOptional)
  }),
}

test('a user whose privileges a proxy does not tell is as one of Elasticsearch without security', async () => {
  expect(await assertSeesAll(NAMES, steps)).toBe(false)
  await expect(assertSeesAll(NAMES, steps, false)).rejects.toThrow(Unanswered)
})

test('shards that a proxy does not tell are missing: nothing counts as compared, and none is recorded', async () => {
  expect(await readShardIds(NAMES, steps)).toEqual({})
  await expect(readShardIds(NAMES, steps, false)).rejects.toThrow(Unanswered)
  expect(await readRecordableIds(NAMES, steps)).toBeUndefined()
  await expect(readRecordableIds(NAMES, steps, false)).rejects.toThrow(Unanswered)
  expect(await assertSameIndices(recorded, steps)).toEqual({})
})

test('a read that had to wait does not count while a proxy answers 404 to the question for its shards', async () => {
  const [, read = ''] = NAMES
  await expect(assertSameIndices(recorded, { ...steps, read: [read] })).rejects.toThrow(Unanswered)
})
