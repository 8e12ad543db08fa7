/**
 * Opens the connections of kafkajs to a cluster, for requests that its consumer and producer do not make: reads of one
 * partition without a group, and appends at known offsets. Uses parts of kafkajs that are not public: the kafkajs
 * version is pinned, and tests use each of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import kafkajs, { type KafkaConfig, type Logger } from 'kafkajs'
import { accessRefusal } from '../kafka/access-refusal.ts'
import { loadKafkajs } from '../kafka/load-kafkajs.ts'
import { type FetchedMessage, leaveFetchedBytes } from '../kafka/patch-fetch.ts'
import type { ProtocolConnections } from '../kafka/protocol-request.ts'
import { LEADERS_ASKED_MS, LEADERS_TRUSTED_MS } from '../limits.ts'
import { LOG_END } from './patch-log-ends.ts'

type Producer = { readonly producerId: string; readonly producerEpoch: number }
type Partitions<Partition> = readonly { readonly topic: string; readonly partitions: readonly Partition[] }[]

export type LogBroker = {
  readonly connectionPool: ProtocolConnections
  fetch(request: {
    readonly isolationLevel: number
    readonly maxWaitTime: number
    readonly minBytes: number
    readonly maxBytes: number
    readonly topics: Partitions<{
      readonly partition: number
      readonly fetchOffset: string
      readonly maxBytes: number
    }>
    readonly replicaId: number
    readonly rackId?: string
  }): Promise<{ readonly responses: readonly { readonly partitions: readonly FetchedLog[] }[] }>
  listOffsets(request: {
    readonly replicaId: number
    readonly isolationLevel: number
    readonly topics: Partitions<{
      readonly partition: number
      readonly timestamp: number
      readonly currentLeaderEpoch?: number | undefined
    }>
  }): Promise<{ readonly responses: readonly { readonly partitions: readonly ListedOffset[] }[] }>
  initProducerId(request: {
    readonly transactionalId: string | null
    readonly transactionTimeout: number
  }): Promise<Producer>
  addPartitionsToTxn(
    request: Producer & { readonly transactionalId: string; readonly topics: Partitions<number> },
  ): Promise<unknown>
  endTxn(
    request: Producer & { readonly transactionalId: string; readonly transactionResult: boolean },
  ): Promise<unknown>
}

type ListedOffset = { readonly partition: number; readonly offset: string }

/** One partition of a fetch, as `patch-fetch.ts` leaves it. */
export type FetchedLog = {
  readonly lastStableOffset: string
  readonly messages: readonly FetchedMessage[]
}

/** A partition in an answer to Metadata. Old brokers tell no epoch. */
type LedPartition = { readonly partitionId: number; readonly leader: number; readonly leaderEpoch?: number }

type MetadataBroker = {
  metadata(topics: readonly string[]): Promise<{
    readonly brokers: readonly { readonly nodeId: number }[]
    readonly topicMetadata: readonly { readonly partitionMetadata: readonly LedPartition[] }[]
  }>
}

type Cluster = {
  connect(): Promise<void>
  disconnect(): Promise<void>
  refreshMetadata(): Promise<void>
  addTargetTopic(topic: string): Promise<void>
  findTopicPartitionMetadata(topic: string): readonly LedPartition[]
  findBroker(node: { readonly nodeId: string }): Promise<LogBroker & MetadataBroker>
  getNodeIds(): readonly string[]
  findGroupCoordinator(wanted: { readonly groupId: string; readonly coordinatorType: number }): Promise<LogBroker>
}

export type LogCluster = {
  /**
   * Calls the leader of a partition. After a transient error, calls the leader that is known then. An offset is out of
   * range only if the leader that most brokers name says so: one that was replaced and cut off lacks what came since.
   */
  readonly onLeader: <Answer>(partition: number, ask: (leader: LogBroker) => Promise<Answer>) => Promise<Answer>
  /** Calls the coordinator of a transactional id, in the same way. */
  readonly onCoordinator: <Answer>(id: string, ask: (coordinator: LogBroker) => Promise<Answer>) => Promise<Answer>
  /**
   * Returns the ends of these partitions, with all records that their leaders have: also those of open transactions,
   * and those that too few replicas have, so that nobody can read them yet. Tries once.
   * A leader that was replaced, and is cut off, tells an end that counts for at most LEADERS_TRUSTED_MS.
   */
  readonly logEnds: (partitions: readonly number[]) => Promise<ReadonlyMap<number, number>>
  readonly disconnect: () => Promise<void>
}

