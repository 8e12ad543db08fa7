/**
 * The whole projector, from two reachable services to two streams that flow: commission events and API keys.
 *
 * The live generation is looked up or, at a first start, created; each stream then runs by itself until the signal, or
 * until something stops both.
 */
import type { Admin, Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  indexOf,
  listKinds,
} from '../schemas/documents.ts'
import type { projectorSettings, Read } from '../schemas/settings.ts'
import { startAdmin } from './admin.ts'
import { type Elasticsearch, keepTrying, type Patience, Unavailable } from './elasticsearch.ts'
import { StopError } from './failures.ts'
import { createHealth, type Health } from './health.ts'
import { DISCONNECT_TIMEOUT_MS, REPORT_INTERVAL_MS, STREAMS_STOP_TIMEOUT_MS } from './limits.ts'
import { createMetrics } from './metrics.ts'
import { makeFirstLive, type PrepareSteps, prepareCommon, prepareGeneration, readLive } from './prepare.ts'
import { readPosition } from './publish.ts'
import { checkTopicConfiguration, describeSource, fetchEnds, type Identity, type SourceAdmin } from './source.ts'
import { readStatus } from './status.ts'
import { type RunningStream, type StreamContext, type StreamOptions, startStream, type Tampering } from './stream.ts'

export type Context = {
  readonly kafka: Kafka
  /** The same, for a consumer whose connections must be heard of. */
  readonly kafkaHeard: StreamContext['kafkaHeard']
  readonly elasticsearch: Elasticsearch
  readonly log: Logger
  readonly now: () => number
  readonly patience: Omit<Patience, 'onTrouble'>
  readonly signal: AbortSignal
} & Tampering

export type Settings = Read<typeof projectorSettings>

/** Runs until the signal. @throws StopError, or whatever else stopped it */
export const runProjector = async (settings: Settings, context: Context): Promise<void> => {
  const { kafka, kafkaHeard, log, signal, patience, now, elasticsearch, ...tampering } = context
  const failure = Promise.withResolvers<never>()
  failure.promise.catch(() => undefined)
  await using stack = new AsyncDisposableStack()
  const health = createHealth(log, now)
  const streams: RunningStream[] = []
  let prepared: readonly { readonly identity: Identity; readonly parkedIndex: string }[] = []
  const metrics = createMetrics(() => streams.flatMap(stream => stream.status()))

  // What stops us must not be held up by what may be the reason.
  const disconnect = (client: Pick<Admin, 'disconnect'>): Promise<void> =>
    Promise.race([
      client.disconnect().catch(() => undefined),
      patience.sleep(DISCONNECT_TIMEOUT_MS, new AbortController().signal),
    ])
  const admin = kafka.admin()
  health.prepare('start', 'preparing')
  const server = await startAdmin(settings.PROJECTOR_ADMIN_HOST, settings.PROJECTOR_ADMIN_PORT, {
    health,
    registry: metrics.registry,
    status: () => statusOfAll(prepared, settings.ELASTICSEARCH_INDEX_PREFIX, admin, elasticsearch),
  })
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  log.info({ address: server.address() }, 'admin port')
  stack.defer(() => disconnect(admin))

  const work = async (): Promise<void> => {
    const both = await prepare(settings, admin, health, context)
    // Both at once: a status of one topic only would look as if the other had nothing to wait for.
    prepared = both.map(({ identity, indexOf }) => ({ identity, parkedIndex: indexOf('parked') }))
    for (const options of both) {
      if (signal.aborted) return
      // An admin client of its own: the client's calls for two topics at once disturb each other's metadata.
      const streamAdmin = kafka.admin()
      stack.defer(() => disconnect(streamAdmin))
      await kafkaAnswers(() => streamAdmin.connect(), health, context)
      const stream = await startStream(options, {
        kafkaHeard,
        admin: streamAdmin,
        elasticsearch,
        patience,
        now,
        health,
        metrics: metrics.of(options.stream),
        fail: failure.reject,
        ...tampering,
      })
      streams.push(stream)
    }
    health.set('start', undefined)
    log.info('projecting')
  }
  const ended = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => ended.resolve(), { once: true })

  const report = setInterval(() => {
    for (const { topic, partition, readTo, writtenTo, searchableTo, committedTo, end } of streams.flatMap(s =>
      s.status(),
    )) {
      log.info({ topic, partition, readTo, writtenTo, searchableTo, committedTo, lag: end - searchableTo }, 'position')
    }
  }, REPORT_INTERVAL_MS)
  stack.defer(() => clearInterval(report))

  const working = work().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  try {
    await Promise.race([working.then(() => ended.promise), ended.promise, failure.promise])
  } catch (error) {
    await Promise.allSettled(streams.map(stream => stream.abandon()))
    throw error
  }
  // A stream that is joining its group now is waited for: left half-way, it keeps a place there until its session ends.
  const begun = streams.length
  const stopAll = (from: number): Promise<unknown> => Promise.all(streams.slice(from).map(stream => stream.stop()))
  const stopped = Promise.all([stopAll(0), working.then(() => stopAll(begun))])
  await Promise.race([stopped, patience.sleep(STREAMS_STOP_TIMEOUT_MS, new AbortController().signal)])
}

