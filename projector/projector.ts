/**
 * The whole projector, from two reachable services to two streams that flow: commission events and API keys.
 *
 * The live generation is looked up or, at a first start, created; each stream then runs by itself until the signal, or
 * until something stops all. Generations that come to be kept up, or no longer are, are followed while it runs.
 */
import type { Admin, Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  generationIndices,
  indexOf,
  listKinds,
} from '../schemas/documents.ts'
import type { projectorSettings, Read } from '../schemas/settings.ts'
import { startAdmin } from './admin.ts'
import { createClocks, sayChange } from './clocks.ts'
import { type Elasticsearch, keepTrying, type Patience, Unavailable } from './elasticsearch.ts'
import { StopError } from './failures.ts'
import { readGenerations, settle } from './generations.ts'
import { createHealth, type Health } from './health.ts'
import { createKeepUp, type Wanted } from './keep-up.ts'
import { DISCONNECT_TIMEOUT_MS, FOLLOW_MS, REPORT_INTERVAL_MS, STREAMS_STOP_TIMEOUT_MS } from './limits.ts'
import { createMetrics } from './metrics.ts'
import {
  makeFirstLive,
  openGeneration,
  type PrepareSteps,
  prepareCommon,
  prepareGeneration,
  readGeneration,
  recordIndices,
  rulesChanged,
} from './prepare.ts'
import { readPosition } from './publish.ts'
import { createReceipts, lookInto } from './receipts.ts'
import { RULES_VERSION } from './rules/rules.ts'
import { checkTopicConfiguration, describeSource, fetchEnds, type Identity, type SourceAdmin } from './source.ts'
import { statusOfAll } from './status.ts'
import { type RunningStream, type StreamContext, type StreamOptions, startStream, type Tampering } from './stream.ts'

export type Context = {
  readonly kafka: Kafka
  /** The same, for a consumer whose connections must be heard of. */
  readonly kafkaHeard: StreamContext['kafkaHeard']
  readonly elasticsearch: Elasticsearch
  readonly log: Logger
  readonly now: () => number
  readonly elapsed: StreamContext['elapsed']
  readonly patience: Omit<Patience, 'onTrouble'>
  readonly signal: AbortSignal
} & Tampering

export type Settings = Read<typeof projectorSettings>

