/** All forms of compressed bytes: those that the Java client reads are read, the others are refused with a reason. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { decompress, memoryFor } from '../../../../core/log/batch/decompress.ts'
import { BatchReader } from '../../../../core/log/batch/read-batch.ts'
import { recordBatchesIn } from '../../../../core/log/batch/record-batch.ts'
import { record } from '../../../projector/records.ts'
import { allOf } from '../../../support/codecs.ts'
import { read, refused } from '../../../support/compressed.ts'
import { createRandom, seedOfRun } from '../../../support/random.ts'
import { batchBytes, batchOfRecords, payloadOf, recordsIn } from '../../../support/record-batches.ts'

const seed = seedOfRun()
console.log(`seed ${seed}`)

const payload = payloadOf(
  ['a', 'b'].map((key, at) => record({ key, value: 'Ärger und Not '.repeat(20 + 400 * at), timestamp: 5 + at })),
)

test.each(Object.entries(read))('%s is read', async (_, { codec, compress }) => {
  const bytes = compress(payload)
  expect((await allOf(decompress(codec, bytes))).equals(payload)).toBe(true)
  expect(memoryFor(codec, bytes)).toBeGreaterThanOrEqual(0)
})

test.each(Object.entries(refused))('%s is refused', async (_, { codec, compress }) => {
  const [batch] = recordBatchesIn(batchBytes({ first: 3, count: 2, codec, payload: compress(payload) }))
  const { records = [], undecodable } = (batch && (await new BatchReader(batch).read(3))) ?? {}
  expect(undecodable).toMatchObject({ first: 3, last: 4, codec })
  expect(records.map(({ offset }) => offset)).toEqual([3, 4])
})

test.each(Object.entries(read))(
  '%s is read in whole, whatever the size of its records',
  async (_, { codec, compress }) => {
    const random = createRandom(seed)
    for (let run = 0; run < 5; run++) {
      const records = Array.from({ length: 2 + random.below(20) }, (_, index) =>
        record({ key: 'a', value: 'x'.repeat(random.below(random.pick([20, 400, 3_000]))), timestamp: 5 + index }),
      )
      const bytes = batchOfRecords(0, records, { codec, payload: compress(payloadOf(records)) })
      const got = await recordsIn(bytes)
      expect(got.map(({ value }) => value?.length)).toEqual(records.map(({ value }) => value?.length))
    }
  },
)

test('fifty thousand gzip members without content take no minute, and the members around them are read', async () => {
  const empty = gzipSync(Buffer.alloc(0))
  const large = Buffer.alloc(100_000, 'x')
  const members = [gzipSync('a'), ...Array.from({ length: 50_000 }, () => empty), gzipSync(large), gzipSync('b')]
  const began = performance.now()
  expect((await allOf(decompress(1, Buffer.concat(members)))).toString()).toBe(`a${large}b`)
  expect(performance.now() - began).toBeLessThan(60_000)
})

test('LZ4 blocks of one byte that refer to those before them do not copy these each time', async () => {
  const header = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x40, 0x70, 0xdf])
  const stored = Array.from({ length: 100_000 }, (_, at) => Buffer.from([1, 0, 0, 0x80, 97 + (at % 26)]))
  // The least time of the thread, because the machine may be busy. With copies it is several times as long.
  const times: number[] = []
  for (let run = 0; run < 3; run++) {
    const began = process.threadCpuUsage()
    const read = await allOf(decompress(3, Buffer.concat([header, ...stored, Buffer.alloc(4)])))
    expect(read.toString()).toBe('abcdefghijklmnopqrstuvwxyz'.repeat(3_847).slice(0, 100_000))
    const { user, system } = process.threadCpuUsage(began)
    times.push(user + system)
  }
  expect(Math.min(...times)).toBeLessThan(1_500_000)
})

/** A block that repeats eight bytes from `distance` before it, and then an x. */
const lz4Repeat = (distance: number): Buffer => Buffer.from([5, 0, 0, 0, 4, distance & 0xff, distance >> 8, 0x10, 120])

test.each([
  ['eight bytes', 8],
  ['the whole window', 65_535],
])('LZ4 blocks that refer to %s before them are read, also where memory begins anew', async (_, distance) => {
  const random = createRandom(seed)
  const header = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x40, 0x70, 0xdf])
  const blocks: Buffer[] = []
  const whole: Buffer[] = []
  for (let block = 0; block < 40; block++) {
    const stored = Buffer.from(Array.from({ length: 65_535 }, () => random.below(256)))
    blocks.push(Buffer.from([0xff, 0xff, 0, 0x80]), stored, lz4Repeat(distance))
    whole.push(stored, stored.subarray(stored.length - distance).subarray(0, 8), Buffer.from('x'))
  }
  const read = await allOf(decompress(3, Buffer.concat([header, ...blocks, Buffer.alloc(4)])))
  expect(read.equals(Buffer.concat(whole))).toBe(true)
})
