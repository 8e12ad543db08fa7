/** The leaders that a patched client is given, without a broker. `open-cluster.test.ts` has brokers. */
import { expect, test } from 'vitest'
import { loadKafkajs } from '../../../../core/log/kafka/load-kafkajs.ts'
import { LEADERS_TRUSTED_MS } from '../../../../core/log/limits.ts'
import { type LedPartition, readFromPresentLeaders, tellLeaders } from '../../../../core/log/records/patch-leaders.ts'

type Client = { findTopicPartitionMetadata(topic: string): readonly LedPartition[] }

const clientOf = (topicId: string, known: readonly LedPartition[]): Client => {
  readFromPresentLeaders()
  const { prototype } = loadKafkajs<{ readonly prototype: Client }>('cluster/index')
  const partitionMetadata = known.map(of => ({ ...of, topicId }))
  const metadata = { topicMetadata: [{ topic: 'events', partitionMetadata }] }
  return Object.assign(Object.create(prototype), { brokerPool: { metadata, getNodeIds: () => ['1', '2'] } })
}

const led = (partitionId: number, leader: number, leaderEpoch: number) => ({ partitionId, leader, leaderEpoch })

test('each partition has the leader of the highest epoch, of the brokers that the client knows, while it counts', () => {
  const topicId = 'each partition'
  const [known, told] = [
    [led(0, 1, 5), led(1, 1, 5), led(2, 1, 5), led(3, 1, 5)],
    [led(0, 2, 6), led(1, 2, 4), led(2, 9, 6)],
  ]
  const client = clientOf(topicId, known)
  const clock = { now: 0 }
  const leaders = () => client.findTopicPartitionMetadata('events').map(({ leader }) => leader)
  expect(leaders()).toEqual([1, 1, 1, 1])
  tellLeaders(
    told.map(of => ({ ...of, topicId })),
    0,
    () => clock.now,
  )
  expect(leaders()).toEqual([2, 1, 1, 1])
  clock.now = LEADERS_TRUSTED_MS + 1
  expect(leaders()).toEqual([1, 1, 1, 1])
})

test('a look at the leaders takes one pass over the partitions: each fetch has two', () => {
  const topicId = 'one pass'
  const [partitions, looks] = [1_000, 10]
  const all = Array.from({ length: partitions }, (_, partition) => led(partition, 1, 1))
  const client = clientOf(topicId, all)
  let reads = 0
  const counted = all.map(({ partitionId, ...of }) => ({
    ...of,
    topicId,
    leaderEpoch: 2,
    get partitionId() {
      reads++
      return partitionId
    },
  }))
  tellLeaders(counted, 0, () => 0)
  reads = 0
  for (let look = 0; look < looks; look++) expect(client.findTopicPartitionMetadata('events')).toHaveLength(partitions)
  expect(reads).toBeLessThanOrEqual(looks * partitions)
})