/** Runs until the signal. @throws StopError, or whatever else stopped it */
export const runProjector = async (settings: Settings, context: Context): Promise<void> => {
  const { kafka, kafkaHeard, log, signal, patience, now, elapsed, elasticsearch, ...tampering } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  await using stack = new AsyncDisposableStack()
  const health = createHealth(log, elapsed)
  const clocks = createClocks({ send: elasticsearch.send, now, elapsed, onChange: sayChange(log) })
  const statuses = () => keepUp.streams().flatMap(stream => stream.status())
  const receipts = createReceipts(lookInto(elasticsearch.send, settings.ELASTICSEARCH_INDEX_PREFIX), patience.sleep)
  const metrics = createMetrics(statuses, receipts.waiting, () => keepUp.failed(), clocks.state)

  // What stops us must not be held up by what may be the reason.
  const disconnect = (client: Pick<Admin, 'disconnect'>): Promise<void> =>
    Promise.race([
      client.disconnect().catch(() => undefined),
      patience.sleep(DISCONNECT_TIMEOUT_MS, new AbortController().signal),
    ])
  const given = { kafkaHeard, elasticsearch, patience, now, elapsed, clocks, health, warn: log.warn.bind(log) }
  const startOne = async (options: StreamOptions, fail: (error: unknown) => void): Promise<RunningStream> => {
    // An admin client of its own: the client's calls for two topics at once disturb each other's metadata.
    const streamAdmin = kafka.admin()
    try {
      await kafkaAnswers(() => streamAdmin.connect(), health, context)
      const { status, stop, abandon } = await startStream(options, {
        ...given,
        admin: streamAdmin,
        metrics: metrics.of(options.stream),
        fail,
        ...tampering,
      })
      const closing = (end: () => Promise<void>) => async () => {
        await end().catch(() => undefined)
        await disconnect(streamAdmin)
      }
      return { status, stop: closing(stop), abandon: closing(abandon) }
    } catch (error) {
      await disconnect(streamAdmin)
      throw error
    }
  }
  const steps = { request: elasticsearch.send, prefix: settings.ELASTICSEARCH_INDEX_PREFIX }
  const lookAtLive = async () => (await readGenerations(steps))?.live
  const keepUp = createKeepUp({ start: startOne, fail: failure.reject, lookAtLive, health, log, now: elapsed, signal })
  const admin = kafka.admin()
  health.prepare('start', 'preparing')
  const server = await startAdmin(settings.PROJECTOR_ADMIN_HOST, settings.PROJECTOR_ADMIN_PORT, {
    // Said from the first moment on: this port is the last to close.
    health: { reasons: () => (signal.aborted ? { projector: 'stopping' } : health.reasons()) },
    registry: metrics.registry,
    failed: keepUp.failed,
    status: () => statusOfAll(keepUp.options(), settings.ELASTICSEARCH_INDEX_PREFIX, admin, elasticsearch),
    receipts: {
      ask: receipts.ask,
      sources: () => keepUp.options().map(({ stream, identity }) => ({ stream, ...identity })),
    },
    clocks: clocks.state,
  })
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  log.info({ address: server.address() }, 'admin port')
  stack.defer(() => disconnect(admin))

  const work = async (): Promise<void> => {
    const look = await prepare(settings, admin, health, context)
    const follow = async () => keepUp.follow(await look(keepUp.failed()))
    await follow()
    health.set('start', undefined)
    log.info('projecting')
    while (!signal.aborted) {
      await patience.sleep(FOLLOW_MS, signal)
      await follow()
    }
  }
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })

  const report = setInterval(() => {
    for (const { end, ...status } of statuses()) log.info({ ...status, lag: end - status.searchableTo }, 'position')
  }, REPORT_INTERVAL_MS)
  stack.defer(() => clearInterval(report))

  const working = work().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  try {
    const over = Promise.race([working.then(() => ended.promise), ended.promise, failure.promise])
    await over.finally(receipts.stop)
  } catch (error) {
    await Promise.allSettled(keepUp.streams().map(stream => stream.abandon()))
    throw error
  }
  // A stream that is joining its group now is waited for: left half-way, it keeps a place there until its session ends.
  const begun = new Set(keepUp.streams())
  const stopped = Promise.all([
    ...[...begun].map(stream => stream.stop()),
    working.then(() =>
      Promise.all(
        keepUp
          .streams()
          .filter(stream => !begun.has(stream))
          .map(stream => stream.stop()),
      ),
    ),
  ])
  await Promise.race([stopped, patience.sleep(STREAMS_STOP_TIMEOUT_MS, new AbortController().signal)])
}

/**
 * Everything that must be so before the first record, for both streams. Waits for Kafka and Elasticsearch to be there. Gives what tells
 * the streams that are to be kept up, each time it is asked. A spare generation that failed is opened again.
 */
