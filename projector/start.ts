/**
 * Startup checks: topics, indices, live generation. They pass before the first record is read.
 */
import kafkajs, { type Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import type { projectorSettings, Read } from '../schemas/settings.ts'
import {
  API_KEYS_GENERATION,
  apiKeysIndexOf,
  apiKeysParkedIndexOf,
  controlIndexOf,
  FIRST_GENERATION,
  indexOf,
  listKinds,
} from '../schemas/stored/documents.ts'
import { generationIndices } from '../schemas/stored/mappings.ts'
import { type Ask, type Elasticsearch, keepTrying, type RetryOptions } from './elasticsearch/client.ts'
import { asUnavailable } from './elasticsearch/retry.ts'
import { StopError } from './failures.ts'
import { openPublishedPosition } from './flow/publish.ts'
import { createPublishedTimes } from './flow/publish-times.ts'
import { finishSwap, readGenerations } from './generations/generations.ts'
import {
  makeFirstLive,
  openGeneration,
  type PrepareSteps,
  prepareCommon,
  prepareGeneration,
  readGeneration,
  recordIndices,
  rulesChanged,
} from './generations/prepare.ts'
import type { Health } from './health.ts'
import {
  assertOnePartition,
  checkTopicConfiguration,
  describeSource,
  fetchEnds,
  type GenerationBody,
  type SourceAdmin,
} from './kafka/source.ts'
import { RULES_VERSION } from './rules/rules.ts'
import type { KafkaAccess } from './stream/kafka-log.ts'
import type { Wanted } from './stream/keep-up.ts'
import type { StreamContext, StreamOptions, TestHooks } from './stream/stream.ts'

export type StartContext = {
  readonly kafka: Kafka
  /** The same, with a callback for each new connection of a consumer. */
  readonly kafkaWithConnectHook: KafkaAccess['kafkaWithConnectHook']
  readonly elasticsearch: Elasticsearch
  readonly log: Logger
  readonly now: () => number
  readonly elapsed: StreamContext['elapsed']
  readonly retryOptions: Omit<RetryOptions, 'onTrouble'>
  readonly signal: AbortSignal
} & TestHooks

export type Settings = Read<typeof projectorSettings>

/**
 * Checks topics, indices and the live generation, and creates what a first start needs. Waits until Kafka and
 * Elasticsearch answer. Returns a function that lists the streams to run. Call it again to see changes: it reopens a
 * spare generation that failed.
 * @throws StopError when something does not fit
 */
export const prepare = async (
  settings: Settings,
  admin: SourceAdmin & { connect(): Promise<void> },
  health: Health,
  context: StartContext,
): Promise<(failed: readonly { readonly generation: string }[]) => Promise<Wanted>> => {
  const { elasticsearch, retryOptions, signal, log } = context
  const prefix = settings.ELASTICSEARCH_INDEX_PREFIX
  const request: Ask = asked =>
    keepTrying(() => elasticsearch.send(asked, signal), signal, {
      ...retryOptions,
      onTrouble: trouble => health.set('elasticsearch', trouble?.message),
    })
  const { rulesVersion = RULES_VERSION } = context
  const { ELASTICSEARCH_SHARDS: shards, ELASTICSEARCH_REPLICAS: replicas } = settings
  const steps: PrepareSteps = { request, prefix, shards, replicas, rulesVersion }
  const retry = <Result>(attempt: () => Promise<Result>): Promise<Result> => retryKafka(attempt, health, context)

  await retry(() => admin.connect())
  const described = async (topic: string) => {
    const source = await retry(() => describeSource(admin, topic))
    const warnings = await retry(() => checkTopicConfiguration(admin, topic, settings.KAFKA_MAX_MESSAGE_BYTES))
    for (const warning of warnings) log.warn({ topic }, warning)
    return { source, ends: await retry(() => fetchEnds(admin, topic)) }
  }
  const events = await described(settings.KAFKA_EVENTS_TOPIC)
  const apiKeys = await described(settings.KAFKA_API_KEYS_TOPIC)
  assertOnePartition(settings.KAFKA_API_KEYS_TOPIC, apiKeys.source.partitions)

  await prepareCommon(steps)
  const opened = new Map<string, StreamOptions>()
  const openKept = async (): Promise<Wanted> => {
    const generations = await readGenerations(steps)
    if (generations === undefined)
      throw new StopError('index_missing', `the live generation in ${controlIndexOf(prefix)}`)
    if (generations.minPositions === null) await finishInterruptedSwap(steps, health)
    // A dropped generation's name may be used again.
    for (const name of opened.keys()) if (!generations.active.includes(name)) opened.delete(name)
    const streams: StreamOptions[] = []
    const broken = new Map<string, StopError>()
    const others: GenerationBody[] = []
    for (const generation of generations.active) {
      try {
        const known = opened.get(generation)
        const identity = known?.identity ?? (await readGeneration(generation, steps))
        if (identity !== undefined && identity.rules_version !== rulesVersion) {
          others.push(identity)
          // The API relies on these ids, whichever program keeps the generation up.
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
    // Another program keeps up generations of another rules version. Without one of ours, there is nothing to do.
    const [other] = others
    if (streams.length === 0 && broken.size === 0 && other !== undefined) throw rulesChanged(other, rulesVersion)
    return { live: generations.live, streams, broken }
  }
  // Before the first write: existing generations must be of this source.
  const isFirst = (await readGenerations(steps)) === undefined
  if (isFirst) await prepareGeneration(FIRST_GENERATION, events.source, events.ends, true, steps)
  else await openKept()
  // Created before a generation is live: if one is live, they must exist.
  const keysIdentity = isFirst
    ? await prepareGeneration(API_KEYS_GENERATION, apiKeys.source, apiKeys.ends, false, steps)
    : await openGeneration(API_KEYS_GENERATION, apiKeys.source, false, steps)
  await makeFirstLive(FIRST_GENERATION, steps)

  const controlIndex = controlIndexOf(prefix)
  // Serve keys only after the present end of the topic is reached: some may have been revoked while no projector ran.
  const keysPosition = await openPublishedPosition(0, {
    index: controlIndex,
    generation: API_KEYS_GENERATION,
    request,
    replace: request,
    times: createPublishedTimes(controlIndex, API_KEYS_GENERATION, request),
  })
  await keysPosition.advance({ serve_from: apiKeys.ends[0]?.end ?? 0 })

  const keys: StreamOptions = {
    stream: 'api-keys',
    identity: keysIdentity,
    groupId: `${settings.KAFKA_GROUP_ID}-${API_KEYS_GENERATION}`,
    prefix,
    controlIndex,
    indexOf: kind => (kind === 'parked' ? apiKeysParkedIndexOf(prefix) : apiKeysIndexOf(prefix)),
    // Keys are looked up by id only.
    searchedIndices: () => [],
  }
  return async failed => {
    for (const { generation } of failed) opened.delete(generation)
    const wanted = await openKept()
    return { ...wanted, streams: [keys, ...wanted.streams] }
  }
}

/**
 * Finishes a swap that a command left unfinished. Readers wait until then. A failure is reported to health, and
 * projecting continues.
 */
const finishInterruptedSwap = async (steps: PrepareSteps, health: Health): Promise<void> => {
  try {
    await finishSwap(steps)
    health.set('swap', undefined)
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    health.set('swap', `cannot be finished: ${error.message}`)
  }
}

/** Returns the stream options of a generation. */
export const eventsOptions = (identity: GenerationBody, groupId: string, prefix: string): StreamOptions => {
  const { generation } = identity
  return {
    stream: 'events',
    identity,
    groupId: `${groupId}-${generation}`,
    prefix,
    controlIndex: controlIndexOf(prefix),
    indexOf: kind => (kind === 'api-keys' ? apiKeysIndexOf(prefix) : indexOf(prefix, generation, kind)),
    searchedIndices: kinds =>
      [...kinds].flatMap(kind =>
        searchedKinds.has(kind) && kind !== 'api-keys' ? [indexOf(prefix, generation, kind)] : [],
      ),
  }
}
const searchedKinds: ReadonlySet<string> = new Set(listKinds)

/** Retries until Kafka answers. @throws StopError for an error that no retry mends */
export const retryKafka = <Result>(
  attempt: () => Promise<Result>,
  health: Health,
  { signal, retryOptions }: StartContext,
): Promise<Result> =>
  keepTrying(() => attempt().catch(refuseCredentials), signal, {
    ...retryOptions,
    onTrouble: trouble => health.set('kafka', trouble && 'does not answer'),
  })

/** At the start, a failed authentication most likely means wrong credentials: later, it means a lost connection. */
const refuseCredentials = (error: unknown): never => {
  if (!(error instanceof kafkajs.KafkaJSSASLAuthenticationError)) return asUnavailable(error)
  throw new StopError('access_refused', `Kafka: ${error.name}`)
}
