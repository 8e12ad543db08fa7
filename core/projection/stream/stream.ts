/**
 * One topic, from its consumer group to its indices. Puts the parts of each flow together, and watches the ends of the
 * partitions and the source. Commission events and API keys each have a stream.
 *
 * A batch comes to `onBatch` from `core/log/follow/consume.ts`. It goes to the partition: `Assignment` in `assign.ts`,
 * then `PartitionFlow` in `core/projection/flow/flow.ts`. The flow has three parts: `PartitionLedger` in
 * `core/ledger/decide/decide-batch.ts`, with `decode` in `core/ledger/event/decode.ts` and `builtInRules` in
 * `core/ledger/rules/rules.ts`; `PartitionStore` in `core/projection/flow/partition-store.ts`; `StreamSide` in
 * `stream-side.ts` there. `follow.ts` there is only for a generation under other rules. `createPublishedTimes` is in
 * `core/store/positions/publish.ts`. `createSourceVerifier` and `monitorSource` in `monitor-source.ts` see a changed
 * topic, and the ends of partitions. All other parts only watch, name or make something beside the records.
 */

import type { Stream } from '../../../schemas/events.ts'
import { API_KEYS_GENERATION, controlIndexOf } from '../../../schemas/stored/documents.ts'
import { type GenerationLayout, layoutOf } from '../../../schemas/stored/layout.ts'
import { builtInRules, type DecisionSteps, decode, PartitionLedger, type RulesTable } from '../../ledger/index.ts'
import {
  type Bounds,
  type Consumption,
  createAdmitBatch,
  type GenerationBody,
  type LogHandlers,
  restingAt,
  type StreamLog,
  untilKafkaAnswers,
  upToBound,
} from '../../log/index.ts'
import type { Retrying } from '../../runtime/index.ts'
import {
  type Ask,
  assertSameIndices,
  type Clocks,
  createPublishedTimes,
  type Elasticsearch,
  firstKeyRulesUntil,
  keepPositionsOf,
  laterOf,
  readPositions,
  retryUntilAborted,
  sendWhole,
  watchIndices,
} from '../../store/index.ts'
import { BalanceKeeper } from '../balances/keep-balances.ts'
import { type FlowParts, PartitionFlow, shareOf } from '../flow/flow.ts'
import { createFollow } from '../flow/follow.ts'
import { PartitionStore, StreamStore } from '../flow/partition-store.ts'
import { type Committer, createCommitter, StreamSide } from '../flow/stream-side.ts'
import { DRAIN_TIMEOUT_MS, LEAVE_TIMEOUT_MS, STREAMS_STOP_TIMEOUT_MS, STUCK_MS } from '../limits.ts'
import type { StreamMetrics, StreamStatus } from '../progress/metrics.ts'
import { disturbing, Watchdog } from '../progress/watchdog.ts'
import { Assignment, openPartition, type StartFlow, statusOf } from './assign.ts'
import { createSourceVerifier, monitorSource } from './monitor-source.ts'
import { createWrongTimes } from './wrong-times.ts'

/**
 * A stream to start: the projector has one for API keys, and one for each active generation, with the consumer group
 * KAFKA_GROUP_ID-GENERATION and the layout of the generation.
 */
export type StreamOptions = {
  readonly stream: Stream
  readonly identity: GenerationBody
  readonly groupId: string
  readonly prefix: string
  readonly controlIndex: string
  readonly layout: GenerationLayout
  /** For a replay: its rules, its end in each partition, its only organization. */
  readonly rules?: RulesTable
  readonly bounds?: Bounds
  readonly org?: string | undefined
}

/** Returns the options of the stream of a generation, or of the API keys. @param groupId KAFKA_GROUP_ID */
export const streamOptions = (identity: GenerationBody, groupId: string, prefix: string): StreamOptions => ({
  stream: identity.generation === API_KEYS_GENERATION ? 'api-keys' : 'events',
  identity,
  groupId: `${groupId}-${identity.generation}`,
  prefix,
  controlIndex: controlIndexOf(prefix),
  layout: layoutOf(prefix, identity),
})

