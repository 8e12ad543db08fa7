import { expect, test } from 'vitest'
import { readDocuments } from '../../../../core/store/documents/documents.ts'
import type { FoundDocument } from '../../../../core/store/elasticsearch/primary-reads.ts'
import { getting } from '../../../support/answering.ts'
import { layoutIn } from '../../../support/layout.ts'

const found = (_id: string, _source: unknown): FoundDocument => ({ _id, found: true, _version: 1, _source })
const missing = (_id: string): FoundDocument => ({ _id, found: false })

test('documents are read from the index of their place, without the length of their body', async () => {
  const asked: unknown[] = []
  const read = readDocuments(
    getting(async docs => {
      asked.push(...docs)
      const body = { versions: [] }
      return [found('org_1:rep_1', { org_id: 'org_1', body_bytes: 15, body }), missing('org_1:rep/2')]
    }),
    layoutIn(place => `test-${place}`),
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

test('a document that a response leaves out is not returned, not even as missing', async () => {
  const read = readDocuments(
    getting(async docs => docs.slice(0, 2).map(({ _id }) => found(_id, { org_id: _id, body_bytes: 2, body: {} }))),
    layoutIn(place => place),
  )
  expect([...(await read(['payouts/a', 'payouts/b', 'payouts/c'])).keys()]).toEqual(['payouts/a', 'payouts/b'])
})
