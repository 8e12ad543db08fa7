/** The lines of `follow`, over pages of changes in memory. */
import { expect, test } from 'vitest'
import { sliceSearch } from '../../../core/store/read/slice-documents.ts'
import { follow } from '../../../tools/export/follow.ts'
import { type ExportReaders, UNKNOWN_CURSOR } from '../../../tools/export/readers.ts'
import { CommandError, exitCodes, Stopped } from '../../../tools/failures.ts'
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
const steps = (stopping = new AbortController()) => ({
  ...{ out: () => undefined, say: () => undefined, sleep: async () => undefined, signal: stopping.signal },
})

test('the next page is read when the output has taken the last one', async () => {
  const { readers, reads } = given(3)
  const readsAtEnd: number[] = []
  const out = async (): Promise<void> => {
    await new Promise(resolve => setImmediate(resolve))
    readsAtEnd.push(reads())
  }
  expect(await follow(once, { ...steps(), ...readers, out })).toBe(exitCodes.done)
  expect(readsAtEnd).toEqual([1, 2, 3])
})

test('a change that was left out is an error before the next line', async () => {
  const { readers } = given(3)
  const lines: string[] = []
  const out = (line: Buffer) => void lines.push(line.toString())
  const readList: ExportReaders['readList'] = async (...asked) => {
    const page = await readers.readList(...asked)
    return { ...page, sequences: (page.sequences ?? []).map(sequence => (sequence > 2 ? sequence + 1 : sequence)) }
  }
  const following = follow(once, { ...steps(), ...readers, readList, out })
  await expect(following).rejects.toThrow('expected the change with sequence 3, got 4: one was left out')
  expect(lines.map(line => JSON.parse(line).sequence)).toEqual([1, 2])
})

test('a cursor that is unknown names the option only if it is the one of the option', async () => {
  const { readers } = given(3)
  const unknown = async (): Promise<never> => Promise.reject(new CommandError(UNKNOWN_CURSOR))
  const messages: unknown[] = []
  for (const pages of [0, 1]) {
    let reads = 0
    const readList: ExportReaders['readList'] = (...asked) => (reads++ < pages ? readers.readList(...asked) : unknown())
    const following = follow({ ...once, startingAfter: 'rep_9.1' }, { ...steps(), ...readers, readList })
    messages.push(await following.catch((error: Error) => error.message))
  }
  expect(messages).toEqual([UNKNOWN_CURSOR, expect.stringMatching(/^the change of the last line is gone/)])
})

test('a stop is no failure, also during the first read', async () => {
  const stopping = new AbortController()
  const { readers } = given(1)
  const readTotals = async (): Promise<never> => {
    stopping.abort(new Stopped())
    throw stopping.signal.reason
  }
  const following = follow({ ...once, once: false }, { ...steps(stopping), ...readers, readTotals })
  expect(await following).toBe(exitCodes.done)
})

test('with --once, a stop before the last change is not done, and says how to continue', async () => {
  for (const [pages, said] of [
    [0, 'stopped before the first change'],
    [1, 'stopped; --starting-after rep_0.1 continues'],
  ] as const) {
    const stopping = new AbortController()
    const { readers, reads } = given(3)
    const readTotals = async () => {
      if (pages === 0) stopping.abort(new Stopped())
      return readers.readTotals('org_a', undefined)
    }
    const out = async () => {
      if (reads() === pages) stopping.abort(new Stopped())
    }
    const lines: string[] = []
    const say = (line: string) => void lines.push(line)
    expect(await follow(once, { ...steps(stopping), ...readers, readTotals, out, say })).toBe(exitCodes.failed)
    expect([reads(), lines]).toEqual([pages, [said]])
  }
})
