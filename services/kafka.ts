/**
 * One Kafka node, broker and controller in one, for development and tests: its settings, and how it is run as a Java
 * process.
 */
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
/** WeightedSemaphore for a topic whose max.message.bytes is 9 MiB. */
const largestBatch = 10 * mebibyte

/** Settings that hold wherever it runs. */
export const kafkaSettings = {
  'process.roles': 'broker,controller',
  'node.id': '1',
  'controller.listener.names': 'CONTROLLER',
  'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',

  // A topic that nobody made is a mistake to be seen.
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

  // The first member of a group waits for no others.
  'group.initial.rebalance.delay.ms': '0',
  // A broker that was killed may come back once its old session is over: by default 9 s.
  'broker.heartbeat.interval.ms': '500',
  'broker.session.timeout.ms': '3000',

  // Few cores, little memory; the cleaner's buffer is taken from the heap at once, 128 MiB by default.
  'num.network.threads': '2',
  'num.io.threads': '4',
  'background.threads': '2',
  'log.cleaner.dedupe.buffer.size': String(16 * mebibyte),
} as const

/** The addresses it listens on, where it tells clients to come to, and who its controller is. */
export const kafkaAddresses = (listen: { host: string; port: number; controller: number }, advertised: string) => ({
  listeners: `PLAINTEXT://${listen.host}:${listen.port},CONTROLLER://${listen.host}:${listen.controller}`,
  'advertised.listeners': `PLAINTEXT://${advertised}`,
  'controller.quorum.voters': `1@127.0.0.1:${listen.controller}`,
})

/** The line that a broker logs once it is registered and serves. Its port answers earlier. */
export const kafkaServes = /Kafka Server started/

/** Runs Kafka on two free ports of 127.0.0.1, and waits until it serves. */
export const startKafka = async (home: JavaHome, options: ServiceOptions = {}): Promise<Service> => {
  const { heap = kafkaHeap, javaOptions = [], settings } = options
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const listen = { host: '127.0.0.1', port, controller: await freePort() }
  const kafka = join(home.assembly, 'kafka')

  return startJavaProcess({
    name: 'kafka',
    address,
    home,
    serves: async log => kafkaServes.test(log),
    commandLine: async folder => {
      const properties = join(folder, 'server.properties')
      const data = { 'log.dirs': join(folder, 'data') }
      const all = { ...kafkaSettings, ...kafkaAddresses(listen, address), ...data, ...settings }
      await writeFile(properties, asProperties(all))
      return [
        ...[`-Xms${heap}`, `-Xmx${heap}`, '-XX:+UseSerialGC', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
        // The native parts of snappy and zstd.
        ...['--enable-native-access=ALL-UNNAMED', '-Djava.awt.headless=true'],
        ...javaOptions,
        `-Dlog4j2.configurationFile=${join(sources, 'kafka', 'log4j2.properties')}`,
        ...['-cp', `${join(kafka, 'classes')}:${join(kafka, 'lib', '*')}`, 'KafkaNode', folder, properties],
      ]
    },
  })
}

const asProperties = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name}=${value.replaceAll('\\', '\\\\')}\n`)
    .join('')
