/** One Kafka node (broker and controller) for development and tests: its settings, and its start as a Java process. */
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sources } from './assembly.ts'
import { type JavaHome, startJavaProcess } from './java-process.ts'
import { freePort } from './ports.ts'
import type { Service, ServiceOptions } from './service.ts'

/** The version in jvm/kafka/pom.xml and of the Docker image. */
export const kafkaVersion = '4.3.1'
export const kafkaHeap = '512m'

const mebibyte = 1024 * 1024
/** Fits a topic whose max.message.bytes is 9 MiB. */
const largestBatch = 10 * mebibyte

/** Settings for Docker and Java. */
export const kafkaServerSettings = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',

  // Using a topic that does not exist must fail.
  'auto.create.topics.enable': 'false',
  'message.max.bytes': String(largestBatch),
  'replica.fetch.max.bytes': String(largestBatch),
  'socket.request.max.bytes': String(100 * mebibyte),

  // One node holds the only replica of everything.
  'default.replication.factor': '1',
  'min.insync.replicas': '1',
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '4',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '4',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'share.coordinator.state.topic.num.partitions': '4',

  // The first member of a group does not wait for others.
  'group.initial.rebalance.delay.ms': '0',
  // A killed broker can return only after its session has expired: by default 9 s.
  'broker.heartbeat.interval.ms': '500',
  'broker.session.timeout.ms': '3000',

  // For few cores and little memory. The log cleaner allocates its buffer at the start: by default 128 MiB.
  'num.network.threads': '2',
  'num.io.threads': '4',
  'background.threads': '2',
  'log.cleaner.dedupe.buffer.size': String(16 * mebibyte),
} as const

/** The addresses to listen on, the address that clients are given, and the controller. */
export const kafkaAddresses = (listen: { host: string; port: number; controller: number }, advertised: string) => ({
  listeners: `PLAINTEXT://${listen.host}:${listen.port},CONTROLLER://${listen.host}:${listen.controller}`,
  'advertised.listeners': `PLAINTEXT://${advertised}`,
  'controller.quorum.voters': `1@127.0.0.1:${listen.controller}`,
})

/** Returns a cluster id: 16 bytes in base64url. The byte 0x0f makes it begin with D: `-` would be read as an option. */
export const newClusterId = (): string => Buffer.concat([Buffer.of(0x0f), randomBytes(15)]).toString('base64url')

/** A broker logs this line once it is registered and serves. Its port accepts connections earlier. */
export const kafkaServes = /Kafka Server started/

/** Runs Kafka on two free ports of 127.0.0.1, and waits until it serves. */
export const startKafka = async (home: JavaHome, options: ServiceOptions = {}): Promise<Service> => {
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const listen = { host: '127.0.0.1', port, controller: await freePort() }
  return startKafkaNode(home, { name: 'kafka', address, settings: kafkaAddresses(listen, address) }, options)
}

export type KafkaNode = {
  readonly name: string
  readonly address: string
  /** More settings. They replace those of `kafkaServerSettings` with the same name. */
  readonly settings: Readonly<Record<string, string>>
  /** More options for the format of the storage. */
  readonly format?: readonly string[]
  /** The same for each node of a cluster. */
  readonly clusterId?: string
}

/** Runs one node, and waits until it serves. A node of a cluster serves only while most of the nodes run. */
export const startKafkaNode = async (
  home: JavaHome,
  { name, address, settings: own, format = [], clusterId = newClusterId() }: KafkaNode,
  { heap = kafkaHeap, javaOptions = [], settings }: ServiceOptions = {},
): Promise<Service> => {
  const kafka = join(home.assembly, 'kafka')

  return startJavaProcess({
    name,
    address,
    home,
    serves: async log => kafkaServes.test(log),
    commandLine: async folder => {
      const [properties, formatFile] = [join(folder, 'server.properties'), join(folder, 'format')]
      const all = { ...kafkaServerSettings, ...own, 'log.dirs': join(folder, 'data'), ...settings }
      await writeFile(properties, asProperties(all))
      await writeFile(formatFile, format.map(option => `${option}\n`).join(''))
      return [
        ...[`-Xms${heap}`, `-Xmx${heap}`, '-XX:+UseSerialGC', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
        // For the native code of snappy and zstd.
        ...['--enable-native-access=ALL-UNNAMED', '-Djava.awt.headless=true'],
        `-Dcluster.id=${clusterId}`,
        ...javaOptions,
        `-Dlog4j2.configurationFile=${join(sources, 'kafka', 'log4j2.properties')}`,
        ...['-cp', `${join(kafka, 'classes')}:${join(kafka, 'lib', '*')}`],
        ...['KafkaNode', folder, properties, formatFile],
      ]
    },
  })
}

const asProperties = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value.replaceAll('\\', '\\\\')}\n`)
    .join('')
