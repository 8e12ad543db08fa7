import kafkajs from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { recordHash } from '../../../../core/ledger/event/decode.ts'
import {
  assertNotTruncated,
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  fetchEnds,
  type GenerationBody,
  type SourceAdmin,
} from '../../../../core/log/kafka/source.ts'
import { TOPIC_MESSAGE_BYTES_MAX } from '../../../../schemas/limits.ts'
import { record } from '../../../projector/records.ts'

const topic = 'commission.events'
const stops = (code: string) => expect.objectContaining({ code })

const suitable = {
  'cleanup.policy': 'delete',
  'retention.ms': '-1',
  'retention.bytes': '-1',
  'message.timestamp.type': 'LogAppendTime',
  'max.message.bytes': String(TOPIC_MESSAGE_BYTES_MAX),
}

type Cluster = {
  partitions?: number
  configuration?: Record<string, string>
  offsets?: { partition: number; low: string; high: string; offset: string }[]
  topicId?: string
  error?: Error
}

/** A Kafka with one topic. It has only the calls that these tests need. */
const cluster = ({ partitions = 2, configuration = suitable, offsets = [], topicId, error }: Cluster) => {
  const answer = async <Result>(result: Result): Promise<Result> => {
    if (error) throw error
    return result
  }
  const configEntries = Object.entries(configuration).map(([configName, configValue]) => ({ configName, configValue }))
  const admin = {
    describeCluster: async () => ({ clusterId: 'cluster-1', brokers: [], controller: null }),
    fetchTopicMetadata: () =>
      answer({ topics: [{ name: topic, partitions: Array(partitions).fill(topicId ? { topicId } : {}) }] }),
    fetchTopicOffsets: () => answer(offsets),
    describeConfigs: () => answer({ resources: [{ configEntries }], throttleTime: 0 }),
  }
  return admin as unknown as SourceAdmin
}

const identity: GenerationBody = { generation: 'g1', topic, cluster_id: 'cluster-1', partitions: 2, rules_version: 1 }

