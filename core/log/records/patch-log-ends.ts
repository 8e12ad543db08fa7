/**
 * Makes kafkajs ask a leader for the end of its log.
 *
 * A consumer is told an earlier end: the high watermark, up to which enough replicas have the records. A record behind
 * it has its time already, and nobody can read it: for a part of a minute by default (`replica.lag.time.max.ms`), and
 * since Kafka 3.7 for as long as fewer replicas are in sync than `min.insync.replicas`.
 *
 * In: kafkajs's versions of the request ListOffsets, up to 3, with `replicaId: LOG_END`.
 * Out: ListOffsets version 6, as the debugging consumer of the protocol. Kafka then ignores the isolation level, and
 *   demands the same right, Describe. Any replica would answer. So each partition has the epoch of its leader, which a
 *   broker of another epoch refuses.
 * Can go wrong: the broker is older than 2.8, or not Kafka's code → it is asked as by a consumer, and tells the high
 *   watermark. Another broker leads now → FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
 */
import { loadKafkajs } from '../kafka/load-kafkajs.ts'
import {
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
} from '../kafka/protocol-request.ts'

type OffsetsAsked = {
  readonly replicaId?: number
  readonly isolationLevel?: number
  readonly topics: readonly {
    readonly topic: string
    readonly partitions: readonly {
      readonly partition: number
      readonly timestamp: number
      readonly currentLeaderEpoch?: number | undefined
    }[]
  }[]
}
type Offsets = {
  readonly throttleTime: number
  readonly clientSideThrottleTime: number
  readonly responses: readonly {
    readonly topic: string | null
    readonly partitions: readonly { readonly partition: number; readonly errorCode: number; readonly offset: string }[]
  }[]
}

/** The `replicaId` of a request for the end of the log. */
export const LOG_END = -2

const LIST_OFFSETS = 2
const VERSION_WITH_TAGS = 6
const KAFKAJS_OFFSETS_MAX = 3
const CONSUMER = -1
const ANY_EPOCH = -1

let patched = false

/** Must be called before the first connection. Idempotent. */
export const askForLogEnds = (): void => {
  if (patched) return
  patched = true
  const listOffsets = loadKafkajs<RequestDefinitions<OffsetsAsked, Offsets>>('protocol/requests/listOffsets')
  const { protocol } = listOffsets
  const { parse } = loadKafkajs<ProtocolRequest<Offsets>['response']>('protocol/requests/listOffsets/v3/response')
  listOffsets.versions.push(`${VERSION_WITH_TAGS}`)
  listOffsets.protocol = ({ version }) => {
    const asConsumer = protocol({ version: Math.min(version, KAFKAJS_OFFSETS_MAX) })
    return asked => {
      if (asked.replicaId !== LOG_END) return asConsumer(asked)
      if (version < VERSION_WITH_TAGS) return asConsumer({ ...asked, replicaId: CONSUMER })
      return {
        request: {
          apiKey: LIST_OFFSETS,
          apiVersion: version,
          apiName: 'ListOffsets',
          encode: async () => encodeOffsets(asked),
        },
        response: { decode: async bytes => decodeOffsets(new FlexibleReader(bytes)), parse },
      }
    }
  }
}

/** Encodes the fields in the order of the protocol. */
const encodeOffsets = ({ isolationLevel = 0, topics }: OffsetsAsked): Encoder => {
  const named = topics.map(({ topic, partitions }) => {
    const each = partitions.map(({ partition, timestamp, currentLeaderEpoch = ANY_EPOCH }) =>
      Buffer.concat([int32(partition), int32(currentLeaderEpoch), int64(timestamp), NO_TAGS]),
    )
    return Buffer.concat([compactString(topic), compactArray(each), NO_TAGS])
  })
  return encoderOf(Buffer.concat([NO_TAGS, int32(LOG_END), int8(isolationLevel), compactArray(named), NO_TAGS]))
}

/** Reads the fields of the protocol in order. */
const decodeOffsets = (reader: FlexibleReader): Offsets => {
  const clientSideThrottleTime = reader.int32()
  const responses = reader.compactArray(() => {
    const topic = reader.compactString()
    const partitions = reader.compactArray(() => {
      const [partition, errorCode] = [reader.int32(), reader.int16()]
      // The time of the record.
      reader.bytes(8)
      const offset = reader.bytes(8).readBigInt64BE().toString()
      // The epoch of the leader.
      reader.int32()
      reader.tags()
      return { partition, errorCode, offset }
    })
    reader.tags()
    return { topic, partitions }
  })
  return { throttleTime: 0, clientSideThrottleTime, responses }
}
