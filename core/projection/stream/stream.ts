/**
 * One topic, from its consumer group to its indices. Puts the steps of the flow together, and watches the ends of the
 * partitions and the source. Commission events and API keys each have a stream.
 */

import type { Stream } from '../../../schemas/events.ts'
import { type WrittenDocument, writtenId } from '../../../schemas/stored/documents.ts'
import { builtInRules, decode, type IndexKind, load, pack, type RulesTable } from '../../ledger/index.ts'
import {
  type Bounds,
  type Consumption,
  createAdmitBatch,
  type GenerationBody,
  type LogHandlers,
  restingAt,
  type StreamLog,
  upToBound,
} from '../../log/index.ts'
import {
  createWeightedSemaphore,
  type Health,
  keepTrying,
  limitConcurrency,
  pauseBefore,
  type RetryOptions,
  Unanswered,
} from '../../runtime/index.ts'
import {
  type Ask,
  bulks,
  type Clocks,
  createBatcher,
  createPublishedTimes,
  createRefresh,
  ELASTICSEARCH_SLOW_MS,
  type Elasticsearch,
  firstKeyRulesUntil,
  type GetDocuments,
  getFromPrimaries,
  keepPositionsOf,
  primaryReads,
  type Refreshing,
  readDocuments,
  readPositions,
  replacements,
  retryUntilAborted,
  watchIndices,
  write,
} from '../../store/index.ts'
import { type FlowSteps, PartitionFlow } from '../flow/flow.ts'
import { createFollow } from '../flow/follow.ts'
import {
  BULKS_IN_FLIGHT,
  DECIDED_BYTES,
  DRAIN_TIMEOUT_MS,
  FAR_BEHIND_RECORDS,
  LEAVE_TIMEOUT_MS,
  REFRESH_INTERVAL_MS,
  STREAMS_STOP_TIMEOUT_MS,
  STUCK_MS,
} from '../limits.ts'
import { Assignment, type StartFlow, statusOf } from './assign.ts'
import { type Committer, createCommitter } from './commit.ts'
import type { StreamMetrics, StreamStatus } from './metrics.ts'
import { createSourceVerifier, monitorSource } from './monitor-source.ts'
import { laterOf, openPartition } from './open-partition.ts'
import { disturbing, Watchdog } from './watchdog.ts'
import { createWrongTimes } from './wrong-times.ts'

export type StreamOptions = {
  readonly stream: Stream
  readonly identity: GenerationBody
  readonly groupId: string
  readonly prefix: string
  readonly controlIndex: string
  readonly indexOf: (kind: IndexKind) => string
  readonly searchedIndices: (kinds: ReadonlySet<IndexKind>) => string[]
  /** For a replay: its rules, its end in each partition, its only organization. */
  readonly rules?: RulesTable
  readonly bounds?: Bounds
  readonly org?: string | undefined
}

export type StreamContext = {
  readonly streamLog: StreamLog
  readonly elasticsearch: Elasticsearch
  readonly retryOptions: Omit<RetryOptions, 'onTrouble'>
  readonly now: () => number
  /** Milliseconds on a monotonic clock, for durations. */
  readonly elapsed: () => number
  readonly clocks: Clocks
  readonly health: Health
  readonly metrics: StreamMetrics
  readonly fail: (error: unknown) => void
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
  /** Limits throughput: waits before this many records are decided. Calls back again and again while it waits. */
  readonly pace?: ((records: number, onWaiting: () => void) => Promise<void>) | undefined
  /** Milliseconds between two refreshes. */
  readonly freshnessMs?: number
} & TestHooks

/** For tests only: to stop a projector at a step, or to see it stuck sooner. */
export type TestHooks = {
  readonly wrapSteps?: (steps: FlowSteps) => FlowSteps
  readonly stuckMs?: number
  readonly rulesVersion?: number
}

export type RunningStream = {
  /** The partitions that this process owns now. */
  readonly status: () => StreamStatus[]
  /** Stops reading, publishes what was read (for DRAIN_TIMEOUT_MS), commits, and leaves the group. */
  readonly stop: () => Promise<void>
  /** Leaves the group at once. The next owner reads again what is not published. */
  readonly abandon: () => Promise<void>
}