/** Everything that must be so before the first record, for both streams. Waits for Kafka and Elasticsearch to be there. */
export const prepare = async (
  settings: Settings,
  admin: SourceAdmin & { connect(): Promise<void> },
  health: Health,
  context: Context,
): Promise<StreamOptions[]> => {
  const { elasticsearch, patience, signal, log } = context
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const ask: PrepareSteps['request'] = request =>
    keepTrying(() => elasticsearch.send(request, signal), signal, {
      ...patience,
      onTrouble: trouble => health.set('elasticsearch', trouble?.message),
    })
  const steps: PrepareSteps = { request: ask, prefix, shards: settings.ELASTICSEARCH_SHARDS }
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
  const generation = (await readLive(steps)) ?? FIRST_GENERATION
  const eventsIdentity = await prepareGeneration(generation, events.source, events.ends, true, steps)
  const keysIdentity = await prepareGeneration(API_KEYS_GENERATION, apiKeys.source, apiKeys.ends, false, steps)
  await makeFirstLive(generation, steps)

  const controlIndex = controlIndexOf(prefix)
  // Keys that were revoked while nobody read are not served as valid: first up to where the topic ends now.
  const keysPosition = await readPosition(0, { index: controlIndex, generation: API_KEYS_GENERATION, request: ask })
  await keysPosition.advance({ serve_from: apiKeys.ends[0]?.end ?? 0 })

  const searchedKinds: ReadonlySet<string> = new Set(listKinds)
  return [
    {
      stream: 'api-keys',
      identity: keysIdentity,
      groupId: `${settings.KAFKA_GROUP_ID}-${API_KEYS_GENERATION}`,
      controlIndex,
      indexOf: place => (place === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)),
      // Keys are looked up by id only.
      searched: () => [],
    },
    {
      stream: 'events',
      identity: eventsIdentity,
      groupId: `${settings.KAFKA_GROUP_ID}-${generation}`,
      controlIndex,
      indexOf: place => (place === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, place)),
      searched: places =>
        [...places].flatMap(place =>
          searchedKinds.has(place) && place !== 'api-keys' ? [indexOf(prefix, generation, place)] : [],
        ),
    },
  ]
}

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

const statusOfAll = async (
  prepared: readonly { readonly identity: Identity; readonly parkedIndex: string }[],
  prefix: string,
  admin: SourceAdmin,
  elasticsearch: Elasticsearch,
) => {
  if (prepared.length === 0) return undefined
  try {
    const all = await Promise.all(
      prepared.map(({ identity, parkedIndex }) => readStatus(identity, parkedIndex, prefix, admin, elasticsearch)),
    )
    return all.flat()
  } catch {
    return undefined
  }
}