export type StreamContext = Retrying & {
  readonly streamLog: StreamLog
  readonly elasticsearch: Elasticsearch
  readonly now: () => number
  /** Milliseconds on a monotonic clock, for durations. */
  readonly elapsed: () => number
  readonly clocks: Clocks
  readonly metrics: StreamMetrics
  readonly fail: (error: unknown) => void
  readonly warn?: (details: Readonly<Record<string, string | number>>, message: string) => void
  /** Of a projector: it puts the index template back. The users of commands have not the right. */
  readonly keepsTemplate?: boolean
  /** Limits throughput: waits before this many records are decided. Calls back again and again while it waits. */
  readonly pace?: ((records: number, onWaiting: () => void) => Promise<void>) | undefined
  /** Milliseconds between two refreshes. */
  readonly freshnessMs?: number
  /** Makes balances: changes of an organization from one to the next, and milliseconds between two looks. */
  readonly balances?: { readonly changes: number; readonly interval: number }
} & TestHooks

/** For tests only: to stop a projector at a step, or to see it stuck sooner. */
export type TestHooks = {
  readonly wrapSteps?: (steps: DecisionSteps) => DecisionSteps
  readonly wrapParts?: (parts: FlowParts) => FlowParts
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
  // Functions name what is made later: the verifier and the assignment ask each other, a flow asks for its balances,
  // and there is no `consumption` before `open` returns.
  let consumption: Consumption | undefined
  let draining = false
  const committer = createCommitter(() => consumption, context.elapsed)
  const store = new StreamStore(context, options)
  // Aborted only after the partitions are closed: an open partition would fail with its write.
  const closed = new AbortController()
  const times = createPublishedTimes(options.controlIndex, identity.generation, request =>
    retryUntilAborted('publish', closed.signal, context, () => context.elasticsearch.send(request, closed.signal)),
  )
  const request: Ask = asked =>
    retryUntilAborted('read', closed.signal, context, () => sendWhole(context.elasticsearch.send, asked, closed.signal))
  const verifier = createSourceVerifier({
    topic: identity.topic,
    streamLog: context.streamLog,
    known: async () => {
      const stored = await readPositions(identity, { request, prefix: options.prefix })
      return stored.map(({ position, last }, partition) => ({
        position,
        // Another owner may have published further than this process has read.
        last: last === null ? assignment.lastKnown(partition) : laterOf(assignment.lastKnown(partition), last),
      }))
    },
    onFurther: () => watchdog.onSourceRead(),
    elapsed: context.elapsed,
  })
  const verify = (signal: AbortSignal): Promise<void> => untilKafkaAnswers(() => verifier.verify(), signal, context)
  const assignment: Assignment = new Assignment({
    topic: identity.topic,
    consumption: () => consumption,
    openPartition: (partition, signal) =>
      openPartition(partition, options, { ...context, verifySource: verify, replace: store.replace, times }, signal),
    verify,
    onVerified: partition => watchdog.onProgress(partition, 1),
    // While draining, falling pressure must not resume the reading.
    startFlow: createFlowStarter(options, context, store, {
      committer,
      watchdog,
      consumption: () => (draining ? undefined : consumption),
      balances: () => balances,
    }),
    fail: context.fail,
  })

  const balances = startBalances(options, context, () => assignment.flows())
  const nameWrongTimes = createWrongTimes(identity.topic, context)
  const admitBatch = createAdmitBatch(context.elapsed)
  // The first assignment can come before `open` returns: it waits for `opened`.
  const opened = Promise.withResolvers<void>()
  const handlers: LogHandlers = {
    onAssigned: partitions => void opened.promise.then(() => assignment.onAssigned(partitions)),
    onBatch: (partition, batch) => {
      nameWrongTimes(partition, batch)
      // Only a replay has bounds. Without them this returns the batch as it is.
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
  // The topic in Kafka, or an archive of it. `kafka-log.ts` passes the handlers to `consume` unchanged; it only adds
  // something to `onReconnected`.
  const reading = await context.streamLog.open(handlers, stopping.signal)
  // Only a replay has bounds. Without them this returns `reading.consumption` as it is.
  consumption = restingAt(options.bounds, reading.consumption)
  opened.resolve()

  const verification = { ...verifier, verify }
  const watched = { ...options, part, assignment, committer, watchdog, verification }
  const isOurs = (): boolean => assignment.flows().some(([partition]) => partition === 0)
  const keeping = { ...context, send: context.elasticsearch.send, isOurs }
  const watching = Promise.all([
    monitorSource(watched, context, stopping.signal),
    // Not `context.health`: while the check waits, records can go on, and the watchdog must see if they do not.
    watchIndices(watched, given, stopping.signal),
    keepsPositions(options) ? keepPositionsOf(options, keeping, stopping.signal) : undefined,
    reading.watch(stopping.signal),
  ])
  const leave = async (): Promise<void> => {
    stopping.abort()
    context.metrics.forgetUnowned(identity.topic)
    await watching
    assignment.close()
    closed.abort()
    await balances?.stop()
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
      store.refreshing.endAllDelays()
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

/** A sandbox, and a generation of layout 1, have none. */
const startBalances = (
  { identity, prefix, layout }: StreamOptions,
  { elasticsearch, retryOptions, metrics, warn = () => undefined, fail, balances }: StreamContext,
  flows: () => [number, PartitionFlow][],
): BalanceKeeper | undefined => {
  if (balances === undefined || !layout.hasBalances || identity.sandbox !== undefined) return undefined
  const { sleep } = retryOptions
  const count = metrics.countBalances
  return new BalanceKeeper({
    ...balances,
    identity,
    prefix,
    layout,
    flows,
    sleep,
    count,
    warn,
    fail,
    send: elasticsearch.send,
    assertSame: signal =>
      assertSameIndices(identity, {
        request: asked => elasticsearch.send(asked, signal),
        prefix,
        read: Object.keys(identity.indices ?? {}),
      }),
  })
}

const sourceOf = (stream: Stream, identity: GenerationBody, partition: number): DecisionSteps['source'] => {
  const source = { stream, topic: identity.topic, partition, partitions: identity.partitions }
  return stream === 'api-keys' ? { ...source, firstKeyRulesUntil: firstKeyRulesUntil(identity) } : source
}

/** Starts the flow of each assigned partition: its ledger, its store, and the side of the stream that it tells. */
const createFlowStarter = (
  options: StreamOptions,
  context: StreamContext,
  shared: StreamStore,
  told: {
    readonly committer: Committer
    readonly watchdog: Watchdog
    readonly consumption: () => Consumption | undefined
    readonly balances: () => BalanceKeeper | undefined
  },
): StartFlow => {
  const { stream, identity, rules = builtInRules, org } = options
  const { retryOptions, health, pace, wrapSteps = steps => steps, wrapParts = parts => parts } = context
  return (partition, published, signal, partitions): PartitionFlow => {
    const share = shareOf(partitions)
    const side = new StreamSide({ ...context, ...told, topic: identity.topic, partition }, signal)
    const store = new PartitionStore({ ...options, partition, published, shared, stream: side, signal })
    // Undefined, unless this generation began under other rules than the one that was live.
    const follow = createFollow(options, partition, {
      getDocuments: store.getDocuments,
      request: store.request,
      assertSame: (...asked) =>
        retryUntilAborted('read', signal, context, () => shared.sameIndices.assertSame(...asked)),
      sleep: milliseconds => retryOptions.sleep(milliseconds, signal),
      during: health.during,
    })
    const ledger = new PartitionLedger({
      steps: wrapSteps({ source: sourceOf(stream, identity, partition), decode, rules, org, follow }),
      read: store.read,
      pace: pace && (events => pace(events, () => side.onPaced())),
      from: published.current().position,
      share,
    })
    return new PartitionFlow(wrapParts({ ledger, store, stream: side }), {
      budget: shared.budget,
      elapsed: context.elapsed,
      share,
    })
  }
}
