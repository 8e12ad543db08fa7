/** Batches that decompress to much, or are not as their header states: read in slices, or refused with a reason. */
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { assess } from '../../../../core/ledger/decide/project.ts'
import { decode, undecodableBatchOf } from '../../../../core/ledger/event/decode.ts'
import { builtInRules } from '../../../../core/ledger/rules/rules.ts'
import { BatchReader, SLICE_BYTES, SLICE_RECORDS } from '../../../../core/log/batch/read-batch.ts'
import { type RecordBatch, recordBatchesIn } from '../../../../core/log/batch/record-batch.ts'
import { BATCH_BYTES_MAX, BATCH_RECORD_BYTES_MAX } from '../../../../schemas/limits.ts'
import { record } from '../../../projector/records.ts'
import { type BatchOptions, batchBytes, payloadOf, varint } from '../../../support/record-batches.ts'

/** A record of which only the size matters. */
const zeros = (index: number, length: number): Buffer => {
  const value = Buffer.alloc(length)
  const body = Buffer.concat([Buffer.from([0, 0]), varint(index), varint(-1), varint(length), value, Buffer.from([0])])
  return Buffer.concat([varint(body.length), body])
}
const batchOf = (options: Omit<BatchOptions, 'first'>): RecordBatch => {
  const [batch] = recordBatchesIn(batchBytes({ first: 10, ...options }))
  if (batch === undefined) throw new Error('no batch')
  return batch
}
const reasonOf = async (options: Omit<BatchOptions, 'first'>) =>
  (await new BatchReader(batchOf(options)).read(10)).undecodable?.reason

test('records come in slices of a bounded size, each once, from any offset on', async () => {
  const records = Array.from({ length: 7 }, (_, index) => zeros(index, Math.ceil(SLICE_BYTES / 3) + 1))
  const reader = new BatchReader(batchOf({ codec: 1, count: 7, payload: gzipSync(Buffer.concat(records)) }))
  const offsets: number[] = []
  for (let next = 10; next < 17; ) {
    const part = await reader.read(next)
    expect(part.records.length).toBeLessThanOrEqual(2)
    offsets.push(...part.records.map(({ offset }) => offset))
    next = part.end
  }
  expect(offsets).toEqual([10, 11, 12, 13, 14, 15, 16])
  expect((await reader.read(12)).records.map(({ offset }) => offset)).toEqual([12, 13])
})

const MiB = 1024 * 1024
const allOf = async (reader: BatchReader, count: number): Promise<void> => {
  for (let next = 10; next < 10 + count; ) next = (await reader.read(next)).end
}

test.each([
  ['gzip', 1, gzipSync],
  ['zstd', 4, zstdCompressSync],
] as const)(
  'a %s batch of many large records is decompressed twice, however many slices it has',
  async (_, codec, compress) => {
    const bytes = Buffer.concat(Array.from({ length: 20 }, (_, index) => zeros(index, 10 * MiB)))
    const [told, batch] = [{ times: 0 }, batchOf({ codec, count: 20, payload: compress(bytes) })]
    const reader = new BatchReader(batch, () => told.times++)
    await reader.read(10)
    expect(told.times).toBeGreaterThan(100)
    await allOf(reader, 20)
    expect(told.times).toBeLessThan(2.2 * 200)
    // It goes back, as a consumer does that reads its last record again, and after it was closed.
    expect((await reader.read(15)).records.map(({ offset }) => offset)).toEqual([15])
    reader.close()
    expect((await reader.read(16)).records.map(({ offset }) => offset)).toEqual([16])
  },
)

test('progress is told while a large batch is decompressed, but not again for the same slice', async () => {
  const payload = gzipSync(Buffer.concat(Array.from({ length: 3 }, (_, index) => zeros(index, 6 * MiB))))
  let times = 0
  const reader = new BatchReader(batchOf({ codec: 1, count: 3, payload }), () => times++)
  await reader.read(10)
  expect(times).toBeGreaterThan(10)
  times = 0
  for (let reads = 0; reads < 3; reads++) await reader.read(10)
  expect(times).toBe(0)
})

test('a codec with a large window is closed between two slices: no partition waits for one that is paused', async () => {
  const records = Array.from({ length: 12 }, (_, index) => zeros(index, 8 * MiB))
  const params = { [constants.ZSTD_c_windowLog]: 27 }
  const batch = batchOf({ codec: 4, count: 12, payload: zstdCompressSync(Buffer.concat(records), { params }) })
  const [one, another] = [new BatchReader(batch), new BatchReader(batch)]
  await one.read(10)
  await one.read(11)
  await another.read(10)
  await another.read(11)
  expect((await one.read(12)).end).toBe(13)
  // While one waits for the memory of the other, it does not look stuck.
  let waited = 0
  const reading = new BatchReader(batch).read(10)
  const waiting = new BatchReader(batch, () => waited++).read(10)
  await reading
  expect(waited).toBeGreaterThan(0)
  await waiting
})

