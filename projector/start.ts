/**
 * Startup checks: topics, indices, live generation. They pass before the first record is read.
 */
import type { Kafka } from 'kafkajs'
import type { Logger } from 'pino'
import { RULES_VERSION } from '../core/ledger/index.ts'
import {
  assertOnePartition,
  assertSameSource,
  asUnanswered,
  checkTopicConfiguration,
  createLastRecordReader,
  describeSource,
  endOfPartition,
  failedAuthentication,
  fetchEnds,
  type GenerationBody,
  type KafkaAccess,
  type SourceAdmin,
  untilKafkaAnswers,
} from '../core/log/index.ts'
import { type StreamContext, type StreamOptions, streamOptions, type TestHooks } from '../core/projection/index.ts'
import {
  type Health,
  keepTrying,
  type projectorSettings,
  type Read,
  type Retrying,
  StopError,
} from '../core/runtime/index.ts'
import {
  type Ask,
  documentPath,
  type Elasticsearch,
  finishSwap,
  type Generations,
  ifVersion,
  makeFirstLive,
  openGeneration,
  type PrepareSteps,
  prepareCommon,
  prepareGeneration,
  readControl,
  readGeneration,
  readGenerations,
  readPositions,
  recordIndices,
  recordTopicId,
  rulesChanged,
  sendWhole,
  type ToldSetting,
} from '../core/store/index.ts'
import { KEYS_PARTITION } from '../schemas/partition.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  FIRST_GENERATION,
  type PositionDocument,
  positionId,
} from '../schemas/stored/documents.ts'
import { layoutOf } from '../schemas/stored/layout.ts'
import type { FailedSpare, Wanted } from './keep-up.ts'

export type StartContext = {
  readonly kafka: Kafka
  /** The same, with a callback for each new connection of a consumer. */
  readonly kafkaWithConnectHook: KafkaAccess['kafkaWithConnectHook']
  readonly openLog: KafkaAccess['openLog']
  readonly elasticsearch: Elasticsearch
  readonly log: Logger
  readonly now: () => number
  readonly elapsed: StreamContext['elapsed']
  readonly retryOptions: Retrying['retryOptions']
  readonly signal: AbortSignal
  /** Of new generations, if a test wants another one. */
  readonly layout?: PrepareSteps['layout']
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
): Promise<(failed: readonly FailedSpare[]) => Promise<Wanted>> => {
  const steps = stepsOf(settings, health, context)
  const retry: Retry = attempt => retryKafka(attempt, health, context)
  await retry(() => admin.connect().catch(refuseCredentials))
  const events = await checkTopic(settings.KAFKA_EVENTS_TOPIC, settings, admin, retry, context)
  const apiKeys = await checkTopic(settings.KAFKA_API_KEYS_TOPIC, settings, admin, retry, context)
  assertOnePartition(settings.KAFKA_API_KEYS_TOPIC, apiKeys.source.partitions)

  await prepareCommon(steps)
  // Records are compared here before anything is stored of a topic. Each stream does it again before its first record.
  const verify = (identity: GenerationBody) => retry(() => verifyStored(identity, steps, context))
  const openActive = createOpenActive(events.source, settings.KAFKA_GROUP_ID, verify, steps, health)
  // Before the first record: existing generations must be of this source.
  const isFirst = (await readGenerations(steps)) === undefined
  if (isFirst) await prepareGeneration(FIRST_GENERATION, events.source, events.ends, steps)
  else await openActive([])
  // The indices of API keys are created before a generation is live. A start that finds a live one requires them.
  const openedKeys = isFirst
    ? await prepareGeneration(API_KEYS_GENERATION, apiKeys.source, apiKeys.ends, steps)
    : await openGeneration(API_KEYS_GENERATION, apiKeys.source, steps)
  await makeFirstLive(FIRST_GENERATION, steps)
  await verify(openedKeys)
  const keysIdentity = await recordTopicId(openedKeys, apiKeys.source, async () => undefined, steps)
  const readEnd = async () =>
    endOfPartition(KEYS_PARTITION, await retry(() => fetchEnds(admin, settings.KAFKA_API_KEYS_TOPIC)))
  await serveKeysFrom(readEnd, steps)

  const keys = streamOptions(keysIdentity, settings.KAFKA_GROUP_ID, steps.prefix)
  return async failed => {
    const { served, ...wanted } = await openActive(failed)
    const ofEvents = served.topic === events.source.topic ? [events.source] : [served, events.source]
    const sources = [
      { stream: 'api-keys', ...apiKeys.source } as const,
      ...ofEvents.map(({ topic, partitions }) => ({ stream: 'events', topic, partitions }) as const),
    ]
    return { ...wanted, sources, streams: [keys, ...wanted.streams] }
  }
}