export const prepare = async (
  settings: Settings,
  admin: SourceAdmin & { connect(): Promise<void> },
  health: Health,
  context: Context,
): Promise<(failed: readonly { readonly generation: string }[]) => Promise<Wanted>> => {
  const { elasticsearch, patience, signal, log } = context
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const ask: PrepareSteps['request'] = request =>
    keepTrying(() => elasticsearch.send(request, signal), signal, {
      ...patience,
      onTrouble: trouble => health.set('elasticsearch', trouble?.message),
    })
  const { rulesVersion = RULES_VERSION } = context
  const { ELASTICSEARCH_SHARDS: shards, ELASTICSEARCH_REPLICAS: replicas } = settings
  const steps: PrepareSteps = { request: ask, prefix, shards, replicas, rulesVersion }
  const ready = <Result>(attempt: () => Promise<Result>): Promise<Result> => kafkaAnswers(attempt, health, context)

  await ready(() => admin.connect())
  const described = async (topic: string) => {
    const source = await ready(() => describeSource(admin, topic))
    for (const warning of await ready(() => checkTopicConfiguration(admin, topic))) log.warn({ topic }, warning)
    return { source, ends: await ready(() => fetchEnds(admin, topic)) }
  }
  const events = await described(settings.KAFKA_EVENTS_TOPIC)
  const apiKeys = await described(settings.KAFKA_API_KEYS_TOPIC)
  if (apiKeys.source.partitions !== 1) {
    const detail = `${settings.KAFKA_API_KEYS_TOPIC}: expected 1 partition, got ${apiKeys.source.partitions}`
    throw new StopError('topic_unsuitable', detail)
  }

  await prepareCommon(steps)
  const opened = new Map<string, StreamOptions>()
  const openKept = async (): Promise<Wanted> => {
    const generations = await readGenerations(steps)
    if (generations === undefined)
      throw new StopError('index_missing', `the live generation in ${controlIndexOf(prefix)}`)
    if (generations.floor === null) await finishSwap(steps, health)
    // A name may come again, for another one.
    for (const name of opened.keys()) if (!generations.kept.includes(name)) opened.delete(name)
    const streams: StreamOptions[] = []
    const broken = new Map<string, StopError>()
    const others: Identity[] = []
    for (const generation of generations.kept) {
      try {
        const known = opened.get(generation)
        const identity = known?.identity ?? (await readGeneration(generation, steps))
        if (identity !== undefined && identity.rules_version !== rulesVersion) {
          others.push(identity)
          // The API goes by them, whichever program keeps it up.
          await recordIndices(identity, Object.keys(generationIndices(prefix, generation, shards)), steps)
        } else {
          const options =
            known ??
            eventsOptions(await openGeneration(generation, events.source, true, steps), settings.KAFKA_GROUP_ID, prefix)
          opened.set(generation, options)
          streams.push(options)
        }
      } catch (error) {
        if (generation === generations.live || !(error instanceof StopError)) throw error
        broken.set(generation, error)
      }
    }
    // Those of another version are kept up by another program. Without one of ours there is nothing for us to do.
    const [other] = others
    if (streams.length === 0 && broken.size === 0 && other !== undefined) throw rulesChanged(other, rulesVersion)
    return { live: generations.live, streams, broken }
  }
  // Before anything is written: what was projected must be of this source.
  const isFirst = (await readGenerations(steps)) === undefined
  if (isFirst) await prepareGeneration(FIRST_GENERATION, events.source, events.ends, true, steps)
  else await openKept()
  // Made before anything is live: where something is, it was there.
  const keysIdentity = isFirst
    ? await prepareGeneration(API_KEYS_GENERATION, apiKeys.source, apiKeys.ends, false, steps)
    : await openGeneration(API_KEYS_GENERATION, apiKeys.source, false, steps)
  await makeFirstLive(FIRST_GENERATION, steps)

  const controlIndex = controlIndexOf(prefix)
  // Keys that were revoked while nobody read are not served as valid: first up to where the topic ends now.
  const keysPosition = await readPosition(0, { index: controlIndex, generation: API_KEYS_GENERATION, request: ask })
  await keysPosition.advance({ serve_from: apiKeys.ends[0]?.end ?? 0 })

  const keys: StreamOptions = {
    stream: 'api-keys',
    identity: keysIdentity,
    groupId: `${settings.KAFKA_GROUP_ID}-${API_KEYS_GENERATION}`,
    prefix,
    controlIndex,
    indexOf: place => (place === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)),
    // Keys are looked up by id only.
    searched: () => [],
  }
  return async failed => {
    for (const { generation } of failed) opened.delete(generation)
    const wanted = await openKept()
    return { ...wanted, streams: [keys, ...wanted.streams] }
  }
}

/** Nobody can read before it is done; what is published goes on all the same. */
const finishSwap = async (steps: PrepareSteps, health: Health): Promise<void> => {
  try {
    await settle(steps)
    health.set('swap', undefined)
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    health.set('swap', `cannot be finished: ${error.message}`)
  }
}

/** What the stream of a generation is started with. */
export const eventsOptions = (identity: Identity, groupId: string, prefix: string): StreamOptions => {
  const { generation } = identity
  return {
    stream: 'events',
    identity,
    groupId: `${groupId}-${generation}`,
    prefix,
    controlIndex: controlIndexOf(prefix),
    indexOf: place => (place === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, place)),
    searched: places =>
      [...places].flatMap(place =>
        searchedKinds.has(place) && place !== 'api-keys' ? [indexOf(prefix, generation, place)] : [],
      ),
  }
}
const searchedKinds: ReadonlySet<string> = new Set(listKinds)

/** Asks Kafka until it answers. @throws StopError for what no patience helps against */
const kafkaAnswers = <Result>(
  attempt: () => Promise<Result>,
  health: Health,
  { signal, patience }: Context,
): Promise<Result> =>
  keepTrying(() => attempt().catch(asUnavailable), signal, {
    ...patience,
    onTrouble: trouble => health.set('kafka', trouble && 'does not answer'),
  })

const asUnavailable = (error: unknown): never => {
  if (error instanceof StopError) throw error
  if (error instanceof Error && /SASL|Authentication|Authorization/i.test(error.name)) {
    throw new StopError('access_refused', `Kafka: ${error.name}`)
  }
  throw new Unavailable(0)
}
