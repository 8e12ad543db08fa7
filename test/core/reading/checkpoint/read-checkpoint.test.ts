/** A walk for a checkpoint that its request has no time to end. */
import { expect, test } from 'vitest'
import { createReadCheckpoint } from '../../../../core/reading/checkpoint/read-checkpoint.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createSigningKey, unavailable } from '../../../../core/runtime/index.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import { scopeOf } from '../../../support/read-scope.ts'

type Parts = Parameters<typeof createReadCheckpoint>[0]

/** Pages of changes without an end: the time is up while the given one is read. */
const readUntil = (page: number): Promise<unknown> => {
  const ending = new AbortController()
  let pages = 0
  const generation = { name: 'g1', id: 'g1', partitions: 1, rules: 1, layout: { searchOf: () => ({ index: '' }) } }
  const position = { generation, publishedTo: 9, time: 0, takenBack: 0 }
  const parts = {
    cursors: { lookupOf: () => ({ documents: [], sortValues: () => [] }) },
    readAt: async () => ({ position, documents: [] }),
    positionAsOf: async () => position,
    readPage: async () => {
      if (++pages < page) return { hits: [], hasMore: true }
      ending.abort(abortReason('time_is_up'))
      throw unavailable('elasticsearch_connection')
    },
  } as unknown as Parts satisfies Partial<ReaderParts>
  const steps = { key: createSigningKey('example.com'), now: Date.now, later: () => () => undefined }
  const totals = () => Promise.reject(new Error('there is nothing to add up'))
  return createReadCheckpoint(parts, totals, steps)(scopeOf('org_1', ending.signal), () => undefined)
}

test('a request that read some pages and then has no time says that the next one reads on', async () => {
  await expect(readUntil(3)).rejects.toMatchObject({ code: 'unavailable', reason: 'checkpoint_reads_on' })
  await expect(readUntil(1)).rejects.toMatchObject({ code: 'unavailable', reason: 'elasticsearch_connection' })
})
