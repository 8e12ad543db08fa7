/** Batches that this project encodes, read as those of a log. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { recordBatchesIn } from '../../../../core/log/batch/record-batch.ts'
import { encodeRecordBatch } from '../../../../core/log/records/encode-batch.ts'
import { seedOfRun } from '../../../support/random.ts'
import { recordsIn } from '../../../support/record-batches.ts'
import { anyEntry } from '../../../tools/archive/any-entries.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const producer = { producerId: '9007199254740993', producerEpoch: 3, firstSequence: 7, transactional: true }

test('every key, value, header and time of a batch is read as it was given', async () => {
  const near = fc.array(fc.tuple(anyEntry, fc.nat(2 ** 31 - 1)), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(near, async list => {
      const records = list.map(([entry, timestamp]) => ({ ...entry, timestamp }))
      const bytes = encodeRecordBatch(records, producer)
      const [batch] = recordBatchesIn(bytes)
      expect(batch).toMatchObject({ producerId: producer.producerId, isIntact: true, isTransactional: true })
      const got = await recordsIn(bytes)
      expect(got.map(({ timestamp, key, value, headers }) => [timestamp, key, value, headers.bytes])).toEqual(
        records.map(({ timestamp, key, value, headers }) => [timestamp, key, value, headers.bytes]),
      )
    }),
    { seed, numRuns: 200 },
  )
})

test('a batch over a mebibyte is compressed, and read as it was given', async () => {
  const [entry] = fc.sample(anyEntry, { seed, numRuns: 1 })
  if (entry === undefined) throw new Error('no entry')
  const value = Buffer.alloc(3 * 1024 * 1024, 'x')
  const bytes = encodeRecordBatch([{ ...entry, value }], producer)
  expect(bytes.length).toBeLessThan(100_000)
  expect((await recordsIn(bytes))[0]?.value).toEqual(value)
})

test('a batch whose bytes no compression makes smaller is as large as before: its topic accepted that size', async () => {
  const [entry] = fc.sample(anyEntry, { seed, numRuns: 1 })
  if (entry === undefined) throw new Error('no entry')
  const value = createHash('shake256', { outputLength: 2 * 1024 * 1024 }).digest()
  const bytes = encodeRecordBatch([{ ...entry, value }], producer)
  expect(recordBatchesIn(bytes)[0]).toMatchObject({ codec: 0 })
  expect((await recordsIn(bytes))[0]?.value).toEqual(value)
})

test('a time that is too large for a number is written as it was read, and the highest time of Kafka, too', async () => {
  const [entry] = fc.sample(anyEntry, { seed, numRuns: 1 })
  if (entry === undefined) throw new Error('no entry')
  const times = ['1795690000000000123', '1795690000000999999', `${2n ** 63n - 1025n}`, `${2n ** 63n - 1n}`].map(Number)
  for (const pair of [times.slice(0, 2), times.slice(2), times.slice(2).reverse()]) {
    const records = pair.map(timestamp => ({ ...entry, timestamp }))
    const got = await recordsIn(encodeRecordBatch(records, producer))
    expect(got.map(({ timestamp }) => timestamp)).toEqual(pair)
  }
})