describe('a source', () => {
  test('is described by cluster, topic, number of partitions and topic id', async () => {
    const without = { topic, cluster_id: 'cluster-1', partitions: 6 }
    expect(await describeSource(cluster({ partitions: 6, topicId: 'id-1' }), topic)).toEqual({
      ...without,
      topic_id: 'id-1',
    })
    expect(await describeSource(cluster({ partitions: 6 }), topic)).toEqual(without)
  })

  test('of an unknown topic id is not told from one with an id: its records are compared', () => {
    const [known, unknown] = [{ ...identity, topic_id: 'id-1' }, identity]
    expect(() => assertSameSource(known, unknown)).not.toThrow()
    expect(() => assertSameSource(unknown, known)).not.toThrow()
  })

  test('that is missing is topic_missing, and the message says what to do', async () => {
    const error = Object.assign(new kafkajs.KafkaJSProtocolError('x'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' })
    const describing = describeSource(cluster({ error }), topic)
    await expect(describing).rejects.toThrow(stops('topic_missing'))
    await expect(describing).rejects.toThrow('npx commission topics')
  })

  test('that does not answer is not a missing topic', async () => {
    const error = new kafkajs.KafkaJSConnectionError('x')
    await expect(describeSource(cluster({ error }), topic)).rejects.toBe(error)
  })

  test('without a difference is accepted', () => {
    expect(() => assertSameSource(identity, { topic, cluster_id: 'cluster-1', partitions: 2 })).not.toThrow()
  })

  test.each([
    ['topic', { topic: 'other' }, 'expected commission.events, got other'],
    ['cluster_id', { cluster_id: 'cluster-2' }, 'expected cluster-1, got cluster-2; restored topics: npx commission'],
    [
      'topic_id',
      { topic_id: 'id-2' },
      'expected id-1, got id-2; restored topics: npx commission projection adopt --archive',
    ],
    ['partitions', { partitions: 3 }, 'expected 2, got 3'],
  ])('with another %s is source_changed, and the message names the difference', (field, change, words) => {
    const expected = { ...identity, topic_id: 'id-1' }
    const differing = () => assertSameSource(expected, { ...expected, ...change })
    expect(differing).toThrow(stops('source_changed'))
    expect(differing).toThrow(`${field}: ${words}`)
  })
})

describe('the ends of the partitions', () => {
  const offsetsOf = (low: string, high: string) => [
    { partition: 1, low: '0', high: '9007199254740991', offset: '0' },
    { partition: 0, low, high, offset: high },
  ]

  test('are numbers in the order of the partitions, with the first offset', async () => {
    expect(await fetchEnds(cluster({ offsets: offsetsOf('0', '12') }), topic)).toEqual([
      { partition: 0, low: 0, end: 12 },
      { partition: 1, low: 0, end: Number.MAX_SAFE_INTEGER },
    ])
  })

  test('are refused if the log does not begin at 0: records were deleted', async () => {
    const fetching = fetchEnds(cluster({ offsets: offsetsOf('1', '12') }), topic)
    await expect(fetching).rejects.toThrow(stops('records_deleted'))
    await expect(fetching).rejects.toMatchObject({ where: { topic, partition: 0, low: 1 } })
  })

  test('must not be before the position that was read', () => {
    const ends = [{ partition: 0, low: 0, end: 12 }]
    for (const position of [0, 11, 12]) expect(() => assertNotTruncated(topic, 0, position, ends)).not.toThrow()
    expect(() => assertNotTruncated(topic, 0, 13, ends)).toThrow(stops('records_deleted'))
    expect(() => assertNotTruncated(topic, 1, 0, ends)).not.toThrow()
    expect(() => assertNotTruncated(topic, 1, 1, ends)).toThrow(stops('records_deleted'))
  })
})

describe('the configuration of a topic', () => {
  test('that matches the contract gives no warning', async () => {
    expect(await checkTopicConfiguration(cluster({}), topic)).toEqual([])
  })

  test.each([
    ['cleanup.policy', 'compact'],
    ['cleanup.policy', 'compact,delete'],
    ['retention.ms', '604800000'],
    ['retention.bytes', '1073741824'],
  ])('that would lose records is refused: %s=%s', async (name, value) => {
    const checking = checkTopicConfiguration(cluster({ configuration: { ...suitable, [name]: value } }), topic)
    await expect(checking).rejects.toThrow(stops('topic_unsuitable'))
    await expect(checking).rejects.toThrow(`${name}: expected ${suitable[name as keyof typeof suitable]}, got ${value}`)
  })

  test('is refused with all its problems in one message; a missing setting is a problem', async () => {
    const checking = checkTopicConfiguration(cluster({ configuration: { 'cleanup.policy': 'compact' } }), topic)
    await expect(checking).rejects.toThrow(
      'cleanup.policy: expected delete, got compact; retention.ms: expected -1, got nothing; retention.bytes: expected -1, got nothing',
    )
  })

  test('that only weakens a promise gives a warning', async () => {
    const configuration = { ...suitable, 'message.timestamp.type': 'CreateTime', 'max.message.bytes': '1048588' }
    const warnings = await checkTopicConfiguration(cluster({ configuration }), topic)
    expect(warnings).toEqual([
      expect.stringContaining('message.timestamp.type'),
      expect.stringContaining('max.message.bytes'),
    ])
  })
})

describe('the largest record of a topic', () => {
  const small = cluster({ configuration: { ...suitable, 'max.message.bytes': '1048588' } })

  test('may be as small as KAFKA_MAX_MESSAGE_BYTES', async () => {
    expect(await checkTopicConfiguration(small, topic, 1_048_588)).toEqual([])
  })

  test('that is smaller gives a warning with both numbers', async () => {
    expect(await checkTopicConfiguration(small, topic, 1_048_589)).toEqual([
      'max.message.bytes: expected KAFKA_MAX_MESSAGE_BYTES (1048589) or more, got 1048588: larger records cannot be published',
    ])
  })
})

describe('the hash of a record', () => {
  const parts = { timestamp: 5, key: 'org_1', value: 'data', headers: [['a', 'b']] } as const
  const original = recordHash(record(parts))

  test('is the same for the same record at any offset', () => {
    expect(recordHash(record({ ...parts, offset: 99 }))).toBe(original)
    expect(original).toMatch(/^[0-9a-f]{64}$/)
  })

  test.each<[string, Parameters<typeof record>[0]]>([
    ['time', { timestamp: 6 }],
    ['key', { key: 'org_2' }],
    ['value', { value: 'datb' }],
    ['header name', { headers: [['b', 'b']] }],
    ['header value', { headers: [['a', 'c']] }],
    [
      'number of headers',
      {
        headers: [
          ['a', 'b'],
          ['a', 'b'],
        ],
      },
    ],
    ['place of a byte: from value to key', { key: 'org_1d', value: 'ata' }],
    ['place of a byte: from header to value', { value: 'dataa', headers: [['', 'b']] }],
    ['null for an empty key', { key: null }],
    ['empty for a null value', { value: null }],
    ['null header for an empty one', { headers: [['a', null]] }],
  ])('differs for another %s', (_, change) => {
    expect(recordHash(record({ ...parts, ...change }))).not.toBe(original)
  })

  test('distinguishes null from empty', () => {
    const hashes = [
      { key: null },
      { key: '' },
      { value: null },
      { value: '' },
      { headers: [['a', null]] },
      { headers: [['a', '']] },
    ]
    const all = hashes.map(change =>
      recordHash(record({ ...parts, headers: [], ...change } as Parameters<typeof record>[0])),
    )
    expect(new Set(all).size).toBe(hashes.length)
  })
})