const READ_UNCOMMITTED = 0
/** Asks for the end, in place of the offset of a time. */
const LATEST = -1
const TRANSACTION_COORDINATOR = 1
/** Attempts of a request, and milliseconds between two of them: 30 s, enough for a partition to get a new leader. */
const ATTEMPTS = 60
const RETRY_MS = 500
/** Milliseconds between two attempts while the broker still ends the transaction before. */
const BUSY_RETRY_MS = 4
const BUSY_ATTEMPTS = 5_000

/**
 * Connects, and learns the leaders of the topic.
 * @throws the error of the Kafka client
 */
export const openCluster = async (
  { config, logger }: { readonly config: KafkaConfig; readonly logger: Logger },
  topic: string,
  signal: AbortSignal,
  /** Milliseconds of a monotonic clock. */
  elapsed: () => number = () => performance.now(),
): Promise<LogCluster> => {
  const Cluster = loadKafkajs<new (options: object) => Cluster>('cluster/index')
  const socketFactory = loadKafkajs<() => unknown>('network/socketFactory')()
  const options = { authenticationTimeout: 10_000, enforceRequestTimeout: true, metadataMaxAge: 300_000 }
  const given = { ...config, logger, allowAutoTopicCreation: false }
  const cluster = new Cluster({ socketFactory, ...options, ...given })
  leaveFetchedBytes(cluster)
  try {
    await cluster.connect()
    await cluster.addTargetTopic(topic)
  } catch (error) {
    // Nobody else can end its connections.
    await cluster.disconnect().catch(() => undefined)
    throw error
  }

  let leaders: { readonly led: readonly LedPartition[]; readonly askedAt: number } = {
    led: [],
    askedAt: Number.NEGATIVE_INFINITY,
  }
  /** A broker that is cut off tells who led before. So most brokers must answer, and the highest epoch counts. */
  const currentLeaders = async (): Promise<readonly LedPartition[]> => {
    const known = cluster.getNodeIds()
    const asked = known.map(async nodeId => (await cluster.findBroker({ nodeId })).metadata([topic]))
    const answers = await answersOfMost(asked)
    // A broker that was away, or is new: the client learns of it only by a refresh.
    const isNew = ({ nodeId }: { readonly nodeId: number }): boolean => !known.includes(String(nodeId))
    if (answers.some(({ brokers }) => brokers.some(isNew))) await cluster.refreshMetadata().catch(() => undefined)
    const all = answers.flatMap(({ topicMetadata }) => topicMetadata.flatMap(of => of.partitionMetadata))
    const byPartition = Map.groupBy(all, ({ partitionId }) => partitionId)
    return [...byPartition.values()].flatMap(told => latestOf(told) ?? [])
  }
  const askWhoLeads = async (): Promise<void> => {
    const askedAt = elapsed()
    leaders = { led: await currentLeaders(), askedAt }
  }
  /** The client asks one broker, only after an error or minutes. So what most brokers said last counts, too. */
  const leaderOf = (partition: number): string => {
    const told = [...cluster.findTopicPartitionMetadata(topic), ...leaders.led]
    const latest = latestOf(told.filter(({ partitionId }) => partitionId === partition))
    if (latest === undefined) throw new kafkajs.KafkaJSError('a partition without a leader', { retriable: true })
    return String(latest.leader)
  }
  const askLeader = async <Answer>(partition: number, ask: (leader: LogBroker) => Promise<Answer>): Promise<Answer> => {
    const nodeId = leaderOf(partition)
    try {
      return await ask(await cluster.findBroker({ nodeId }))
    } catch (error) {
      if (!isOutOfRange(error)) throw error
      await askWhoLeads()
      const present = leaderOf(partition)
      if (present === nodeId) throw error
      return ask(await cluster.findBroker({ nodeId: present }))
    }
  }
  const endsAtLeader = async (leader: number, led: readonly LedPartition[]): Promise<readonly ListedOffset[]> => {
    const broker = await cluster.findBroker({ nodeId: String(leader) })
    const { responses } = await broker.listOffsets({
      replicaId: LOG_END,
      isolationLevel: READ_UNCOMMITTED,
      topics: [{ topic, partitions: led.map(of => askForEnd(of)) }],
    })
    return responses.flatMap(answer => answer.partitions)
  }
  const withRetries = async <Answer>(attempt: () => Promise<Answer>): Promise<Answer> => {
    let busy = 0
    for (let failed = 0; ; ) {
      signal.throwIfAborted()
      try {
        return await attempt()
      } catch (error) {
        if (isBusy(error) && busy++ < BUSY_ATTEMPTS) {
          await sleep(BUSY_RETRY_MS)
          continue
        }
        if (!isTransient(error) || ++failed === ATTEMPTS) throw error
        await sleep(RETRY_MS)
        await cluster.refreshMetadata().catch(() => undefined)
      }
    }
  }
  return {
    onLeader: (partition, ask) => withRetries(() => askLeader(partition, ask)),
    onCoordinator: (groupId, ask) =>
      withRetries(async () =>
        ask(await cluster.findGroupCoordinator({ groupId, coordinatorType: TRANSACTION_COORDINATOR })),
      ),
    logEnds: async partitions => {
      if (elapsed() - leaders.askedAt >= LEADERS_ASKED_MS) await askWhoLeads()
      const { led: allLed, askedAt } = leaders
      const asked = allLed.filter(({ partitionId }) => partitions.includes(partitionId))
      const byLeader = [...Map.groupBy(asked, ({ leader }) => leader)]
      const ends = await Promise.all(byLeader.map(([leader, led]) => endsAtLeader(leader, led)))
      if (elapsed() - askedAt > LEADERS_TRUSTED_MS)
        throw new kafkajs.KafkaJSError('brokers answer too late to know who leads', { retriable: true })
      return new Map(ends.flat().map(({ partition, offset }) => [partition, Number(offset)]))
    },
    disconnect: () => cluster.disconnect(),
  }
}