test('a batch with other times, another compression, another count or other bytes is another batch', () => {
  const batch = batchOf({ count: 1, payload: zeros(0, 1) })
  const reader = new BatchReader(batch)
  expect(reader.isOf({ ...batch, time: { ...batch.time } })).toBe(true)
  for (const other of [
    { time: { ...batch.time, base: batch.time.base + 1n } },
    { time: { ...batch.time, max: batch.time.max + 1n } },
    { time: { ...batch.time, appended: !batch.time.appended } },
    { codec: 1 },
    { count: 2 },
    { payload: zeros(0, 2) },
  ]) {
    expect(reader.isOf({ ...batch, ...other })).toBe(false)
  }
})

test('a batch of very many small records comes in slices, too', async () => {
  const count = 2 * SLICE_RECORDS + 3
  const payload = Buffer.concat(Array.from({ length: count }, (_, index) => zeros(index, 1)))
  const reader = new BatchReader(batchOf({ count, payload }))
  const ends: number[] = []
  for (let next = 10; next < 10 + count; next = ends.at(-1) ?? 0) ends.push((await reader.read(next)).end)
  expect(ends).toEqual([10 + SLICE_RECORDS, 10 + 2 * SLICE_RECORDS, 10 + count])
})

test('a batch above the bounds is refused, and memory does not grow with it', async () => {
  const many = gzipSync(Buffer.alloc(BATCH_BYTES_MAX + 1))
  // Zeros are no records: the reason of a damaged batch is found first, and the size does not matter then.
  expect(await reasonOf({ codec: 1, count: 2, payload: many })).toBe('records_malformed')
  const whole = Buffer.concat(Array.from({ length: 26 }, (_, index) => zeros(index, 20 * 1024 * 1024)))
  expect(await reasonOf({ codec: 1, count: 26, payload: gzipSync(whole, { level: 1 }) })).toBe('too_large')
  const large = zeros(0, BATCH_RECORD_BYTES_MAX)
  expect(await reasonOf({ codec: 1, count: 1, payload: gzipSync(large) })).toBe('record_too_large')
})

const [first, second] = [record({ key: 'a', value: 'b' }), record({ key: 'c', value: 'd', offset: 1 })]
const payload = payloadOf([first, second])
const aRecord = payloadOf([first])
const parts: Readonly<Record<string, readonly [expected: string | undefined, Omit<BatchOptions, 'first'>]>> = {
  'as it should be': [undefined, { count: 2, payload }],
  'more records than it states': ['count_wrong', { count: 1, payload }],
  'fewer records than it states': ['count_wrong', { count: 3, payload }],
  'a negative number of records': ['count_wrong', { count: -1, distance: 1, payload }],
  'bytes behind its records': ['count_wrong', { count: 2, payload: Buffer.concat([payload, Buffer.from('x')]) }],
  'a record that is cut off': ['count_wrong', { count: 2, payload: payload.subarray(0, -1) }],
  'a record with a negative size': ['records_malformed', { count: 1, payload: varint(-5) }],
  'a record without content': ['records_malformed', { count: 1, payload: varint(0) }],
  'a number that is too long': ['records_malformed', { count: 1, payload: Buffer.alloc(9, 255) }],
  'an offset twice': ['records_malformed', { count: 2, payload: Buffer.concat([aRecord, aRecord]) }],
  'bytes that are not compressed': ['not_decompressed', { count: 2, codec: 4, payload }],
  'an unknown compression': ['codec_unknown', { count: 2, codec: 6, payload }],
}

test.each(Object.entries(parts))('a batch with %s', async (_, [expected, options]) => {
  expect(await reasonOf(options)).toBe(expected)
})

test('the records that stand for a batch are parked as such, whoever has restored them', async () => {
  const reader = new BatchReader(batchOf({ count: 2, codec: 4, payload, max: 17 }))
  const part = await reader.read(10)
  expect(part.end).toBe(12)
  expect((await reader.read(11)).records).toEqual(part.records.slice(1))
  expect(part.records.map(({ value, timestamp }) => [value, timestamp])).toEqual([
    [payload, 17],
    [null, 17],
  ])
  const source = { stream: 'events', partition: 0, partitions: 1 } as const
  for (const one of part.records) {
    expect(undecodableBatchOf(one)).toEqual({ first: 10, last: 11, codec: 4, reason: 'not_decompressed' })
    expect(assess(one, { decode, source, rules: builtInRules }).verdict).toBe('batch_undecodable')
  }
  const [elsewhere] = part.records.map(one => ({ ...one, offset: 12 }))
  expect(elsewhere && undecodableBatchOf(elsewhere)).toBeUndefined()
})