export const startStream = async (options: StreamOptions, given: StreamContext): Promise<RunningStream> => {
  const { identity } = options
  const part = { generation: identity.generation, name: 'consumer' }
  const watchdog = new Watchdog(given.stuckMs ?? STUCK_MS)
  const health = disturbing(watchdog, given.health)
  const context = { ...given, health }
  const stopping = new AbortController()
  let consumption: Consumption | undefined
  let draining = false
  const committer = createCommitter(() => consumption, context.elapsed)
  const refreshing = createRefreshing(context)
  const replace = createBatcher(replacements, context.elasticsearch.send)
  // Aborted only after the partitions are closed: an open partition would fail with its write.
  const closed = new AbortController()
  const times = createPublishedTimes(options.controlIndex, identity.generation, request =>
    retryUntilAborted('publish', closed.signal, context, () => context.elasticsearch.send(request, closed.signal)),
  )
  const request: Ask = asked =>
    retryUntilAborted('read', closed.signal, context, () => context.elasticsearch.send(asked, closed.signal))
  const verifier = createSourceVerifier({
    topic: identity.topic,
    streamLog: context.streamLog,
    known: async () => {
      const ours = new Map(assignment.flows())
      const stored = await readPositions(identity, { request, prefix: options.prefix })
      return stored.map(({ position, last }, partition) => ({ position, last: ours.get(partition)?.lastRead ?? last }))
    },
    elapsed: context.elapsed,
  })
  const verify = (signal: AbortSignal): Promise<void> =>
    health.during('kafka', report =>
      keepTrying(() => verifier.verify(), signal, {
        ...context.retryOptions,
        onTrouble: trouble => report(trouble && 'does not answer'),
      }),
    )
  const assignment: Assignment = new Assignment({
    topic: identity.topic,
    consumption: () => consumption,
    position: (partition, signal) =>
      openPartition(partition, options, { ...context, verifySource: verify, replace, times }, signal),
    verify,
    // While draining, falling pressure must not resume the reading.
    startFlow: createFlowStarter(options, context, committer, watchdog, refreshing, () =>
      draining ? undefined : consumption,
    ),
    fail: context.fail,
  })

  const nameWrongTimes = createWrongTimes(identity.topic, context)
  const admitBatch = createAdmitBatch(context.elapsed)
  // The first assignment can come before `open` returns: it waits for `opened`.
  const opened = Promise.withResolvers<void>()
  const handlers: LogHandlers = {
    onAssigned: partitions => void opened.promise.then(() => assignment.onAssigned(partitions)),
    onBatch: (partition, batch) => {
      nameWrongTimes(partition, batch)
      assignment.onBatch(partition, upToBound(partition, batch, options.bounds))
    },
    onReconnected: () => {
      verifier.onReconnected()
      assignment.onReconnected()
    },
    onUndecodable: (partition, { first, last, codec, reason }) => {
      const line = admitBatch()
      if (line === undefined) return
      context.warn?.(
        { topic: identity.topic, partition, first, last, codec, reason, more: line.more, unnamed: line.unnamed },
        'a batch cannot be read: it is parked',
      )
    },
    onUnpacked: partition => watchdog.onProgress(partition, 1),
    onRebalancing: () => assignment.onRebalancing(),
    onTrouble: name => {
      // Not `health`: the watchdog knows the state of the consumer from `inGroup`.
      given.health.set(part, name)
      assignment.close()
    },
    onStopped: context.fail,
    fail: context.fail,
  }
  const reading = await context.streamLog.open(handlers, stopping.signal)
  consumption = restingAt(options.bounds, reading.consumption)
  opened.resolve()

  const verification = { ...verifier, verify }
  const watched = { ...options, part, assignment, committer, watchdog, verification }
  const isOurs = (): boolean => assignment.flows().some(([partition]) => partition === 0)
  const keeping = { ...context, send: context.elasticsearch.send, isOurs }
  const watching = Promise.all([
    ...[monitorSource, watchIndices].map(watch => watch(watched, context, stopping.signal)),
    keepsPositions(options) ? keepPositionsOf(options, keeping, stopping.signal) : undefined,
    reading.watch(stopping.signal),
  ])
  const leave = async (): Promise<void> => {
    stopping.abort()
    context.metrics.forgetUnowned(identity.topic)
    await watching
    assignment.close()
    closed.abort()
    await consumption?.stop()
  }
  // The client cannot leave while the group waits for a dead member. Then our session times out instead.
  const withTimeout = (milliseconds: number, left: Promise<void>): Promise<void> =>
    Promise.race([left, context.retryOptions.sleep(milliseconds, new AbortController().signal)])
  return {
    status: () => statusOf(assignment, identity, committer.committedTo),
    abandon: () => withTimeout(LEAVE_TIMEOUT_MS, leave()),
    stop: async () => {
      draining = true
      refreshing.endAllDelays()
      for (const [partition] of assignment.flows()) consumption?.pause(partition)
      const idle = Promise.all(assignment.flows().map(([, flow]) => flow.waitUntilIdle()))
      await Promise.race([idle, context.retryOptions.sleep(DRAIN_TIMEOUT_MS, stopping.signal)])
      const positions = assignment
        .flows()
        .map(([partition, flow]): [number, number] => [partition, flow.progress.publishedTo])
      await withTimeout(STREAMS_STOP_TIMEOUT_MS, committer.flush(positions).then(leave))
    },
  }
}

/** API keys are few: after a restore they are read again from the first record. A sandbox is made again. */
const keepsPositions = ({ stream, identity }: StreamOptions): boolean =>
  stream === 'events' && identity.sandbox === undefined

