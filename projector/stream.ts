/**
 * One topic, from the group that shares its partitions to the indices it is projected into: puts the steps of the flow
 * together, and looks after what is not a record's business: where the partitions end, and whether the source is still the
 * right one. There is one of these for commission events and one for API keys.
 */
import type { Kafka } from 'kafkajs'
import type { Stream } from '../schemas/events.ts'
import { Assignment } from './assign.ts'
import { type Committer, createCommitter } from './commit.ts'
import { type Consumption, consume } from './consume.ts'
import {
  type Answer,
  type Elasticsearch,
  keepTrying,
  multiGet,
  type Patience,
  type Request,
  Unavailable,
} from './elasticsearch.ts'
import { nameOf, StopError } from './failures.ts'
import { PartitionFlow } from './flow.ts'
import type { Health } from './health.ts'
import {
  BULKS_IN_FLIGHT,
  DRAIN_TIMEOUT_MS,
  ENDS_INTERVAL_MS,
  FAR_BEHIND_RECORDS,
  IDENTIFY_INTERVAL_MS,
  LEAVE_TIMEOUT_MS,
  RETRY_FIRST_MS,
  RETRY_LAST_MS,
} from './limits.ts'
import type { StreamMetrics, StreamStatus } from './metrics.ts'
import { type PublishedPosition, readPosition } from './publish.ts'
import { readDocuments } from './read.ts'
import { createRefresh } from './refresh.ts'
import { createSlots } from './slots.ts'
import {
  assertNotTruncated,
  assertSameSource,
  checkTopicConfiguration,
  describeSource,
  type Ends,
  fetchEnds,
  type Identity,
  type SourceAdmin,
} from './source.ts'
import type { Place } from './state.ts'
import { write } from './write.ts'

export type StreamOptions = {
  readonly stream: Stream
  readonly identity: Identity
  readonly groupId: string
  readonly controlIndex: string
  readonly indexOf: (place: Place) => string
  readonly searched: (places: ReadonlySet<Place>) => string[]
}

export type StreamContext = {
  readonly kafka: Kafka
  readonly admin: SourceAdmin
  readonly elasticsearch: Elasticsearch
  readonly patience: Omit<Patience, 'onTrouble'>
  readonly now: () => number
  readonly health: Health
  readonly metrics: StreamMetrics
  readonly fail: (error: unknown) => void
}

export type RunningStream = {
  /** The partitions that this process owns now. */
  readonly status: () => StreamStatus[]
  /** Stops reading, lets what was read be published for a while, tells Kafka, leaves the group. */
  readonly stop: () => Promise<void>
  /** Leaves the group at once: what is under way is read again by the next owner. */
  readonly abandon: () => Promise<void>
}

