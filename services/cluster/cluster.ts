/** Several Kafka nodes on this machine, each broker and controller, behind one handle; secured on request. */
import type { JavaHome } from '../java-process.ts'
import { newClusterId, startKafkaNode } from '../kafka.ts'
import { freePort } from '../ports.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { joinNodes } from './join-nodes.ts'
import { adminUser, createSecurity, type Security } from './security.ts'

export type ClusterOptions = {
  /** 1 or 3. */
  readonly brokers: number
  /** `users`: more users than `admin`. */
  readonly secure: { readonly users: readonly string[] } | undefined
}

/** `address` has one address of each node: with security, of the listener for SASL. */
export type KafkaCluster = Service & {
  readonly nodes: readonly Service[]
  readonly security: (Security & { readonly mutualTlsAddress: string }) | undefined
  /** The settings that a client needs beside the addresses, for the user `admin`. */
  readonly settings: Readonly<Record<string, string>>
}

/** Runs the nodes, and waits until all serve. After a failure nothing of them is left. */
export const startKafkaCluster = async (
  home: JavaHome,
  { brokers, secure }: ClusterOptions,
  options: ServiceOptions = {},
): Promise<KafkaCluster> => {
  await using stack = new AsyncDisposableStack()
  const security = secure && stack.use(await createSecurity(home.environment, secure.users))
  const ports = await Promise.all(Array.from({ length: brokers }, choosePorts))
  const voters = ports.map(({ controller }, index) => `${index + 1}@127.0.0.1:${controller}`).join()
  const merged = { ...options, javaOptions: [...(security?.broker.javaOptions ?? []), ...(options.javaOptions ?? [])] }

  const clusterId = newClusterId()
  const starting = ports.map(async ({ client, mutualTls, controller }, index) => {
    const listeners = {
      ...(security === undefined ? { PLAINTEXT: client } : { SASL_SSL: client, SSL: mutualTls }),
      CONTROLLER: controller,
    }
    const all = Object.entries(listeners).map(([name, port]) => `${name}://127.0.0.1:${port}`)
    const settings = {
      ...replication(brokers),
      ...security?.broker.settings,
      'node.id': String(index + 1),
      listeners: all.join(),
      'advertised.listeners': all.slice(0, -1).join(),
      'controller.quorum.voters': voters,
    }
    const node = { name: `kafka-${index + 1}`, address: `127.0.0.1:${client}`, settings, clusterId }
    return stack.use(await startKafkaNode(home, { ...node, format: security?.broker.format ?? [] }, merged))
  })
  // Wait for all even if one fails: the others can be ended only after their start.
  await Promise.allSettled(starting)
  const nodes = await Promise.all(starting)

  const kept = stack.move()
  const mutualTlsAddress = ports.map(({ mutualTls }) => `127.0.0.1:${mutualTls}`).join()
  return {
    ...joinNodes('kafka', nodes),
    security: security && { ...security, mutualTlsAddress },
    settings: security === undefined ? {} : settingsOfAdmin(security),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

const choosePorts = async () => ({
  client: await freePort(),
  mutualTls: await freePort(),
  controller: await freePort(),
})

/** With three nodes a topic survives the loss of one, and a write is on two. */
const replication = (brokers: number): Record<string, string> => {
  const replicas = String(brokers)
  const inSync = String(Math.max(1, brokers - 1))
  return {
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'offsets.topic.replication.factor': replicas,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
  }
}

const settingsOfAdmin = ({ ca, users }: Security): Record<string, string> => ({
  KAFKA_SSL: 'true',
  KAFKA_SSL_CA_FILE: ca,
  KAFKA_SASL_MECHANISM: 'scram-sha-512',
  KAFKA_SASL_USERNAME: adminUser,
  KAFKA_SASL_PASSWORD_FILE: users.get(adminUser)?.passwordFile ?? '',
})
