/**
 * Makes kafkajs ask for the ids of topics (KIP-516), and read records by them. A topic that is deleted and created
 * again has another id. Its name, its cluster and its number of partitions can be the same.
 *
 * In: kafkajs's versions of the requests Metadata, up to 6, and Fetch, up to 11.
 * Out: Metadata version 10 tells the id of each topic. Each partition of the answer has it as `topicId`, because the
 *   client passes on nothing else of a topic, and the epoch of its leader as `leaderEpoch`. Fetch version 13 names the
 *   topic by its id, if the consumer was given it: a broker then gives no records of another topic of the same name.
 * Can go wrong: the broker is older than 2.8, or its cluster still has the formats of an older one → no `topicId`.
 *   It is older than 3.1 → fetches name the topic. The topic of the id is gone → the error for an unknown topic.
 */
import { loadKafkajs } from './load-kafkajs.ts'
import {
  COMPACT_NULL,
  compactArray,
  compactString,
  type Encoder,
  encoderOf,
  FlexibleReader,
  int8,
  int32,
  int64,
  NO_TAGS,
  type ProtocolRequest,
  type RequestDefinitions,
} from './protocol-request.ts'

type MetadataAsked = { readonly topics: readonly string[]; readonly allowAutoTopicCreation?: boolean }
type Metadata = {
  readonly throttleTime: number
  readonly clientSideThrottleTime: number
  readonly brokers: readonly object[]
  readonly clusterId: string | null
  readonly controllerId: number
  readonly topicMetadata: readonly object[]
}

const METADATA = 3
const VERSION_WITH_IDS = 10
const ID_BYTES = 16
const NO_ID = Buffer.alloc(ID_BYTES)

let patched = false

/** Must be called before the first connection. Idempotent. */
export const askForTopicIds = (): void => {
  if (patched) return
  patched = true
  addMetadataVersion()
  addFetchVersion()
}

const addMetadataVersion = (): void => {
  const metadata = loadKafkajs<RequestDefinitions<MetadataAsked, Metadata>>('protocol/requests/metadata')
  const { protocol } = metadata
  const { parse } = loadKafkajs<ProtocolRequest<Metadata>['response']>('protocol/requests/metadata/v0/response')
  metadata.versions.push(`${VERSION_WITH_IDS}`)
  metadata.protocol = ({ version }) =>
    // kafkajs takes the lower one of its own highest version and the broker's.
    version < VERSION_WITH_IDS
      ? protocol({ version: Math.min(version, KAFKAJS_METADATA_MAX) })
      : asked => ({
          request: {
            apiKey: METADATA,
            apiVersion: version,
            apiName: 'Metadata',
            encode: async () => encodeMetadata(asked),
          },
          response: { decode: async bytes => decodeMetadata(new FlexibleReader(bytes)), parse },
        })
}

const KAFKAJS_METADATA_MAX = 6

/** Encodes the fields in the order of the protocol. kafkajs asks for all topics by an empty list. */
const encodeMetadata = ({ topics, allowAutoTopicCreation = true }: MetadataAsked): Encoder => {
  const named = topics.map(name => Buffer.concat([NO_ID, compactString(name), NO_TAGS]))
  const fields = [
    NO_TAGS,
    topics.length === 0 ? COMPACT_NULL : compactArray(named),
    int8(allowAutoTopicCreation ? 1 : 0),
    // No operations on the cluster, and none on the topics.
    int8(0),
    int8(0),
    NO_TAGS,
  ]
  return encoderOf(Buffer.concat(fields))
}

/** Reads the fields of the protocol in order. */
const decodeMetadata = (reader: FlexibleReader): Metadata => {
  const integers = (): number[] => reader.compactArray(() => reader.int32())
  const clientSideThrottleTime = reader.int32()
  const brokers = reader.compactArray(() => {
    const broker = {
      nodeId: reader.int32(),
      host: reader.compactString(),
      port: reader.int32(),
      rack: reader.compactString(),
    }
    reader.tags()
    return broker
  })
  const [clusterId, controllerId] = [reader.compactString(), reader.int32()]
  const topicMetadata = reader.compactArray(() => {
    const topicErrorCode = reader.int16()
    const topic = reader.compactString()
    const id = topicIdOf(reader.bytes(ID_BYTES))
    const isInternal = reader.boolean()
    const partitionMetadata = reader.compactArray(() => {
      const [partitionErrorCode, partitionId, leader] = [reader.int16(), reader.int32(), reader.int32()]
      const leaderEpoch = reader.int32()
      const [replicas, isr, offlineReplicas] = [integers(), integers(), integers()]
      reader.tags()
      return { partitionErrorCode, partitionId, leader, leaderEpoch, replicas, isr, offlineReplicas, ...id }
    })
    // The operations that were not asked for.
    reader.int32()
    reader.tags()
    return { topicErrorCode, topic, isInternal, partitionMetadata }
  })
  return { throttleTime: 0, clientSideThrottleTime, brokers, clusterId, controllerId, topicMetadata }
}

/** The text that Kafka prints. A cluster without ids of topics tells zeros. */
const topicIdOf = (bytes: Buffer): { readonly topicId?: string } =>
  bytes.equals(NO_ID) ? {} : { topicId: bytes.toString('base64url') }

/** Returns the id of a topic from its partitions, as the patched client tells them. */
export const topicIdAmong = (partitions: readonly object[]): string | undefined => {
  const [first] = partitions as readonly { readonly topicId?: string }[]
  return first?.topicId
}

