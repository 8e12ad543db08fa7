/** The bytes are those of Kafka 4.1 for Metadata version 10, with other texts. */
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { askForTopicIds, fetchByTopicId, topicIdAmong } from '../../../../core/log/kafka/patch-topic-ids.ts'
import {
  COMPACT_NULL,
  compactArray,
  compactString,
  FlexibleReader,
  int8,
  int32,
  int64,
  NO_TAGS,
} from '../../../../core/log/kafka/protocol-request.ts'

askForTopicIds()
askForTopicIds()
const load = createRequire(import.meta.url)
const { requests, lookup } = load('kafkajs/src/protocol/requests')
const METADATA = 3

const metadata = (maxVersion: number, asked: object) =>
  lookup({ [METADATA]: { minVersion: 0, maxVersion } })(METADATA, requests.Metadata)(asked)

const int16 = (value: number): Buffer => int32(value).subarray(2)
const integers = (...values: number[]): Buffer => compactArray(values.map(int32))
/** A tagged field that no version knows. */
const TAGS = Buffer.from([1, 9, 2, 0xff, 0xff])

const answer = (id: Buffer, error = 0): Buffer => {
  const partition = (index: number) =>
    Buffer.concat([
      int16(0),
      int32(index),
      int32(1),
      int32(7),
      integers(1, 2),
      integers(1),
      integers(),
      index === 0 ? TAGS : NO_TAGS,
    ])
  const topic = [int16(error), compactString('events'), id, int8(0)]
  return Buffer.concat([
    NO_TAGS,
    int32(0),
    compactArray([Buffer.concat([int32(1), compactString('host'), int32(9092), COMPACT_NULL, NO_TAGS])]),
    compactString('cluster'),
    int32(1),
    compactArray([Buffer.concat([...topic, compactArray([partition(0), partition(1)]), int32(-1), NO_TAGS])]),
    int32(-1),
    TAGS,
  ])
}
const ID = Buffer.from('00112233445566778899aabbccddeeff', 'hex')

test('the id of a topic is in each of its partitions, as the text that Kafka prints', async () => {
  const { request, response } = metadata(12, { topics: ['events'] })
  expect(request).toMatchObject({ apiKey: METADATA, apiVersion: 10 })
  const decoded = await response.parse(await response.decode(answer(ID)))
  expect(decoded).toMatchObject({
    clusterId: 'cluster',
    controllerId: 1,
    brokers: [{ nodeId: 1, host: 'host', port: 9092, rack: null }],
    topicMetadata: [
      {
        topic: 'events',
        isInternal: false,
        partitionMetadata: [0, 1].map(partitionId => ({
          partitionErrorCode: 0,
          partitionId,
          leader: 1,
          leaderEpoch: 7,
          replicas: [1, 2],
          isr: [1],
          offlineReplicas: [],
          topicId: 'ABEiM0RVZneImaq7zN3u_w',
        })),
      },
    ],
  })
  expect(topicIdAmong(decoded.topicMetadata[0].partitionMetadata)).toBe('ABEiM0RVZneImaq7zN3u_w')
})

test('a cluster without topic ids tells none', async () => {
  const { response } = metadata(10, { topics: ['events'] })
  const { topicMetadata } = await response.decode(answer(Buffer.alloc(16)))
  expect(topicIdAmong(topicMetadata[0].partitionMetadata)).toBeUndefined()
})

test.for([0, 5, 6, 7, 8, 9])('a broker of version %s is asked by the client as before', maxVersion => {
  const { request } = metadata(maxVersion, { topics: ['events'] })
  expect(request.apiVersion).toBe(Math.min(maxVersion, 6))
})

test('an error of a topic is the error of the client', async () => {
  const { response } = metadata(10, { topics: ['events'] })
  const decoded = await response.decode(answer(ID, 3))
  await expect(response.parse(decoded)).rejects.toMatchObject({ type: 'UNKNOWN_TOPIC_OR_PARTITION' })
})

test('topics are asked for by name, and all of them without a name', async () => {
  const bytesOf = async (asked: object): Promise<string> =>
    (await metadata(10, asked).request.encode()).buffer.toString('hex')
  const name = `${'00'.repeat(16)}07${Buffer.from('events').toString('hex')}00`
  expect(await bytesOf({ topics: ['events'], allowAutoTopicCreation: false })).toBe(`0002${name}00000000`)
  expect(await bytesOf({ topics: [] })).toBe('000001000000')
})

