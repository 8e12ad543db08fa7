/** A topic in Kafka as the log of a stream, without a consumer. */
import { expect, test } from 'vitest'
import { TIMES_OF_PUBLISHERS } from '../../../../core/log/kafka/source.ts'
import { kafkaLog } from '../../../../core/projection/stream/kafka-log.ts'
import { createHealth } from '../../../../core/runtime/health.ts'

const silent = { warn: () => undefined, info: () => undefined }
const never = () => new Promise<never>(() => undefined)

test('ends with open transactions that stay unknown are a reason not to be ready, until they are known again', async () => {
  let now = 0
  let isAway = true
  const health = createHealth(silent, () => now)
  const cluster = {
    logEnds: async () => (isAway ? Promise.reject(new Error('away')) : new Map([[0, 9]])),
    disconnect: async () => undefined,
  }
  const context = {
    admin: { fetchTopicOffsets: async () => [{ partition: 0, offset: '7', low: '0', high: '7' }] },
    openLog: async () => cluster,
    health,
    elapsed: () => now,
    retryOptions: { sleep: never },
  }
  const identity = { generation: 'g1', topic: 'events', partitions: 1 }
  const read = { identity, groupId: 'group', prefix: 'prefix' }
  const { ends } = kafkaLog(...([read, context] as unknown as Parameters<typeof kafkaLog>))

  expect(await ends()).toEqual([{ partition: 0, low: 0, end: 7, logEnd: Number.POSITIVE_INFINITY }])
  expect(health.reasons()).toEqual({})
  now += 5_001
  await ends()
  expect(health.reasons()).toEqual({
    'g1 ends of partitions':
      'are not known with open transactions, or most brokers do not say who leads: no published time moves',
  })
  isAway = false
  expect(await ends()).toMatchObject([{ end: 7, logEnd: 9 }])
  expect(health.reasons()).toEqual({})
  isAway = true
  await ends()
  expect(health.reasons()).toEqual({})
})

/** @param seen by look at the ends: the stable end, the log end, and the seconds since the look before */
const reasonsAfter = async (generation: string, seen: readonly (readonly [number, number, number])[]) => {
  let [now, stable, written] = [0, 0, 0]
  const health = createHealth(silent, () => now)
  const context = {
    admin: { fetchTopicOffsets: async () => [{ partition: 0, low: '0', high: `${stable}` }] },
    openLog: async () => ({ logEnds: async () => new Map([[0, written]]) }),
    ...{ health, elapsed: () => now, retryOptions: { sleep: never } },
  }
  const read = { identity: { generation, topic: 'topic', partitions: 1 }, groupId: 'group', prefix: 'prefix' }
  const { ends } = kafkaLog(...([read, context] as unknown as Parameters<typeof kafkaLog>))
  const reasons: string[] = []
  for (const [end, ofAll, seconds] of seen) {
    now += seconds * 1_000
    ;[stable, written] = [end, ofAll]
    await ends()
    reasons.push(Object.entries(health.reasons()).join())
  }
  return reasons
}

test('a transaction that hides events of API keys for long is a reason not to be ready: nothing else tells it', async () => {
  const reason = 'api-keys open transactions,hide events of API keys: a key that one of them revokes is still accepted'
  const long = [
    [7, 9, 0],
    [7, 10, 6],
    [10, 10, 1],
  ] as const
  expect(await reasonsAfter('api-keys', long)).toEqual(['', reason, ''])
  expect(await reasonsAfter('g1', long)).toEqual(['', '', ''])
})

test('transactions that follow each other, and each end soon, are no reason, nor is a log end that is not known', async () => {
  expect(
    await reasonsAfter('api-keys', [
      [7, 9, 0],
      [9, 11, 4],
      [11, 13, 4],
      [13, 15, 4],
    ]),
  ).toEqual(['', '', '', ''])
  const unknown = await reasonsAfter('api-keys', [
    [7, Number.POSITIVE_INFINITY, 0],
    [7, Number.POSITIVE_INFINITY, 9],
  ])
  expect(unknown).toEqual(['', ''])
})

test('a setting of the topic that weakens a guarantee is told once when it comes after the start, and again after its end', async () => {
  const suitable = {
    ...{ 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' },
    ...{ 'message.timestamp.type': 'LogAppendTime', 'max.message.bytes': '1000' },
  }
  let changed: Partial<typeof suitable> = { 'max.message.bytes': '999' }
  const entries = () => Object.entries({ ...suitable, ...changed })
  const configEntries = () => entries().map(([configName, configValue]) => ({ configName, configValue }))
  const admin = {
    describeCluster: async () => ({ clusterId: 'cluster' }),
    fetchTopicMetadata: async () => ({ topics: [{ partitions: [{}] }] }),
    fetchTopicOffsets: async () => [{ partition: 0, offset: '7', low: '0', high: '7' }],
    describeConfigs: async () => ({ resources: [{ configEntries: configEntries() }] }),
  }
  const told: string[] = []
  const warn = (details: object, message: string): void => void told.push(`${JSON.stringify(details)} ${message}`)
  const context = { admin, warn, messageBytes: 1_000, retryOptions: { sleep: never } }
  const identity = { generation: 'g1', topic: 'events', partitions: 1, cluster_id: 'cluster' }
  const read = { identity, groupId: 'group', prefix: 'prefix' }
  const { identify } = kafkaLog(...([read, context] as unknown as Parameters<typeof kafkaLog>))
  // The start has told of this one.
  await identify()
  expect(told).toEqual([])
  const times = `{"topic":"events"} ${TIMES_OF_PUBLISHERS}`
  for (const lines of [[times], [times, times]]) {
    changed = { 'message.timestamp.type': 'CreateTime' }
    for (const _ of [1, 2]) await identify()
    expect(told).toEqual(lines)
    changed = {}
    await identify()
  }
})
