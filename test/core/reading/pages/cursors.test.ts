/** The sort values of the names that a client gives, with documents that the test changes. */
import { expect, test } from 'vitest'
import { createCursors, readNamed } from '../../../../core/reading/pages/cursors.ts'
import type { RecordName } from '../../../../core/reading/pages/read-parameters.ts'
import type { PositionReader } from '../../../../core/store/positions/position.ts'
import { type DocumentName, sliceMultiGet } from '../../../../core/store/read/slice-documents.ts'
import { multiGetAnswer } from '../../../api/answers.ts'
import { documentText } from '../../../support/bodies.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const versions = [
  { seq: 3, hash: 'a' },
  { seq: 8, hash: 'b' },
]
const payoutAt = (seq: number): string => documentText({ org_id: 'org_a', seq }, '{}')
const payout = { kind: 'payouts', id: 'payout_1' } as const

const setUp = () => {
  const stored: Record<string, string> = {
    'org_a:rep_1': documentText({ org_id: 'org_a' }, JSON.stringify({ versions })),
    'org_a:payout_1': payoutAt(5),
  }
  const position = { generation: generationOf(), publishedTo: 100, time: 0, takenBack: 0 }
  const asked: (string | undefined)[][] = []
  const readAt: PositionReader['readAt'] = async (_, documents) => {
    const names = documents(position.generation)
    asked.push(names.map(({ _id }) => _id))
    return {
      position: { ...position },
      documents: sliceMultiGet(multiGetAnswer(names, stored), names as DocumentName[]),
    }
  }
  const cursors = createCursors()
  const sortValuesOf = async (...names: (RecordName | undefined)[]) =>
    (
      await readNamed({ readAt, cursors }, scopeOf('org_a'), {
        names,
        documentsOf: () => [],
        freshness: 'may-be-older',
      })
    ).sortValues
  return { stored, position, asked, cursors, sortValuesOf }
}

test('the sort value is that of the first version in a list, and of the named version in the feed of changes', async () => {
  const rep = { kind: 'reps', id: 'rep_1' } as const
  const { sortValuesOf } = setUp()
  const named = [rep, { ...rep, ordinal: 1 }, { ...rep, ordinal: 2 }, { ...rep, ordinal: 3 }]
  expect(await sortValuesOf(...named)).toEqual([3, 3, 8, undefined])
})

test('a visible record is looked up once; a missing record is looked up again', async () => {
  const { sortValuesOf, asked } = setUp()
  const names = [payout, undefined, { kind: 'payouts', id: 'payout_9' }] as const
  for (let times = 0; times < 2; times++) expect(await sortValuesOf(...names)).toEqual([5, undefined, undefined])
  expect(asked).toEqual([['org_a:payout_1', 'org_a:payout_9'], ['org_a:payout_9']])
})

test('a record that is not visible yet is looked up again, because the log can lose it', async () => {
  const { sortValuesOf, stored, position } = setUp()
  stored['org_a:payout_1'] = payoutAt(105)
  position.publishedTo = 105
  expect(await sortValuesOf(payout)).toEqual([105])
  stored['org_a:payout_1'] = payoutAt(240)
  position.publishedTo = 300
  expect(await sortValuesOf(payout)).toEqual([240])
})

test('a record is looked up again after a time was taken back, as after an adoption', async () => {
  const { sortValuesOf, stored, position, cursors, asked } = setUp()
  expect(await sortValuesOf(payout)).toEqual([5])
  const rep = { kind: 'reps', id: 'rep_1' } as const
  cursors.remember('org_a', position, rep, 4)
  stored['org_a:payout_1'] = payoutAt(60)
  position.takenBack = 1
  expect(await sortValuesOf(payout, rep)).toEqual([60, 3])
  expect(asked).toEqual([['org_a:payout_1'], [], ['org_a:payout_1', 'org_a:rep_1']])
  expect(await sortValuesOf(payout, rep)).toEqual([60, 3])
})