test('lengths of more than one byte, negative and large numbers are read as they were written', () => {
  const text = 'é'.repeat(10_000)
  const bytes = Buffer.concat([NO_TAGS, compactString(text), int64('-2'), int32(-3), TAGS, int8(-1)])
  const reader = new FlexibleReader(bytes)
  expect(reader.compactString()).toBe(text)
  expect(reader.bytes(8).readBigInt64BE()).toBe(-2n)
  expect(reader.int32()).toBe(-3)
  reader.tags()
  expect(reader.boolean()).toBe(true)
  expect(() => reader.int16()).toThrow('ends too early')
})

// --- Fetch by topic id

const FETCH = 1
const topicId = ID.toString('base64url')
const asked = {
  ...{ isolationLevel: 1, maxWaitTime: 200, minBytes: 1, maxBytes: 1_000, replicaId: -1 },
  topics: [
    {
      topic: 'events',
      partitions: [
        { partition: 2, fetchOffset: '9007199254740993', maxBytes: 77 },
        { partition: 0, fetchOffset: '5', maxBytes: 78 },
      ],
    },
  ],
}
const fetchAs = (maxVersion: number, given: object) =>
  lookup({ [FETCH]: { minVersion: 0, maxVersion } })(FETCH, requests.Fetch)({ ...asked, ...given })

test('a fetch of a topic with a known id names the topic by its id alone', async () => {
  const { request, requestTimeout } = fetchAs(17, fetchByTopicId(topicId))
  expect([request.apiVersion, requestTimeout]).toEqual([13, 300])
  const partition = (index: number, offset: string, bytes: number) => [
    ...[int32(index), int32(-1), int64(offset), int32(-1), int64(-1), int32(bytes), NO_TAGS],
  ]
  const expected = Buffer.concat([
    ...[NO_TAGS, int32(-1), int32(200), int32(1), int32(1_000), int8(1), int32(0), int32(-1)],
    ...[Buffer.from([2]), ID, Buffer.from([3]), ...partition(2, '9007199254740993', 77), ...partition(0, '5', 78)],
    ...[NO_TAGS, Buffer.from([1]), Buffer.from([1]), NO_TAGS],
  ])
  expect((await request.encode()).buffer.toString('hex')).toBe(expected.toString('hex'))
})

test.for([
  [17, {}],
  [12, fetchByTopicId(topicId)],
  [11, fetchByTopicId(topicId)],
  [4, fetchByTopicId(topicId)],
] as const)(
  'without an id, and by a broker of version %s, it is named by its name, and nothing is sent as a rack',
  async ([maxVersion, rack]) => {
    const { request } = fetchAs(maxVersion, rack)
    expect(request.apiVersion).toBe(Math.min(maxVersion, 11))
    const bytes = (await request.encode()).buffer.toString('latin1')
    expect(bytes).toContain('events')
    expect(bytes).not.toContain('topic-id')
  },
)

const fetched = (error: number, records: Buffer) => {
  const aborted = Buffer.concat([int64(6), int64(7), NO_TAGS])
  const partition = [
    ...[int32(2), int16(error), int64(9), int64(8), int64(0), compactArray([aborted]), int32(-1)],
    ...[compactString(records.toString('latin1')), TAGS],
  ]
  return Buffer.concat([
    ...[NO_TAGS, int32(0), int16(0), int32(0)],
    compactArray([Buffer.concat([ID, compactArray([Buffer.concat(partition)]), NO_TAGS])]),
    TAGS,
  ])
}

test('its answer is read as one by the name, with the same fields', async () => {
  const { response } = fetchAs(13, fetchByTopicId(topicId))
  const { responses } = await response.parse(await response.decode(fetched(0, Buffer.alloc(0))))
  expect(responses).toMatchObject([
    {
      topicName: 'events',
      partitions: [
        {
          ...{ partition: 2, errorCode: 0, highWatermark: '9', lastStableOffset: '8', lastStartOffset: '0' },
          ...{ abortedTransactions: [{ producerId: '6', firstOffset: '7' }], preferredReadReplica: -1, messages: [] },
        },
      ],
    },
  ])
})

test.for([100, 103])('a topic that the broker does not know by its id is an unknown topic: code %s', async code => {
  const { response } = fetchAs(13, fetchByTopicId(topicId))
  const decoded = await response.decode(fetched(code, Buffer.alloc(0)))
  await expect(response.parse(decoded)).rejects.toMatchObject({
    type: 'UNKNOWN_TOPIC_OR_PARTITION',
    retriable: true,
  })
})
