/**
 * Makes kafkajs ask for the ids of topics (KIP-516). A topic that is deleted and created again has another id. Its
 * name, its cluster and its number of partitions can be the same.
 *
 * In: kafkajs's versions of the Metadata request, up to 6. Out: also version 10, which tells the id of each topic. Each
 * partition of the answer has it as `topicId`, because the client passes on nothing else of a topic.
 * Can go wrong: the broker is older than 2.8, or its cluster still has the formats of an older one → no `topicId`.
 */
import { loadKafkajs } from './load-kafkajs.ts'
import {
  COMPACT_NULL,
  compactArray,
  compactString,
  FlexibleReader,
  int8,
  NO_TAGS,
  type ProtocolRequest,
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
type Definitions = {
  readonly versions: string[]
  protocol: (asked: { readonly version: number }) => (given: MetadataAsked) => ProtocolRequest<Metadata>
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
  const metadata = loadKafkajs<Definitions>('protocol/requests/metadata')
  const { protocol } = metadata
  const { parse } = loadKafkajs<ProtocolRequest<Metadata>['response']>('protocol/requests/metadata/v0/response')
  metadata.versions.push(`${VERSION_WITH_IDS}`)
  metadata.protocol = ({ version }) =>
    // kafkajs takes the lower one of its own highest version and the broker's.
    version < VERSION_WITH_IDS
      ? protocol({ version: Math.min(version, KAFKAJS_VERSION_MAX) })
      : asked => ({
          request: { apiKey: METADATA, apiVersion: version, apiName: 'Metadata', encode: async () => encode(asked) },
          response: { decode: async bytes => decode(new FlexibleReader(bytes)), parse },
        })
}

const KAFKAJS_VERSION_MAX = 6

/** The fields of the protocol in order. kafkajs means all topics if there is none. */
const encode = ({ topics, allowAutoTopicCreation = true }: MetadataAsked): { readonly buffer: Buffer } => {
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

type Encoder = { readonly buffer: Buffer; writeBufferInternal(bytes: Buffer): void }

/** Returns kafkajs's form of encoded fields. */
const encoderOf = (bytes: Buffer): Encoder => {
  const encoder = new (loadKafkajs<new () => Encoder>('protocol/encoder'))()
  encoder.writeBufferInternal(bytes)
  return encoder
}

/** Reads the fields of the protocol in order. */
const decode = (reader: FlexibleReader): Metadata => {
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
      // The epoch of the leader.
      reader.int32()
      const [replicas, isr, offlineReplicas] = [integers(), integers(), integers()]
      reader.tags()
      return { partitionErrorCode, partitionId, leader, replicas, isr, offlineReplicas, ...id }
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