// --- Fetch by topic id

type FetchAsked = {
  readonly replicaId?: number
  readonly isolationLevel?: number
  readonly maxWaitTime: number
  readonly minBytes: number
  readonly maxBytes: number
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly fetchOffset: string
      readonly maxBytes: number
    }[]
  }[]
  readonly rackId?: string
}

const FETCH = 1
const FETCH_BY_ID = 13
const KAFKAJS_FETCH_MAX = 11
const READ_COMMITTED = 1
/** Error codes: the broker does not know the id, or the id is of another topic than the name was. */
const unknownIds: ReadonlySet<number> = new Set([100, 103])
const UNKNOWN_TOPIC = 3

const OF_TOPIC = 'topic-id:'
/**
 * Returns the `rackId` of a consumer, or of a fetch, of the topic with this id. kafkajs passes it on to each of its
 * fetches and uses it for nothing else. It is never sent: this project does not choose replicas by racks.
 */
export const fetchByTopicId = (topicId: string | undefined): { readonly rackId?: string } =>
  topicId === undefined ? {} : { rackId: OF_TOPIC + topicId }

/** Returns the id that `fetchByTopicId` was given. */
export const topicOfRack = (rackId = ''): string | undefined =>
  rackId.startsWith(OF_TOPIC) ? rackId.slice(OF_TOPIC.length) : undefined

const addFetchVersion = (): void => {
  const fetch = loadKafkajs<RequestDefinitions<FetchAsked, unknown>>('protocol/requests/fetch')
  const { protocol } = fetch
  const response = loadKafkajs<ProtocolRequest<unknown>['response']>('protocol/requests/fetch/v11/response')
  fetch.versions.push(`${FETCH_BY_ID}`)
  fetch.protocol = ({ version }) => {
    const byName = protocol({ version: Math.min(version, KAFKAJS_FETCH_MAX) })
    return asked => {
      const id = topicOfRack(asked.rackId)
      const named = byName({ ...asked, rackId: '' })
      if (id === undefined || version < FETCH_BY_ID) return named
      const [{ topic }] = asked.topics as readonly [FetchAsked['topics'][number]]
      const asVersion11 = (bytes: Buffer): Buffer => asNamed(new FlexibleReader(bytes), topic)
      return {
        ...named,
        request: { apiKey: FETCH, apiVersion: version, apiName: 'Fetch', encode: async () => encodeFetch(asked, id) },
        response: {
          decode: bytes => response.decode(asVersion11(bytes)),
          asVersion11,
          parse: response.parse,
        },
      }
    }
  }
}

/** The fields of the protocol in order. A consumer of this project reads one topic. */
const encodeFetch = (asked: FetchAsked, topicId: string): Encoder => {
  const { replicaId = -1, isolationLevel = READ_COMMITTED, maxWaitTime, minBytes, maxBytes, topics } = asked
  const partitions = topics.flatMap(topic => topic.partitions)
  const encoded = partitions.map(({ partition, fetchOffset, maxBytes: partitionBytes }) =>
    Buffer.concat([
      int32(partition),
      // Any epoch of the leader.
      int32(-1),
      int64(fetchOffset),
      // No epoch of the last record, and no start of a replica's log.
      int32(-1),
      int64(-1),
      int32(partitionBytes),
      NO_TAGS,
    ]),
  )
  const fields = [
    NO_TAGS,
    ...[replicaId, maxWaitTime, minBytes, maxBytes].map(int32),
    int8(isolationLevel),
    // No session: its id is 0, its epoch -1.
    int32(0),
    int32(-1),
    compactArray([Buffer.concat([Buffer.from(topicId, 'base64url'), compactArray(encoded), NO_TAGS])]),
    // No partition to forget, no rack.
    compactArray([]),
    compactString(''),
    NO_TAGS,
  ]
  return encoderOf(Buffer.concat(fields))
}

/** Returns an answer of version 13 in the form of version 11. */
const asNamed = (reader: FlexibleReader, topic: string): Buffer => {
  // Throttle time, error code and session.
  const fields: Buffer[] = [reader.bytes(4), errorOf(reader.bytes(2)), reader.bytes(4)]
  const list = (items: readonly Buffer[][]): Buffer[] => [int32(items.length), ...items.flat()]
  const topics = reader.compactArray(() => {
    // The id that was asked for.
    reader.bytes(ID_BYTES)
    const partitions = reader.compactArray(() => {
      const [index, error, offsets] = [reader.bytes(4), errorOf(reader.bytes(2)), reader.bytes(3 * 8)]
      const aborted = reader.compactArray(() => {
        const transaction = [reader.bytes(2 * 8)]
        reader.tags()
        return transaction
      })
      const preferredReplica = reader.bytes(4)
      const records = reader.compactBytes()
      reader.tags()
      const sized = records === null ? [int32(-1)] : [int32(records.length), records]
      return [index, error, offsets, ...list(aborted), preferredReplica, ...sized]
    })
    reader.tags()
    const name = Buffer.from(topic)
    return [int32(name.length).subarray(2), name, ...list(partitions)]
  })
  return Buffer.concat([...fields, ...list(topics)])
}

/** kafkajs knows neither error of a topic id. It looks for a topic that is unknown once more. */
const errorOf = (code: Buffer): Buffer => (unknownIds.has(code.readInt16BE()) ? int32(UNKNOWN_TOPIC).subarray(2) : code)
