/** The lines of `follow`, over pages of changes in memory. */
import { expect, test } from 'vitest'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { follow } from '../../../tools/export/follow.ts'
import { type ExportReaders, UNKNOWN_CURSOR } from '../../../tools/export/readers.ts'
import { CommandError } from '../../../tools/failures.ts'
import { generationOf } from '../../support/layout.ts'

const generation = generationOf({ rules: 2 })
const position = { generation, publishedTo: 100, time: 7, takenBack: 0 }

/** A page with one change of a rep. */
const pageOf = (seq: number) => {
  const body = JSON.stringify({ id: `rep_${seq}` })
  const source = `{"org_id":"org_a","first_seq":${seq},"seq":${seq},"hash":"h","ordinal":1,"at":1,"body_bytes":${body.length},"body":${body}}`
  const hit = `{"_index":"p-g1-reps","_id":"org_a:rep_${seq}:${seq}","_score":null,"_source":${source},"sort":[${seq}]}`
  return sliceSearch(
    Buffer.from(
      `{"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"max_score":null,"hits":[${hit}]}}`,
    ),
    [{ name: 'p-g1-reps', kind: 'reps' }],
    'org_a',
  )
}

const given = (pages: number) => {
  let reads = 0
  const readers: ExportReaders = {
    readTotals: async () => ({
      position,
      totals: { last_change_id: 'rep_0.1', last_sequence: 1, totals: [] },
      last: { id: 'rep_0.1', sequence: 1, seq: 0, at: 1 },
    }),
    readList: async () => ({ position, sequences: [reads + 1], hits: pageOf(reads++), hasMore: reads < pages }),
    readStatement: async () => Promise.reject(new Error('not called')),
    countOf: async () => Promise.reject(new Error('not called')),
  }
  return { readers, reads: () => reads }
}
const once = { org: 'org_a', startingAfter: undefined, once: true }

test('the next page is read when the output has taken the last one', async () => {
  const { readers, reads } = given(3)
  const readsAtEnd: number[] = []
  const out = async (): Promise<void> => {
    await new Promise(resolve => setImmediate(resolve))
    readsAtEnd.push(reads())
  }
  const signal = new AbortController().signal
  expect(await follow(once, { ...readers, out, sleep: async () => undefined, signal })).toBe(0)
  expect(readsAtEnd).toEqual([1, 2, 3])
})

test('a cursor that is unknown names the option only if it is the one of the option', async () => {
  const { readers } = given(3)
  const unknown = async (): Promise<never> => Promise.reject(new CommandError(UNKNOWN_CURSOR))
  const steps = { out: () => undefined, sleep: async () => undefined, signal: new AbortController().signal }
  const messages: unknown[] = []
  for (const pages of [0, 1]) {
    let reads = 0
    const readList: ExportReaders['readList'] = (...asked) => (reads++ < pages ? readers.readList(...asked) : unknown())
    const following = follow({ ...once, startingAfter: 'rep_9.1' }, { ...readers, ...steps, readList })
    messages.push(await following.catch((error: Error) => error.message))
  }
  expect(messages).toEqual([UNKNOWN_CURSOR, expect.stringMatching(/^the change of the last line is gone/)])
})

test('a stop is no failure, also during the first read', async () => {
  const stopping = new AbortController()
  const { readers } = given(1)
  const readTotals = async (): Promise<never> => {
    stopping.abort(new CommandError('stopped'))
    throw stopping.signal.reason
  }
  const steps = { ...readers, readTotals, out: () => undefined, sleep: async () => undefined, signal: stopping.signal }
  expect(await follow({ ...once, once: false }, steps)).toBe(0)
})
