import { expect, test } from 'vitest'
import { createCursors } from '../../../../core/reading/pages/cursors.ts'
import { createReadByIds } from '../../../../core/reading/pages/read-by-ids.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { recordIdOf } from '../../../../core/reading/pages/read-list.ts'
import { unavailable } from '../../../../core/runtime/refusals.ts'
import { type DocumentName, sliceMultiGet } from '../../../../core/store/read/slice-documents.ts'
import { PAGE_BYTES_MAX } from '../../../../schemas/limits.ts'
import type { ListKind } from '../../../../schemas/stored/documents.ts'
import { multiGetAnswer, recordText } from '../../../api/answers.ts'
import { documentText } from '../../../support/bodies.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf()
const position = { generation, publishedTo: 10, time: 0, takenBack: 0 }

/** Reads from these documents. @param bytesMax of an answer with records */
const readerOf = (stored: Readonly<Record<string, string>>, bytesMax = Number.POSITIVE_INFINITY) => {
  const asked: string[] = []
  const parts = {
    readAt: async (_: unknown, documents: Parameters<ReaderParts['readAt']>[1]) => {
      const names = documents(generation)
      return { position, documents: sliceMultiGet(multiGetAnswer(names, stored), names) }
    },
    cursors: createCursors(),
    positionAsOf: async () => position,
    projectionTime: async (_: unknown, __: unknown, found: string) => (found === 'records' ? 1 : 2),
  } as unknown as ReaderParts
  const read = createReadByIds(parts, async (names: readonly DocumentName[]) => {
    asked.push(`${names.length} ${names[0]?.form}`)
    if (names[0]?.form !== 'size') {
      const answer = multiGetAnswer(names, stored)
      if (answer.length > bytesMax) throw unavailable('elasticsearch_too_large')
      return answer
    }
    const sizes = Object.entries(stored).map(([id, text]) => {
      const { seq, body_bytes } = JSON.parse(text)
      return [id, JSON.stringify({ seq, body_bytes })]
    })
    return multiGetAnswer(names, Object.fromEntries(sizes))
  })
  const byIds = async (kind: ListKind, ...ids: string[]) => {
    const { hits, hasMore, left, position } = await read(scopeOf('org_a'), { kind, ids, asOf: undefined })
    const bodies = hits.map(({ bytes, bodyStart, bodyEnd }) => bytes.toString('utf8', bodyStart, bodyEnd))
    return { ids: hits.map(recordIdOf), bodies, hasMore, left, time: position.time }
  }
  return { asked, byIds }
}

test('records come in the order of the ids, without unknown ones and those that are not published yet', async () => {
  const { asked, byIds } = readerOf({
    'org_a:payout_1': recordText(1, { n: 1 }),
    'org_a:payout_2': recordText(9, { n: 2 }),
    'org_a:payout_3': recordText(10, { n: 3 }),
    'org_b:payout_4': recordText(1, { n: 4 }),
  })
  expect(await byIds('payouts', 'payout_4', 'payout_2', 'payout_3', 'payout_9', 'payout_1')).toEqual({
    ids: ['payout_2', 'payout_1'],
    bodies: ['{"n":2}', '{"n":1}'],
    hasMore: false,
    left: [],
    time: 1,
  })
  expect(asked).toEqual(['5 record'])
  expect(await byIds('payouts', 'payout_4')).toMatchObject({ ids: [], hasMore: false, time: 2 })
})

test('reps come in their version at the position', async () => {
  const head = (...seqs: number[]) =>
    documentText({ org_id: 'org_a' }, JSON.stringify({ versions: seqs.map(seq => ({ seq, hash: 'h' })) }))
  const stored = {
    'org_a:rep_1': head(3, 8, 12),
    'org_a:rep_1:3': recordText(3, { name: 'first' }),
    'org_a:rep_1:8': recordText(8, { name: 'second' }),
    'org_a:rep_2': head(10),
    'org_a:rep_3': head(4),
    'org_a:rep_3:4': recordText(4, { name: 'other' }),
  }
  expect(await readerOf(stored).byIds('reps', 'rep_3', 'rep_2', 'rep_9', 'rep_1')).toMatchObject({
    ids: ['rep_3', 'rep_1'],
    bodies: ['{"name":"other"}', '{"name":"second"}'],
  })
  const { 'org_a:rep_3:4': _, ...without } = stored
  await expect(readerOf(without).byIds('reps', 'rep_1', 'rep_3')).rejects.toMatchObject({ reason: 'version_missing' })
  expect((await readerOf(stored).byIds('reps', 'rep_9')).ids).toEqual([])
})

test.for([
  ['fits into an answer of Elasticsearch', Number.POSITIVE_INFINITY, ['5 record']],
  ['does not: then the sizes are asked for', 1.5 * PAGE_BYTES_MAX, ['5 record', '5 size', '2 record']],
] as const)('large records end the answer before the one without room, if all %s', async ([, bytesMax, reads]) => {
  const text = (seq: number) => recordText(seq, { text: 'x'.repeat(PAGE_BYTES_MAX / 2 - 100) })
  const stored = Object.fromEntries([1, 12, 3, 4].map(seq => [`org_a:payout_${seq}`, text(seq)]))
  const { asked, byIds } = readerOf(stored, bytesMax)
  const ids = ['payout_9', 'payout_1', 'payout_12', 'payout_3', 'payout_4']
  const { bodies: _, ...found } = await byIds('payouts', ...ids)
  expect(found).toEqual({ ids: ['payout_1', 'payout_3'], hasMore: true, left: ['payout_4'], time: 1 })
  expect(asked).toEqual(reads)
  expect(await byIds('payouts', 'payout_4')).toMatchObject({ ids: ['payout_4'], hasMore: false, left: [] })
})
