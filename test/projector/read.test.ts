import { expect, test } from 'vitest'
import type { Found } from '../../projector/elasticsearch.ts'
import { MGET_IDS } from '../../projector/limits.ts'
import { readDocuments } from '../../projector/read.ts'
import type { Key } from '../../projector/state.ts'

const found = (_id: string, _source: unknown): Found => ({ _id, found: true, _version: 1, _source })
const missing = (_id: string): Found => ({ _id, found: false, _version: -1, _source: undefined })

test('documents are read from the index of their place, as drafts: without the length of their body', async () => {
  const asked: unknown[] = []
  const read = readDocuments(
    async docs => {
      asked.push(...docs)
      const body = { versions: [] }
      return [found('org_1:rep_1', { org_id: 'org_1', body_bytes: 15, body }), missing('org_1:rep/2')]
    },
    place => `test-${place}`,
  )
  const drafts = await read(['reps/org_1:rep_1', 'chains/org_1:rep/2'])
  expect(asked).toEqual([
    { _index: 'test-reps', _id: 'org_1:rep_1' },
    { _index: 'test-chains', _id: 'org_1:rep/2' },
  ])
  expect([...drafts]).toEqual([
    ['reps/org_1:rep_1', { org_id: 'org_1', body: { versions: [] } }],
    ['chains/org_1:rep/2', null],
  ])
})

test('many documents are read in several requests, and each is found again by its key', async () => {
  const sizes: number[] = []
  const read = readDocuments(
    async docs => {
      sizes.push(docs.length)
      return docs.map(({ _id }) => found(_id, { org_id: _id, body_bytes: 2, body: {} }))
    },
    place => place,
  )
  const keys = Array.from({ length: MGET_IDS * 2 + 1 }, (_, at): Key => `payouts/${at}`)
  const drafts = await read(keys)
  expect(sizes).toEqual([MGET_IDS, MGET_IDS, 1])
  expect([...drafts.keys()]).toEqual(keys)
  for (const [key, draft] of drafts) expect(draft).toEqual({ org_id: key.slice(8), body: {} })
})

test('nothing is asked for nothing', async () => {
  const read = readDocuments(
    async () => expect.unreachable('asked'),
    place => place,
  )
  expect((await read([])).size).toBe(0)
})