export const startStream = async (options: StreamOptions, context: StreamContext): Promise<RunningStream> => {
  const { identity, groupId, stream } = options
  const { health } = context
  const stopping = new AbortController()
  let consumption: Consumption | undefined
  let draining = false
  const committer = createCommitter(() => consumption, context.now)
  const identifyNow = shared(() => identify(context.admin, identity))
  const assignment = new Assignment({
    topic: identity.topic,
    consumption: () => consumption,
    position: (partition, signal) => identifiedPosition(partition, signal, identifyNow, options, context),
    // While the last of what was read is published, pressure that ends must not start the reading again.
    startFlow: createFlowStarter(options, context, committer, () => (draining ? undefined : consumption)),
    fail: context.fail,
  })

  health.set(`${stream} consumer`, 'joining the group')
  // The first assignment can come before `consume` returns: what it seeks and resumes then waits for this.
  const joined = Promise.withResolvers<void>()
  consumption = await keepTrying(
    async () => {
      try {
        return await consume(context.kafka, identity.topic, groupId, {
          onAssigned: partitions => void joined.promise.then(() => assignment.assigned(partitions)),
          onBatch: (partition, batch) => assignment.batch(partition, batch),
          onTrouble: name => {
            health.set(`${stream} consumer`, name)
            assignment.close()
          },
          onStopped: error => context.fail(new StopError('consumer_stopped', nameOf(error), { topic: identity.topic })),
        })
      } catch {
        throw new Unavailable(0)
      }
    },
    stopping.signal,
    { ...context.patience, onTrouble: trouble => health.set(`${stream} consumer`, trouble && 'Kafka does not answer') },
  )
  joined.resolve()

  const watching = watch(assignment, committer, options, context, stopping.signal)
  const leave = async (): Promise<void> => {
    stopping.abort()
    await watching
    assignment.close()
    await consumption?.stop()
  }
  // While its group waits for a member that died the client cannot leave it: then the session ends by itself.
  const soon = (left: Promise<void>): Promise<void> =>
    Promise.race([left, context.patience.sleep(LEAVE_TIMEOUT_MS, new AbortController().signal)])
  return {
    status: () => statusOf(assignment, identity.topic, committer.committedTo),
    abandon: () => soon(leave()),
    stop: async () => {
      draining = true
      for (const [partition] of assignment.flows()) consumption?.pause(partition)
      const settled = Promise.all(assignment.flows().map(([, flow]) => flow.settled()))
      await Promise.race([settled, context.patience.sleep(DRAIN_TIMEOUT_MS, stopping.signal)])
      const positions = assignment
        .flows()
        .map(([partition, flow]): [number, number] => [partition, flow.progress.searchableTo])
      await soon(committer.flush(positions).then(leave))
    },
  }
}

const statusOf = (assignment: Assignment, topic: string, committedTo: (partition: number) => number): StreamStatus[] =>
  assignment.flows().map(([partition, flow]) => {
    const { readTo, writtenTo, searchableTo, end } = flow.progress
    return { topic, partition, readTo, writtenTo, searchableTo, committedTo: committedTo(partition), end }
  })

/** The published position of a partition, once its source is identified. */
const identifiedPosition = async (
  partition: number,
  signal: AbortSignal,
  identifyNow: () => Promise<Ends>,
  { identity, controlIndex }: StreamOptions,
  context: StreamContext,
): Promise<PublishedPosition> => {
  const request = requester('publish', signal, context)
  const patience = { ...context.patience, onTrouble: kafkaTrouble(context) }
  // First: a partition that was added since has no position, and that is not what is wrong.
  await keepTrying(identifyNow, signal, patience)
  const published = await readPosition(partition, { index: controlIndex, generation: identity.generation, request })
  // After the position was read: another owner may have published beyond what was the end before.
  const ends = await keepTrying(() => endsOf(context.admin, identity.topic), signal, patience)
  assertNotTruncated(identity.topic, partition, published.current().position, ends)
  return published
}

const endsOf = (admin: SourceAdmin, topic: string): Promise<Ends> => fetchEnds(admin, topic).catch(asUnavailable)

const asUnavailable = (error: unknown): never => {
  if (error instanceof StopError) throw error
  throw new Unavailable(0)
}

/** Cluster, partitions, configuration and the beginning of the log. @throws StopError for a source that is not the one */
const identify = async (admin: SourceAdmin, identity: Identity): Promise<Ends> => {
  try {
    assertSameSource(identity, await describeSource(admin, identity.topic))
    await checkTopicConfiguration(admin, identity.topic)
    return await fetchEnds(admin, identity.topic)
  } catch (error) {
    return asUnavailable(error)
  }
}

/** Who asks while an answer is on its way gets that one: all partitions are assigned at once, and the topic is the same. */
const shared = <Result>(task: () => Promise<Result>): (() => Promise<Result>) => {
  let running: Promise<Result> | undefined
  return () => {
    running ??= task().finally(() => {
      running = undefined
    })
    return running
  }
}

