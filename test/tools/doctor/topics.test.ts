/** The promises of a topic that the doctor looks at: what may lose a record fails, what is a choice is a warning. */
import type { Admin } from 'kafkajs'
import { expect, test } from 'vitest'
import { checkKafkaClock, checkTopic } from '../../../tools/doctor/topics.ts'

type Partition = { readonly replicas: readonly number[]; readonly isr: readonly number[]; readonly topicId?: string }
const withoutId: Partition = { replicas: [1, 2, 3], isr: [1, 2, 3] }
const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ'
const whole: Partition = { ...withoutId, topicId }
const good = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': '9437184',
  'min.insync.replicas': '2',
  'unclean.leader.election.enable': 'false',
}

const examine = (
  configuration: Partial<Record<keyof typeof good, string | undefined>> = {},
  partitions: readonly Partition[] = [whole],
) => {
  const entries = Object.entries({ ...good, ...configuration })
  const admin = {
    describeCluster: async () => ({ clusterId: 'c' }),
    fetchTopicMetadata: async () => ({
      topics: [{ name: 't', partitions: partitions.map((one, partitionId) => ({ ...one, partitionId, leader: 1 })) }],
    }),
    fetchTopicOffsets: async () => partitions.map((_, partition) => ({ partition, low: '0', high: '5' })),
    describeConfigs: async () => ({
      resources: [
        {
          configEntries: entries
            .filter(([, value]) => value !== undefined)
            .map(([configName, configValue]) => ({ configName, configValue })),
        },
      ],
    }),
  } as unknown as Admin
  return checkTopic({ admin, topic: 't', partitions: 1, messageBytes: 9_437_184 })
}

test('a topic that keeps its promises is ok', async () => {
  expect(await examine()).toEqual([
    { check: 'topic t', outcome: 'ok', detail: 'keeps every record, in 1 partition' },
    {
      check: 'copies of topic t',
      outcome: 'ok',
      detail: 'replication factor 3, min.insync.replicas 2, no unclean leader election',
    },
  ])
})

test.for([
  [{}, [{ replicas: [1], isr: [1], topicId }], 'warning', 'replication factor 1: only one copy exists'],
  [{ 'min.insync.replicas': '1' }, [whole], 'warning', 'min.insync.replicas is 1: '],
  [{ 'unclean.leader.election.enable': 'true' }, [whole], 'failed', 'unclean.leader.election.enable is true: '],
  [{ 'min.insync.replicas': undefined }, [whole], 'warning', 'the brokers do not tell min.insync.replicas'],
  [
    { 'unclean.leader.election.enable': undefined },
    [whole],
    'warning',
    'the brokers do not tell unclean.leader.election.enable',
  ],
  [{}, [{ replicas: [1, 2, 3], isr: [1, 2], topicId }], 'warning', '1 partitions have a replica that is not in sync'],
  [{}, [whole, whole], 'failed', 'expected 1 partition, got 2'],
  [{ 'max.message.bytes': '9437183' }, [whole], 'warning', 'max.message.bytes: expected KAFKA_MAX_MESSAGE_BYTES'],
  [{ 'message.timestamp.type': 'CreateTime' }, [whole], 'warning', 'message.timestamp.type is not LogAppendTime'],
  [{}, [withoutId], 'warning', 'the brokers tell no topic id: a topic that is deleted and created again is recognized'],
] as const)('%j is told: %#', async ([configuration, partitions, outcome, detail]) => {
  const found = (await examine(configuration, partitions)).filter(one => one.outcome !== 'ok')
  expect(found).toEqual([expect.objectContaining({ outcome, detail: expect.stringContaining(detail) })])
})

test.for([
  ['retention.ms', '604800000'],
  ['retention.bytes', '1000'],
  ['cleanup.policy', 'compact'],
])('a topic with %s %s would lose records, and is refused as by the projector', async ([name, value]) => {
  await expect(examine({ [name as string]: value })).rejects.toMatchObject({
    code: 'topic_unsuitable',
    message: expect.stringContaining(`${name}: expected`),
  })
})

test.for([
  ['5', 'ok'],
  ['4', 'warning'],
])(
  'a record that is later than this machine tells that the clock of a broker is ahead: offset %s is %s',
  async ([offset, outcome]) => {
    const admin = {
      fetchTopicOffsetsByTimestamp: async () => [{ partition: 0, offset }],
      fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: '5' }],
    } as unknown as Admin
    expect(await checkKafkaClock(admin, 't', () => 0)).toEqual([expect.objectContaining({ outcome })])
  },
)

test('records that arrive between the two requests are not late', async () => {
  let end = 5
  const admin = {
    // Kafka answers with the end if there is no later record.
    fetchTopicOffsetsByTimestamp: async () => [{ partition: 0, offset: `${end++}` }],
    fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${end++}` }],
  } as unknown as Admin
  expect(await checkKafkaClock(admin, 't', () => 0)).toEqual([expect.objectContaining({ outcome: 'ok' })])
})

test('a record that arrived while Kafka was slow to tell its ends is not late', async () => {
  let now = 0
  const asked: number[] = []
  const admin = {
    fetchTopicOffsetsByTimestamp: async (_topic: string, from: number) => {
      asked.push(from)
      return [{ partition: 0, offset: '5' }]
    },
    fetchTopicOffsets: async () => {
      now = 20_000
      return [{ partition: 0, low: '0', high: '5' }]
    },
  } as unknown as Admin
  await checkKafkaClock(admin, 't', () => now)
  expect(asked).toEqual([25_000])
})
