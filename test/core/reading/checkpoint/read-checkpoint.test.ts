/** Walks for checkpoints: one that its request has no time to end, and those that must not be signed. */
import { expect, test } from 'vitest'
import { createReadCheckpoint } from '../../../../core/reading/checkpoint/read-checkpoint.ts'
import type { ReaderParts } from '../../../../core/reading/pages/read-list.ts'
import { createSigningKey, unavailable } from '../../../../core/runtime/index.ts'
import { abortReason } from '../../../../core/runtime/time-limits.ts'
import { digestedFields } from '../../../../schemas/checkpoint.ts'
import { scopeOf } from '../../../support/read-scope.ts'

type Parts = Parameters<typeof createReadCheckpoint>[0]
type Steps = Parameters<typeof createReadCheckpoint>[2]

const generation = { name: 'g1', id: 'g1', partitions: 1, rules: 1, layout: { searchOf: () => ({ index: '' }) } }
const position = { generation, publishedTo: 9, time: 0, takenBack: 0 }

type Given = {
  readonly readPage: () => Promise<unknown>
  readonly totals?: object
  readonly checkNow?: () => Promise<void>
  readonly takenBackAfter?: number
  readonly signal?: AbortSignal
  /** What is published; the test changes it. */
  readonly published?: { publishedTo: number; time: number }
  readonly hasChange?: Steps['hasChange']
}

const read = (given: Given) => readerOf(given)()

const readerOf = ({
  readPage,
  totals,
  checkNow = async () => undefined,
  takenBackAfter = 0,
  signal,
  published,
  hasChange = async () => false,
}: Given) => {
  let isChecked = false
  const present = () => ({ ...position, ...published, takenBack: isChecked ? takenBackAfter : 0 })
  const parts = {
    cursors: { remembered: () => undefined },
    readAt: async () => ({ position: present(), documents: [] }),
    positionAsOf: async (_: unknown, current: unknown) => current,
    projectionTime: async (_: unknown, { time }: { readonly time: number }) => time,
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
    hasChange,
  }
  const readTotals = (
    totals ? async () => ({ position, totals }) : () => Promise.reject(new Error('no totals'))
  ) as never
  const readCheckpoint = createReadCheckpoint(parts, readTotals, steps)
  return () => readCheckpoint(scopeOf('org_1', signal), () => undefined)
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

/** A payout as a search finds it: its id, the fields before its body, its body. */
const changeHit = (seq: number) => {
  const values = Object.fromEntries(digestedFields.payouts.map(field => [field, 'x']))
  const body = JSON.stringify({ ...values, destination: { type: 'x' }, line_items: [] })
  const parts = [`payout_${seq}"`, `{"seq":${seq},"at":1`, body] as const
  const bytes = Buffer.from(parts.join(''))
  const [start, headerEnd] = [parts[0].length, parts[0].length + parts[1].length]
  const place = { idStart: 0, start, headerEnd, bodyStart: headerEnd, bodyEnd: bytes.length, end: bytes.length }
  return { kind: 'payouts', bytes, ...place, sortValue: seq }
}

test('a page that lacked a change is read again after the difference to the totals was found', async () => {
  const changes = [1, 2, 3].map(changeHit)
  const asked: number[] = []
  const readChanges = async (_: unknown, { after }: { readonly after: number }) => {
    asked.push(after)
    const isOld = asked.length === 1
    return { hits: changes.filter(({ sortValue }) => sortValue > after && !(isOld && sortValue === 2)), hasMore: false }
  }
  const totals = { last_change_id: 'payout_3', last_sequence: 3, totals: [] }
  const readAgain = readerOf({ readPage: readChanges as Given['readPage'], totals })
  await expect(readAgain()).rejects.toMatchObject({ reason: 'elasticsearch_malformed_search' })
  const { note } = await readAgain()
  expect(note).toContain('sequence 3\nchange payout_3\n')
  expect(asked).toEqual([-1, -1])
})

test('a note is answered again until a change follows it: then one with the change is signed, within the minute, too', async () => {
  const published = { publishedTo: 3, time: 100 }
  const totals = { last_change_id: 'payout_2', last_sequence: 2, totals: [] }
  const seqs = () => [1, 2, 3].filter(seq => seq < published.publishedTo)
  const after = (from: number) => seqs().filter(seq => seq > from)
  const readChanges = async (_: unknown, { after: from }: { readonly after: number }) => ({
    hits: after(from).map(changeHit),
    hasMore: false,
  })
  const readAgain = readerOf({
    readPage: readChanges as Given['readPage'],
    totals,
    published,
    hasChange: async (_scope, _position, from) => after(from).length > 0,
  })
  const first = await readAgain()
  Object.assign(published, { time: 200 })
  expect(await readAgain()).toMatchObject({ note: first.note, position: { time: 200 } })
  Object.assign(published, { publishedTo: 4, time: 300 })
  Object.assign(totals, { last_change_id: 'payout_3', last_sequence: 3 })
  const second = await readAgain()
  expect([first.note, second.note]).toEqual([
    expect.stringContaining('sequence 2\nchange payout_2\n'),
    expect.stringContaining('sequence 3\nchange payout_3\n'),
  ])
  expect(second.position.time).toBe(300)
})
