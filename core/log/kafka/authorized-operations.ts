/**
 * In: a topic or a consumer group. Out: the operations that Kafka allows this user on it.
 * Promises: changes nothing in Kafka. It uses parts of kafkajs that are not public, because the public requests are too
 *   old for this field: the kafkajs version is pinned, and a test uses each of them.
 * Can go wrong: the broker is older than 2.3 and does not tell → undefined. Kafka tells nothing about a resource that
 *   the user may not describe → no operation.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { KafkaConfig, Logger } from 'kafkajs'
import type { KafkaOperation } from '../../../schemas/access.ts'
import { keysOf } from '../../../schemas/objects.ts'
import { accessRefusal } from './access-refusal.ts'
import { loadKafkajs } from './load-kafkajs.ts'
import type { ProtocolConnections, ProtocolRequest } from './protocol-request.ts'

type Encoder = {
  writeArray(items: readonly string[]): Encoder
  writeBoolean(value: boolean): Encoder
}
type Decoder = {
  readInt16(): number
  readInt32(): number
  readString(): string
  readBoolean(): boolean
  readBytes(): Buffer
  readArray<Item>(read: (decoder: Decoder) => Item): Item[]
}
type Broker = {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number }>>
  readonly connectionPool: ProtocolConnections
}
type Cluster = {
  connect(): Promise<void>
  disconnect(): Promise<void>
  refreshMetadata(): Promise<void>
  findGroupCoordinator(group: { readonly groupId: string }): Promise<Broker>
  readonly brokerPool: { findConnectedBroker(): Promise<Broker> }
}

export type Operations = ReadonlySet<KafkaOperation>

export type AuthorizedOperations = {
  readonly topic: (name: string) => Promise<Operations | undefined>
  readonly group: (name: string) => Promise<Operations | undefined>
  readonly disconnect: () => Promise<void>
}

/** Connects, and authenticates. @throws the error of the Kafka client */
export const openAuthorizedOperations = async (config: KafkaConfig, logger: Logger): Promise<AuthorizedOperations> => {
  const Cluster = loadKafkajs<new (options: object) => Cluster>('cluster/index')
  const socketFactory = loadKafkajs<() => unknown>('network/socketFactory')()
  const cluster = new Cluster({ socketFactory, ...config, logger, allowAutoTopicCreation: false })
  await cluster.connect()
  await cluster.refreshMetadata()

  const ask = async (broker: Broker, question: Question): Promise<Operations | undefined> => {
    const { apiKey, apiVersion } = question
    if ((broker.versions[apiKey]?.maxVersion ?? 0) < apiVersion) return undefined
    const bits = await broker.connectionPool.send(requestOf(question))
    return new Set(keysOf(codes).filter(operation => (bits >> codes[operation]) & 1))
  }
  return {
    topic: async name => ask(await cluster.brokerPool.findConnectedBroker(), aboutTopic(name)),
    group: async name => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await ask(await cluster.findGroupCoordinator({ groupId: name }), aboutGroup(name))
        } catch (error) {
          if (accessRefusal(error) !== undefined) return new Set()
          // A coordinator that is new, or has moved, loads its groups first.
          if (attempt === ATTEMPTS) throw error
        }
        await sleep(RETRY_MS)
      }
    },
    disconnect: () => cluster.disconnect(),
  }
}

/** Attempts to ask a coordinator, and milliseconds between two of them. */
const ATTEMPTS = 20
const RETRY_MS = 250

/** The codes of the protocol. An answer has a bit for each of them. */
const codes = {
  Read: 3,
  Write: 4,
  Create: 5,
  Delete: 6,
  Describe: 8,
  DescribeConfigs: 10,
  AlterConfigs: 11,
} as const satisfies Record<KafkaOperation, number>
/** An answer without operations: the smallest integer. The user may not describe the resource, or it does not exist. */
const UNKNOWN = -(2 ** 31)

type KafkaErrors = { readonly createErrorFromCode: (code: number) => Error }

type Question = {
  readonly apiName: string
  readonly apiKey: number
  readonly apiVersion: number
  readonly write: (encoder: Encoder) => Encoder
  /** Returns the bits. */
  readonly read: (decoder: Decoder) => number
}

const requestOf = ({ write, read, ...api }: Question): ProtocolRequest<number> => {
  const NewEncoder = loadKafkajs<new () => Encoder>('protocol/encoder')
  const NewDecoder = loadKafkajs<new (bytes: Buffer) => Decoder>('protocol/decoder')
  return {
    request: { ...api, encode: async () => write(new NewEncoder()) },
    response: {
      decode: async bytes => {
        const bits = read(new NewDecoder(bytes))
        return bits === UNKNOWN ? 0 : bits
      },
      parse: async bits => bits,
    },
  }
}

const integers = (decoder: Decoder): unknown => decoder.readArray(one => one.readInt32())

/** Metadata, version 8. The lines are the fields of the protocol in order. */
const aboutTopic = (name: string): Question => ({
  apiName: 'Metadata',
  apiKey: 3,
  apiVersion: 8,
  // Creates no topic; tells no operations on the cluster; tells those on the topic.
  write: encoder => encoder.writeArray([name]).writeBoolean(false).writeBoolean(false).writeBoolean(true),
  read: decoder => {
    decoder.readInt32()
    decoder.readArray(broker => [broker.readInt32(), broker.readString(), broker.readInt32(), broker.readString()])
    decoder.readString()
    decoder.readInt32()
    const [operations = UNKNOWN] = decoder.readArray(topic => {
      topic.readInt16()
      topic.readString()
      topic.readBoolean()
      topic.readArray(partition => {
        partition.readInt16()
        partition.readInt32()
        partition.readInt32()
        partition.readInt32()
        return [integers(partition), integers(partition), integers(partition)]
      })
      return topic.readInt32()
    })
    return operations
  },
})

/** DescribeGroups, version 3. */
const aboutGroup = (name: string): Question => ({
  apiName: 'DescribeGroups',
  apiKey: 15,
  apiVersion: 3,
  write: encoder => encoder.writeArray([name]).writeBoolean(true),
  read: decoder => {
    decoder.readInt32()
    const [operations = UNKNOWN] = decoder.readArray(group => {
      const code = group.readInt16()
      if (code !== 0) throw loadKafkajs<KafkaErrors>('protocol/error').createErrorFromCode(code)
      for (let text = 0; text < 4; text++) group.readString()
      group.readArray(member => {
        for (let text = 0; text < 3; text++) member.readString()
        return [member.readBytes(), member.readBytes()]
      })
      return group.readInt32()
    })
    return operations
  },
})
