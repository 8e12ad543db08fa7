import { describe, expect, test } from 'vitest'
import { bytesOfAll, Queue, splitAtOffset } from '../../../../core/ledger/decide/decide-batch.ts'
import type { Batch } from '../../../../core/ledger/event/decode.ts'
import { BATCH_BYTES, BATCH_RECORDS } from '../../../../core/ledger/limits.ts'
import { encodeHeaders, NO_HEADERS } from '../../../../core/log/kafka/encoded-headers.ts'

const batch = (from: number, end: number, bytes = 10, offsets = count(from, end)): Batch => ({
  from,
  end,
  records: offsets.map(offset => ({
    offset,
    timestamp: 0,
    key: null,
    value: Buffer.alloc(bytes),
    headers: NO_HEADERS,
  })),
})
const count = (from: number, end: number) => Array.from({ length: end - from }, (_, at) => from + at)

const queueOf = (...batches: Batch[]): Queue => {
  const queue = new Queue()
  for (const one of batches) queue.add(one)
  return queue
}
const takeAll = (queue: Queue): { from: number; end: number; offsets: number[] }[] => {
  const taken = []
  for (let next = queue.next(); next; next = queue.next()) {
    taken.push({ from: next.from, end: next.end, offsets: next.records.map(({ offset }) => offset) })
  }
  return taken
}

describe('batches are decided in order', () => {
  test('small ones together, up to the end of the last', () => {
    const queue = queueOf(batch(3, 5), batch(5, 6, 10, []), batch(6, 9))
    expect(takeAll(queue)).toEqual([{ from: 3, end: 9, offsets: [3, 4, 6, 7, 8] }])
    expect(queue.isEmpty).toBe(true)
  })

  test('at most BATCH_RECORDS records at once, then the rest, each exactly once', () => {
    const taken = takeAll(queueOf(batch(0, BATCH_RECORDS + 1), batch(BATCH_RECORDS + 1, 3 * BATCH_RECORDS)))
    expect(taken.map(({ offsets }) => offsets.length)).toEqual([BATCH_RECORDS, BATCH_RECORDS, BATCH_RECORDS])
    expect(taken.flatMap(({ offsets }) => offsets)).toEqual(count(0, 3 * BATCH_RECORDS))
    expect(taken.map(({ from }) => from)).toEqual([0, ...taken.slice(0, -1).map(({ end }) => end)])
  })

  test('at most BATCH_BYTES at once, but at least one record', () => {
    const taken = takeAll(queueOf(batch(0, 3, BATCH_BYTES / 2), batch(3, 5, 2 * BATCH_BYTES)))
    expect(taken.map(({ offsets }) => offsets)).toEqual([[0], [1], [2], [3], [4]])
  })

  test('offsets without a record belong to the record before them', () => {
    const [first, rest] = splitAtOffset(batch(0, 20, 10, [2, 4, 11]), 11)
    expect(first).toMatchObject({ from: 0, end: 11 })
    expect(rest).toMatchObject({ from: 11, end: 20 })
    expect(rest.records.map(({ offset }) => offset)).toEqual([11])
  })

  test('a batch that is put back comes next', () => {
    const queue = queueOf(batch(0, 2), batch(2, 4))
    const [, rest] = splitAtOffset(batch(0, 2), 1)
    queue.next()
    queue.putBack(rest)
    expect(takeAll(queue)).toEqual([{ from: 1, end: 2, offsets: [1] }])
  })
})

test('a batch that is split at its end stays whole', () => {
  const [first, rest] = splitAtOffset(batch(0, 4), 4)
  expect(first).toEqual(batch(0, 4))
  expect(rest).toEqual({ from: 4, end: 4, records: [] })
})

test('the bytes are those of key, value and headers, plus an overhead per record', () => {
  const headers = encodeHeaders([['name', Buffer.from('value')]])
  expect(headers.bytes).toEqual(Buffer.from([2, 8, ...Buffer.from('name'), 10, ...Buffer.from('value')]))
  const record = { offset: 0, timestamp: 0, key: Buffer.from('key'), value: Buffer.alloc(7), headers }
  expect(bytesOfAll([record, record])).toBe(2 * (3 + 7 + 12 + 100))
})