const stepsOf = (settings: Settings, health: Health, context: StartContext): Steps => {
  const { elasticsearch, retryOptions, signal, log, layout, rulesVersion = RULES_VERSION } = context
  const request: Ask = asked =>
    keepTrying(() => sendWhole(elasticsearch.send, asked, signal), signal, {
      ...retryOptions,
      onTrouble: trouble => health.set('elasticsearch', trouble?.message),
    })
  const {
    ELASTICSEARCH_INDEX_PREFIX: prefix,
    ELASTICSEARCH_SHARDS: shards,
    ELASTICSEARCH_ROUTING_PARTITION_SIZE: routingPartitionSize,
    ELASTICSEARCH_REPLICAS: replicas,
  } = settings
  const sizes = { shards, routingPartitionSize, replicas }
  const tellShards = (generation: string, shards: string): void =>
    log.warn({ generation, shards }, 'shards are compared from now on: nobody knows whether they lost documents before')
  return { request, prefix, ...sizes, layout, rulesVersion, tell: found => logSetting(found, log), tellShards }
}
const logSetting = ({ index, setting, expected, got, reason, put_back }: ToldSetting, log: Logger): void => {
  if (put_back) log.warn({ index, setting, expected, got, reason }, 'a setting of an index was put back')
  else log.warn({ index, setting, expected, got, reason }, 'a setting of an index is not as expected')
}
type Steps = PrepareSteps & { readonly rulesVersion: number }

type Retry = <Result>(attempt: () => Promise<Result>) => Promise<Result>

/** Returns the source and the ends of a topic. Logs each setting that weakens a guarantee. */
const checkTopic = async (
  topic: string,
  { KAFKA_MAX_MESSAGE_BYTES: messageBytes }: Settings,
  admin: SourceAdmin,
  retry: Retry,
  { log }: StartContext,
) => {
  const source = await retry(() => describeSource(admin, topic))
  const warnings = await retry(() => checkTopicConfiguration(admin, topic, messageBytes))
  for (const warning of warnings) log.warn({ topic }, warning)
  return { source, ends: await retry(() => fetchEnds(admin, topic)) }
}

/** Checks that the topic has the last known record of each partition. @throws StopError `source_changed` */
const verifyStored = async (
  identity: GenerationBody,
  steps: Steps,
  { openLog, signal, retryOptions }: StartContext,
) => {
  const positions = await readPositions(identity, steps)
  const pause = (milliseconds: number): Promise<void> => retryOptions.sleep(milliseconds, signal)
  const lastRecords = createLastRecordReader(identity, openLog, signal, pause)
  await lastRecords.verify(positions).finally(lastRecords.close)
}

type Verify = (identity: GenerationBody) => Promise<void>

/**
 * Returns a function that opens the active generations, except those of other projectors. Open ones stay open. `served`
 * is the topic of the live generation: while a topic grows, and afterwards, it may be that of other projectors.
 */