const kafkaTrouble =
  ({ health }: StreamContext) =>
  (trouble: Unavailable | undefined): void =>
    health.set('kafka', trouble && 'does not answer')

/** Sends until answered, and says on the way what does not work. */
const requester =
  (operation: string, signal: AbortSignal, { elasticsearch, patience, health }: StreamContext) =>
  (request: Request): Promise<Answer> =>
    keepTrying(() => elasticsearch.send(request, signal), signal, {
      ...patience,
      onTrouble: trouble => health.set(`elasticsearch ${operation}`, trouble?.message),
    })

const createFlowStarter = (
  options: StreamOptions,
  context: StreamContext,
  committer: Committer,
  consumption: () => Consumption | undefined,
) => {
  const { stream, identity, indexOf, searched } = options
  const { metrics, now, patience, elasticsearch, health } = context
  const slots = createSlots(BULKS_IN_FLIGHT)
  const lifetime = new AbortController().signal
  const refresh = createRefresh({
    keepTrying: attempt =>
      keepTrying(attempt, lifetime, {
        ...patience,
        onTrouble: trouble => health.set('elasticsearch refresh', trouble?.message),
      }),
    send: request => elasticsearch.send(request),
    now,
    sleep: milliseconds => patience.sleep(milliseconds, lifetime),
  })

  return (partition: number, published: PublishedPosition, signal: AbortSignal): PartitionFlow => {
    const get = (docs: Parameters<typeof multiGet>[1]) =>
      keepTrying(() => multiGet(elasticsearch.send, docs, signal), signal, {
        ...patience,
        onTrouble: trouble => health.set('elasticsearch read', trouble?.message),
      })
    const send = requester('write', signal, context)
    return new PartitionFlow(
      {
        source: { stream, topic: identity.topic, partition, partitions: identity.partitions },
        read: readDocuments(get, indexOf),
        write: changes =>
          write(changes, {
            indexOf,
            request: request => slots(() => send(request)),
            multiGet: get,
            pause: attempt => patience.sleep(Math.min(RETRY_FIRST_MS * 2 ** attempt, RETRY_LAST_MS), signal),
            count: metrics.written,
          }),
        refresh,
        searched,
        published,
        commit: position => committer.offer(partition, position),
        onPressure: full => (full ? consumption()?.pause(partition) : consumption()?.resume(partition)),
        onProjected: metrics.projected,
        onPublished: () => metrics.published(Math.max(0, now() - published.current().at) / 1000),
        fail: context.fail,
      },
      FAR_BEHIND_RECORDS,
    )
  }
}

/** Looks where the partitions end, often, and whether the source is still the same, now and then. */
const watch = async (
  assignment: Assignment,
  committer: Committer,
  { identity, stream }: StreamOptions,
  context: StreamContext,
  signal: AbortSignal,
): Promise<void> => {
  const { admin, now, health, patience, fail } = context
  let identified = now()
  while (!signal.aborted) {
    try {
      const time = now()
      const before = assignment.flows().map(([partition, flow]) => ({ partition, flow, ...flow.progress }))
      const due = time - identified >= IDENTIFY_INTERVAL_MS
      // Never an identification that was begun before `time`: its ends would be older than what they are told with.
      const ends = due ? await identify(admin, identity) : await fetchEnds(admin, identity.topic)
      if (due) identified = time
      for (const { partition, flow, searchableTo } of before) {
        assertNotTruncated(identity.topic, partition, searchableTo, ends)
        flow.sawEnd(ends.find(candidate => candidate.partition === partition)?.end ?? 0, time)
        committer.offer(partition, searchableTo)
      }
      health.set('kafka', undefined)
      if (assignment.isReading) health.set(`${stream} consumer`, undefined)
    } catch (error) {
      if (error instanceof StopError) return fail(error)
      health.set('kafka', 'does not answer')
    }
    await patience.sleep(ENDS_INTERVAL_MS, signal).catch(() => undefined)
  }
}
