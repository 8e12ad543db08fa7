import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import type { LogCluster } from '../../../../core/log/records/open-cluster.ts'
import { endsWithWritten, openTransactionsOf, textOfOpen } from '../../../../core/log/records/open-transactions.ts'

/** @param log ends with the records of open transactions; @param ends those without */
const openIn = (written: readonly number[], ends: readonly number[], onAsked: () => void = () => undefined) => {
  const cluster = {
    logEnds: async (partitions: readonly number[]) => {
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

/** Looks up to four times. @param logEnds what Kafka tells at a look; it may throw */
const hiddenIn = async (
  ends: readonly number[],
  logEnds: (partitions: readonly number[], looks: number) => ReadonlyMap<number, number>,
) => {
  let looks = 1
  const cluster = { logEnds: async (partitions: readonly number[]) => logEnds(partitions, looks) }
  const offsets = () => ends.map((end, partition) => ({ partition, offset: `${end}`, low: '0', high: `${end}` }))
  const admin = { fetchTopicOffsets: async () => offsets() } as unknown as Admin
  const found = await endsWithWritten({ cluster, admin, topic: 'old', partitions: ends.length }, 4, async () => {
    looks++
    return true
  })
  return { ...found.hidden, looks }
}
const away = (): never => {
  throw new Error('away')
}

test('a question about log ends that fails is asked again at the next look', async () => {
  const at = (end: number) => hiddenIn([5], (_, looks) => (looks < 3 ? away() : new Map([[0, end]])))
  expect(await at(5)).toEqual({ open: [], unknown: [], looks: 3 })
  expect(await at(6)).toEqual({ open: [0], unknown: [], looks: 4 })
})

test('one leader that does not answer hides no open transaction of another one', async () => {
  const told = await hiddenIn([5, 5, 5], asked => (asked.includes(1) ? away() : new Map(asked.map(of => [of, 5 + of]))))
  expect(told).toEqual({ open: [2], unknown: [1], looks: 4 })
})

test('a partition that Kafka leaves out is asked for again, and the others keep their ends', async () => {
  const told = await hiddenIn([5, 5], (asked, looks) => new Map(asked.filter(of => of < looks).map(of => [of, 5])))
  expect(told).toEqual({ open: [], unknown: [], looks: 2 })
})

test('a message names the partitions', () => {
  expect(textOfOpen('old', [3])).toBe('open transactions in partition 3 of old')
  expect(textOfOpen('old', [0, 3])).toBe('open transactions in partitions 0, 3 of old')
})