/** Resolves once more than half have answered. @throws the error after which that is not possible any more */
const answersOfMost = <Answer>(asked: readonly Promise<Answer>[]): Promise<readonly Answer[]> =>
  new Promise((resolve, reject) => {
    const answers: Answer[] = []
    let failed = 0
    if (asked.length === 0) reject(new kafkajs.KafkaJSError('no broker is known', { retriable: true }))
    for (const one of asked)
      one.then(
        answer => answers.push(answer) > asked.length / 2 && resolve([...answers]),
        (error: unknown) => ++failed >= asked.length / 2 && reject(error),
      )
  })

/** Of several answers about one partition; the first one if brokers tell no epoch. */
const latestOf = (told: readonly LedPartition[]): LedPartition | undefined =>
  told.toSorted((a, b) => epochOf(b) - epochOf(a))[0]

const epochOf = ({ leaderEpoch = -1 }: LedPartition): number => leaderEpoch

const askForEnd = ({ partitionId: partition, leaderEpoch: currentLeaderEpoch }: LedPartition) => ({
  partition,
  timestamp: LATEST,
  currentLeaderEpoch,
})

export const isOutOfRange = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSError && 'type' in error && error.type === 'OFFSET_OUT_OF_RANGE'

/** Whether the broker has not yet ended the transaction before. */
const isBusy = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSError && 'type' in error && error.type === 'CONCURRENT_TRANSACTIONS'

const isTransient = (error: unknown): boolean =>
  error instanceof kafkajs.KafkaJSError && error.retriable && accessRefusal(error) === undefined