const createOpenActive = (source: Source, groupId: string, verify: Verify, steps: Steps, health: Health) => {
  const { prefix, rulesVersion } = steps
  const opened = new Map<string, StreamOptions>()

  /** Opens a generation. Returns its document instead if it has other rules or another topic: others project it. */
  const open = async (generation: string): Promise<GenerationBody | undefined> => {
    const found = await readGeneration(generation, steps)
    if (found === undefined || (found.rules_version === rulesVersion && found.topic === source.topic)) {
      const known = await openGeneration(generation, source, steps)
      const identity = await recordTopicId(known, source, verify, steps)
      opened.set(generation, streamOptions(identity, groupId, prefix))
      return undefined
    }
    // The API relies on these ids, whichever program projects the generation.
    await recordIndices(found, layoutOf(prefix, found).indices, steps)
    return found
  }

  return async (failed: readonly FailedSpare[]): Promise<Omit<Wanted, 'sources'> & { readonly served: Topic }> => {
    for (const { generation } of failed) opened.delete(generation)
    const generations = await readGenerations(steps)
    if (generations === undefined)
      throw new StopError('index_missing', `the live generation in ${controlIndexOf(prefix)}`)
    await finishInterruptedSwap(generations, steps, health)
    // A program of an older version may give the name of a dropped generation to another one.
    for (const name of opened.keys()) if (!generations.active.includes(name)) opened.delete(name)
    const broken = new Map<string, StopError>()
    let other: GenerationBody | undefined
    let served: Topic = source
    for (const generation of generations.active) {
      if (opened.has(generation)) continue
      try {
        const found = await open(generation)
        other ??= found
        if (generation === generations.live) served = found ?? source
      } catch (error) {
        if (generation === generations.live || !(error instanceof StopError)) throw error
        broken.set(generation, error)
      }
    }
    const streams = generations.active.flatMap(generation => opened.get(generation) ?? [])
    // Without a generation of our rules and our topic there is nothing to do.
    if (streams.length === 0 && broken.size === 0 && other !== undefined) {
      assertSameSource(other, source)
      throw rulesChanged(other, rulesVersion)
    }
    return { live: generations.live, served, streams, broken }
  }
}
type Source = Parameters<typeof openGeneration>[1]
type Topic = Pick<Source, 'topic' | 'partitions'>

/**
 * Lets the API serve keys only from the present end of the topic on: an older revocation must not be missed. A stored
 * offset above the end is of another topic, which an earlier version did not recognize: the API would wait for it for
 * ever. The stable end: no API has ever served what is behind it, and records there may vanish with a leader.
 */
const serveKeysFrom = async (readEnd: () => Promise<number>, { request, prefix }: Steps): Promise<void> => {
  const index = controlIndexOf(prefix)
  const id = positionId(API_KEYS_GENERATION, KEYS_PARTITION)
  for (;;) {
    const found = await readControl<PositionDocument>(id, { request, prefix })
    if (found === undefined) throw new StopError('index_missing', `${id} in ${index}`)
    const { body } = found._source
    // After the document: another start may have stored a later end.
    const serve_from = await readEnd()
    if (body.serve_from === serve_from) return
    const document: PositionDocument = { kind: 'position', body: { ...body, serve_from } }
    const { status } = await request({
      method: 'PUT',
      path: documentPath(index, id),
      query: ifVersion(found),
      body: document,
    })
    if (status === 200) return
    // 409: the owner of the partition has published, or another projector starts.
    if (status !== 409) throw new StopError('index_missing', `${index}, while publishing`, { status })
  }
}

/**
 * Finishes a swap that a command left unfinished, if there is one. Readers wait until then. A failure is reported to
 * health, and projecting continues.
 */
const finishInterruptedSwap = async (
  { minPositions }: Generations,
  steps: PrepareSteps,
  health: Health,
): Promise<void> => {
  try {
    if (minPositions === null) await finishSwap(steps)
    health.set('swap', undefined)
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    health.set('swap', `cannot be finished: ${error.message}`)
  }
}

/** Retries until Kafka answers. @throws StopError for an error that no retry mends */
const retryKafka = <Result>(
  attempt: () => Promise<Result>,
  health: Health,
  { signal, retryOptions }: StartContext,
): Promise<Result> => untilKafkaAnswers(() => attempt().catch(asUnanswered), signal, { retryOptions, health })

/** At the first connection, a failed authentication means wrong credentials: after it, a lost connection. */
const refuseCredentials = (error: unknown): never => {
  const refused = failedAuthentication(error)
  if (refused === undefined) return asUnanswered(error)
  throw new StopError('access_refused', `Kafka: ${refused}`)
}
