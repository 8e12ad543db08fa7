import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import type { LogCluster } from '../../../core/log/index.ts'
import { openTransactionsOf, textOfOpen } from '../../../tools/archive/open-transactions.ts'

/** @param written ends with the records of open transactions; @param ends those without */
const openIn = (written: readonly number[], ends: readonly number[], onAsked: () => void = () => undefined) => {
  const cluster = {
    writtenEnds: async (partitions: readonly number[]) => {
      onAsked()
      return new Map(partitions.flatMap(partition => (partition in written ? [[partition, written[partition]]] : [])))
    },
  } as unknown as LogCluster
  const offsets = () => ends.map((end, partition) => ({ partition, offset: `${end}`, low: '0', high: `${end}` }))
  const admin = { fetchTopicOffsets: async () => offsets().toReversed() } as unknown as Admin
  return openTransactionsOf(cluster, admin, 'old', ends.length)()
}

test('a partition has open transactions if it has records that cannot be read yet, or if Kafka does not name its end', async () => {
  expect(await openIn([5, 6, 7], [5, 6, 7])).toEqual([])
  expect(await openIn([5, 9, 7], [5, 6, 7])).toEqual([1])
  expect(await openIn([5], [5, 0, 7])).toEqual([1, 2])
})

test('a transaction that ends between both answers is not open: its records can be read', async () => {
  const ends = [5]
  expect(await openIn([6], ends, () => void ends.splice(0, 1, 8))).toEqual([])
})

test('a message names the partitions', () => {
  expect(textOfOpen('old', [3])).toBe('open transactions in partition 3 of old')
  expect(textOfOpen('old', [0, 3])).toBe('open transactions in partitions 0, 3 of old')
})
