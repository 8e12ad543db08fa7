import fc from 'fast-check'
import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { murmur2, partitionOf } from '../../schemas/partition.ts'
import { anyText } from './any-text.ts'

/** The default partitioner of kafkajs. */
const publisher = kafkajs.Partitioners.DefaultPartitioner()
const described = Array.from({ length: 1_000 }, (_, partitionId) => ({
  partitionErrorCode: 0,
  partitionId,
  leader: 1,
  replicas: [1],
  isr: [1],
}))
const publishedTo = (key: string, partitions: number): number =>
  publisher({
    topic: 'commission.events',
    partitionMetadata: described.slice(0, partitions),
    message: { key, value: '' },
  })

describe('an organization is in the partition that a publisher sends it to', () => {
  const idText = fc.string({ unit: fc.constantFrom(...'0189AZaz'), minLength: 1, maxLength: 64 })

  test('for ids of every length and any number of partitions', () => {
    fc.assert(
      fc.property(idText, fc.integer({ min: 1, max: 1_000 }), (text, partitions) => {
        expect(partitionOf(`org_${text}`, partitions)).toBe(publishedTo(`org_${text}`, partitions))
      }),
      { numRuns: 2_000 },
    )
  })

  test('for any text', () => {
    fc.assert(
      fc.property(anyText(40), fc.integer({ min: 1, max: 100 }), (text, partitions) => {
        if (text === '') return // the client takes an empty key for none
        expect(partitionOf(text, partitions)).toBe(publishedTo(text, partitions))
      }),
      { numRuns: 1_000 },
    )
  })
})

/** From UtilsTest.testMurmur2 of Apache Kafka's Java client. */
test.each([
  ['21', -973_932_308],
  ['foobar', -790_332_482],
  ['a-little-bit-long-string', -985_981_536],
  ['a-little-bit-longer-string', -1_486_304_829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58_897_971],
])('the hash of %s is that of the Java client', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash)
})

test('the hash depends only on the given bytes, wherever they are in memory', () => {
  const within = Buffer.from('xxxfoobaryyy').subarray(3, 9)
  expect(murmur2(within)).toBe(murmur2(Buffer.from('foobar')))
  expect(murmur2(new Uint8Array([...within]))).toBe(murmur2(within))
})
