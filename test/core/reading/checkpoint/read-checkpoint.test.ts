/** Walks for checkpoints: one that its request has no time to end, and those that must not be signed. */
import { expect, test } from 'vitest'
import { createReadCheckpoint } from '../../../../core/reading/checkpoint/read-checkpoint.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createSigningKey, unavailable } from '../../../../core/runtime/index.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import { scopeOf } from '../../../support/read-scope.ts'

type Parts = Parameters<typeof createReadCheckpoint>[0]

const generation = { name: 'g1', id: 'g1', partitions: 1, rules: 1, layout: { searchOf: () => ({ index: '' }) } }
const position = { generation, publishedTo: 9, time: 0, takenBack: 0 }

type Given = {
  readonly readPage: () => Promise<unknown>
  readonly totals?: object
  readonly checkNow?: () => Promise<void>
  readonly takenBackAfter?: number
  readonly signal?: AbortSignal
}

const read = ({ readPage, totals, checkNow = async () => undefined, takenBackAfter = 0, signal }: Given) => {
  let isChecked = false
  const parts = {
    cursors: { remembered: () => undefined },
    readAt: async () => ({ position: { ...position, takenBack: isChecked ? takenBackAfter : 0 }, documents: [] }),
    positionAsOf: async () => position,
    projectionTime: async () => 0,
    readPage,
  } as unknown as Parts satisfies Partial<ReaderParts>
  const steps = {
    key: createSigningKey('example.com'),
    now: Date.now,
    later: () => () => undefined,
    checkNow: () => {
      isChecked = true
      return checkNow()
    },
  }
  const readTotals = (
    totals ? async () => ({ position, totals }) : () => Promise.reject(new Error('no totals'))
  ) as never
  return createReadCheckpoint(parts, readTotals, steps)(scopeOf('org_1', signal), () => undefined)
}

/** Pages of changes without an end: the time is up while the given one is read. */
const readUntil = (page: number): Promise<unknown> => {
  const ending = new AbortController()
  let pages = 0
  const readPage = async () => {
    if (++pages < page) return { hits: [], hasMore: true }
    ending.abort(abortReason('time_is_up'))
    throw unavailable('elasticsearch_connection')
  }
  return read({ readPage, signal: ending.signal })
}

test('a request that read some pages and then has no time says that the next one reads on', async () => {
  await expect(readUntil(3)).rejects.toMatchObject({ code: 'unavailable', reason: 'checkpoint_reads_on' })
  await expect(readUntil(1)).rejects.toMatchObject({ code: 'unavailable', reason: 'elasticsearch_connection' })
})

/** A walk that finds no change. */
const readPage = async () => ({ hits: [], hasMore: false })
const noChange = { last_change_id: null, last_sequence: 0, totals: [] }

test('a walk that finds no change is signed if the totals have none, too', async () => {
  const { note } = await read({ readPage, totals: noChange })
  expect(note).toContain('sequence 0\nchange none\n')
  const totals = { ...noChange, last_change_id: 'payout_1', last_sequence: 1_000 }
  await expect(read({ readPage, totals })).rejects.toMatchObject({ reason: 'checkpoint_reads_on' })
})

test('nothing is signed if a shard is not the recorded one after all was read', async () => {
  const lost = read({ readPage, totals: noChange, checkNow: async () => Promise.reject(unavailable('shard_lost')) })
  await expect(lost).rejects.toMatchObject({ reason: 'shard_lost' })
})

test('nothing is signed if a time was taken back before the check, as by an adoption of other shards', async () => {
  const adopted = read({ readPage, totals: noChange, takenBackAfter: 1 })
  await expect(adopted).rejects.toMatchObject({ reason: 'live_generation_changes' })
})