const sourceOf = (stream: Stream, identity: GenerationBody, partition: number): FlowSteps['source'] => {
  const source = { stream, topic: identity.topic, partition, partitions: identity.partitions }
  return stream === 'api-keys' ? { ...source, firstKeyRulesUntil: firstKeyRulesUntil(identity) } : source
}

const createRefreshing = (context: StreamContext): Refreshing => {
  const { elapsed, retryOptions, elasticsearch } = context
  const lifetime = new AbortController().signal
  return createRefresh({
    keepTrying: attempt => retryUntilAborted('refresh', lifetime, context, attempt),
    send: request => elasticsearch.send(request),
    elapsed,
    sleep: milliseconds => retryOptions.sleep(milliseconds, lifetime),
    interval: context.freshnessMs ?? REFRESH_INTERVAL_MS,
  })
}

const createFlowStarter = (
  options: StreamOptions,
  context: StreamContext,
  committer: Committer,
  watchdog: Watchdog,
  refreshing: Refreshing,
  consumption: () => Consumption | undefined,
): StartFlow => {
  const { stream, identity, indexOf, searchedIndices, rules = builtInRules, org } = options
  const { metrics, now, retryOptions, elasticsearch, health, pace, wrapSteps = steps => steps } = context
  const limitBulks = limitConcurrency(BULKS_IN_FLIGHT)
  const budget = createWeightedSemaphore(DECIDED_BYTES)
  const sendRead = createBatcher(primaryReads, elasticsearch.send)
  const sendWrite = createBatcher(bulks, async (request, signal) => {
    await refreshing.untilRefreshed()
    return limitBulks(() =>
      health.during('elasticsearch write', () => elasticsearch.send(request, signal), ELASTICSEARCH_SLOW_MS),
    )
  })

  return (partition, published, signal, partitions): PartitionFlow => {
    const count = (outcome: 'written' | 'stale' | 'retried', items: number): void => {
      metrics.countWritten(outcome, items)
      if (outcome === 'retried') watchdog.onDisturbed()
      else watchdog.onProgress(partition, items)
    }
    const get: GetDocuments = <Source>(docs: Parameters<GetDocuments>[0]) =>
      retryUntilAborted('read', signal, context, () =>
        getFromPrimaries<Source>(sendRead, docs, signal).catch((error: unknown) => {
          // An index that refuses writes refuses these reads, too. So they count as retried documents.
          if (error instanceof Unanswered && error.status !== 0) count('retried', docs.length)
          throw error
        }),
      )
    const getAndReport: GetDocuments = async <Source>(docs: Parameters<GetDocuments>[0]) => {
      const found = await get<Source>(docs)
      watchdog.onProgress(partition, found.length)
      return found
    }
    watchdog.onStarted(partition)
    signal.addEventListener('abort', () => metrics.forgetRecordsBehind(identity.topic, partition))
    return new PartitionFlow(
      wrapSteps({
        source: sourceOf(stream, identity, partition),
        decode,
        rules,
        org,
        budget,
        follow: createFollow(options, partition, {
          getDocuments: getAndReport,
          request: request => retryUntilAborted('publish', signal, context, () => elasticsearch.send(request, signal)),
          sleep: milliseconds => retryOptions.sleep(milliseconds, signal),
          during: health.during,
        }),
        load: async (events, cache) => {
          const loaded = await load(events, cache, readDocuments(getAndReport, indexOf))
          // Other partitions may wait for this one's share of the budget. So all of them count as waiting.
          await pace?.(loaded.count, () => watchdog.onDisturbed())
          return loaded
        },
        write: (serialized, last) => {
          const written: WrittenDocument | null = last && { kind: 'written', body: laterOf(published.written, last) }
          const id = writtenId(identity.generation, partition)
          const version = (published.writtenFrom ?? 0) + (written?.body.offset ?? 0)
          const documents = pack(
            serialized,
            indexOf,
            written ? { index: options.controlIndex, id, version, document: written } : undefined,
          )
          return () =>
            health.during('elasticsearch write', report =>
              write(documents, {
                request: request => sendWrite(request, signal),
                getDocuments: get,
                pause: attempt => retryOptions.sleep(pauseBefore(attempt, retryOptions), signal),
                count,
                onRefused: report,
              }),
            )
        },
        refresh: refreshing.refresh,
        endRefreshDelay: refreshing.endDelay,
        searchedIndices,
        published,
        commit: position => committer.offer(partition, position),
        onPressure: full => (full ? consumption()?.pause(partition) : consumption()?.resume(partition)),
        onProjected: metrics.countProjected,
        onPublished: () => metrics.observePublished(Math.max(0, now() - published.current().at) / 1000),
        onRecordsBehind: milliseconds => metrics.setRecordsBehind(identity.topic, partition, milliseconds),
        fail: context.fail,
      }),
      FAR_BEHIND_RECORDS,
      partitions,
    )
  }
}
