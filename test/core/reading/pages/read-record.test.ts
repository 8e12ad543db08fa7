import { expect, test } from 'vitest'
import { createCursors } from '../../../../core/reading/pages/cursors.ts'
import { createReadRecords } from '../../../../core/reading/pages/read-record.ts'
import type { ReadScope } from '../../../../core/store/read/scope.ts'
import { sliceMultiGet } from '../../../../core/store/read/slice-documents.ts'
import { multiGetAnswer, recordText } from '../../../api/answers.ts'
import { documentText } from '../../../support/bodies.ts'
import { generationOf } from '../../../support/layout.ts'
import { scopeOf } from '../../../support/read-scope.ts'

const generation = generationOf()
const position = { generation, publishedTo: 10, time: 0, takenBack: 0 }

/** Reads a rep whose head has these versions. Versions 3 and 8 are stored. */
const readRep = (versions: unknown) => {
  const stored = {
    'org_a:rep_1': documentText({ org_id: 'org_a' }, JSON.stringify({ versions })),
    'org_a:rep_1:3': recordText(3, { name: 'first' }),
    'org_a:rep_1:8': recordText(8, { name: 'second' }),
  }
  const parts = {
    prefix: 'p',
    readAt: async (_: ReadScope, documents: Parameters<Parameters<typeof createReadRecords>[0]['readAt']>[1]) => {
      const names = documents(generation)
      return { position, documents: sliceMultiGet(multiGetAnswer(names, stored), names) }
    },
    cursors: createCursors(),
    positionAsOf: async () => position,
  }
  const records = createReadRecords(parts, async names => multiGetAnswer(names, stored))
  return records.version(scopeOf('org_a'), 'reps', { id: 'rep_1', asOf: undefined })
}

test('a rep is read in its last version before the position', async () => {
  for (const [next, body] of [
    [8, '{"name":"second"}'],
    [10, '{"name":"first"}'],
  ] as const) {
    const { slice } = await readRep([
      { seq: 3, hash: 'a' },
      { seq: next, hash: 'b' },
    ])
    expect(slice.bytes.toString('utf8', slice.bodyStart, slice.bodyEnd)).toBe(body)
  }
})

test.each([[undefined], ['x'], [[{}]], [[{ seq: '3' }]]])(
  'a rep whose versions are %j is unavailable, not missing: nothing is known about it',
  async versions => {
    await expect(readRep(versions)).rejects.toMatchObject({
      code: 'unavailable',
      reason: 'elasticsearch_malformed_record',
    })
  },
)
