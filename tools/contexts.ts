/** The inputs of each command: reads the settings in the environment, and builds the clients that the command needs. */
import { createReadStream, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { styleText } from 'node:util'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import {
  createMissingTopics,
  kafkaAccess,
  kafkaConfig,
  openAuthorizedOperations,
  openCluster,
} from '../core/log/index.ts'
import { createOpenRecords, keySourcesOf } from '../core/reading/index.ts'
import {
  elasticsearchSettings,
  kafkaSettings,
  projectorSettings,
  type Read,
  readSettings,
  StopError,
  sealSettings,
  topicSettings,
} from '../core/runtime/index.ts'
import { authOf, createCredentials, createElasticsearch, elasticsearchConfig } from '../core/store/index.ts'
import { type AccessIdentity, type IdentityName, identities } from '../schemas/access.ts'
import type { ReplaySteps } from './analysis/replay.ts'
import type { AdoptSourceSteps } from './archive/adopt-source.ts'
import type { ArchiveSteps } from './archive/archive.ts'
import { targetOpener } from './archive/open-target.ts'
import { type ClusterContext, type CommandContext, type Out, topicsOf } from './context.ts'
import { checkRedis } from './doctor/check-redis.ts'
import type { CheckedIdentity, DoctorContext } from './doctor/doctor.ts'
import { checkedSealKeysIn } from './doctor/seal-keys.ts'
import { auditTopicIn, settingsOf, valuesIn } from './doctor/settings.ts'
import type { CloseSteps } from './evidence/close.ts'
import type { ExportSteps } from './export/export.ts'
import { runningProcesses } from './export/lock.ts'
import { sourceOf } from './export/manifest.ts'
import { openReaders, openReads } from './export/readers.ts'
import { openSealKeys, receiptsIn } from './export/seal-keys.ts'
import { CommandError } from './failures.ts'
import type { RebuildSteps } from './generations/rebuild.ts'
import { findWhole } from './generations/sandboxes.ts'
import type { GrowSteps } from './grow/grow.ts'
import type { SubjectsContext } from './subjects/subjects.ts'
import type { ValidateSteps } from './validate/validate.ts'

export type ContextSteps = {
  readonly out: Out<string | Buffer>
  readonly say: (line: string) => void
  /** Redraws one line; undefined without a terminal. */
  readonly draw: ((line: string) => void) | undefined
  readonly stoppedBySignal: () => AbortSignal
}
type Exported = { readonly generation?: string | undefined; readonly org?: string }
export type Contexts = ReturnType<typeof createContexts>

const colours = { ok: 'green', warning: 'yellow', failed: 'red', 'not tried': 'dim' } as const

/** @param stack gets the clients, to close them */
export const createContexts = (stack: AsyncDisposableStack, { out, say, draw, stoppedBySignal }: ContextSteps) => {
  const clientOf = (settings: Read<typeof elasticsearchSettings>): Client => {
    const client = new Client(elasticsearchConfig(settings, readFileSync))
    stack.defer(() => client.close())
    return client
  }
  const elapsed = () => performance.now()
  const time = { sleep: (milliseconds: number) => sleep(milliseconds), now: Date.now, elapsed }
  // Each command builds the clients that it needs, so that help needs no settings.
  const readContext = (settings = readSettings(elasticsearchSettings, process.env, readFileSync)): CommandContext => {
    return {
      out,
      say,
      send: createElasticsearch(
        clientOf(settings),
        createCredentials(() => authOf(settings)),
      ).send,
      prefix: settings.ELASTICSEARCH_INDEX_PREFIX,
      ...time,
    }
  }
  const kafkaContext = (
    settings = readSettings({ ...elasticsearchSettings, ...kafkaSettings }, process.env, readFileSync),
    signal = new AbortController().signal,
  ): ClusterContext => {
    const config = kafkaConfig(settings, 'commission-commands', readFileSync, Date.now)
    const kafka = new kafkajs.Kafka(config)
    return {
      ...readContext(settings),
      kafka,
      topics: topicsOf(settings),
      openCluster: topic => openCluster({ config, logger: kafka.logger() }, topic, signal),
    }
  }
  /** A signal ends its waits. */
  const interruptible = <Context extends CommandContext>(context: Context, signal = stoppedBySignal()) => {
    const sleep = async (milliseconds: number): Promise<void> => {
      await context.sleep(milliseconds)
      signal.throwIfAborted()
    }
    return { ...context, sleep, signal }
  }
  const erasing = (): SubjectsContext => ({ ...interruptible(readContext()), keys: sealKeys(), draw })
  const targetSteps = (signal = stoppedBySignal()) => {
    const wait = (milliseconds: number) => sleep(milliseconds, undefined, { signal }).catch(() => undefined)
    const steps = { say, elapsed, signal, sleep: wait, now: time.now, random: Math.random }
    return { signal, openTarget: targetOpener({ ...steps, environment: process.env, readFile: readFileSync }) }
  }
  const groupId = (): string => readSettings(projectorSettings, process.env, readFileSync).KAFKA_GROUP_ID
  const generationSteps = (settings: Pick<Read<typeof projectorSettings>, keyof typeof sizeSettings>) => ({
    retryOptions: {
      sleep: (milliseconds: number, signal: AbortSignal) => sleep(milliseconds, undefined, { signal }),
      random: Math.random,
    },
    signal: stoppedBySignal(),
    shards: settings.ELASTICSEARCH_SHARDS,
    routingPartitionSize: settings.ELASTICSEARCH_ROUTING_PARTITION_SIZE,
    replicas: settings.ELASTICSEARCH_REPLICAS,
    draw,
  })
  const rebuilding = (
    settings = readSettings(projectorSettings, process.env, readFileSync),
  ): RebuildSteps & ClusterContext => {
    const config = kafkaConfig(settings, 'commission-rebuild', readFileSync, Date.now)
    const { kafkaWithConnectHook, openLog } = kafkaAccess(config, config => new kafkajs.Kafka(config))
    const steps = generationSteps(settings)
    return {
      ...kafkaContext(settings, steps.signal),
      kafkaWithConnectHook,
      openLog,
      ...steps,
      groupId: settings.KAFKA_GROUP_ID,
    }
  }
  const growing = (): GrowSteps => {
    const settings = readSettings({ ...projectorSettings, ...topicSettings }, process.env, readFileSync)
    const context = rebuilding(settings)
    return { ...interruptible(context, context.signal), topicSettings: settings }
  }
  /** Needs no settings for Kafka. */
  const replayingArchive = (): ReplaySteps => {
    const settings = readSettings({ ...elasticsearchSettings, ...sizeSettings }, process.env, readFileSync)
    return { ...readContext(settings), ...generationSteps(settings) }
  }
  const sealKeys = () => keySourcesOf(readSettings(sealSettings, process.env, readFileSync))
  const later = (milliseconds: number, run: () => void) => {
    const timeout = setTimeout(run, milliseconds).unref()
    return () => clearTimeout(timeout)
  }
  /** @param generation a generation, or `sandbox:NAME`; the live generation by default */
  const exporting = async ({ generation, org }: Exported = {}): Promise<ExportSteps> => {
    const settings = readSettings(elasticsearchSettings, process.env, readFileSync)
    const client = clientOf(settings)
    const credentials = createCredentials(() => authOf(settings))
    const send = createElasticsearch(client, credentials).send
    const ours = { out, say, send, prefix: settings.ELASTICSEARCH_INDEX_PREFIX, ...time }
    const { context, identity } = generation === undefined ? { context: ours } : await findWhole(generation, ours, org)
    const read = { client, credentials, prefix: context.prefix, generation: identity?.generation }
    const signal = stoppedBySignal()
    const openKeys = openSealKeys(sealKeys(), { elapsed, later, say })
    return {
      ...openReaders({ ...read, elapsed, now: time.now, sleep: time.sleep, signal }),
      ...context,
      ...(identity && { identity }),
      draw,
      signal,
      sourceOf: sourceOf(context),
      processes: runningProcesses,
      openRecords: () => createOpenRecords(openKeys()),
      readReceipts: () => receiptsIn(sealKeys()),
    }
  }
  const closing = async (): Promise<CloseSteps> => ({ ...(await exporting()), ...readContext() })
  const archiving = (settings = readSettings(kafkaSettings, process.env, readFileSync)): ArchiveSteps => {
    const config = kafkaConfig(settings, 'commission-archive', readFileSync, Date.now)
    const kafka = new kafkajs.Kafka(config)
    const targets = targetSteps()
    return {
      ...{ out, say, draw, kafka, processes: runningProcesses, ...time, ...targets },
      topics: topicsOf(settings),
      openCluster: topic => openCluster({ config, logger: kafka.logger() }, topic, targets.signal),
    }
  }
  const adopting = (steps = archiving()): AdoptSourceSteps => ({
    ...steps,
    ...interruptible(kafkaContext(undefined, steps.signal), steps.signal),
  })
  const validating = (): ValidateSteps => ({
    ...{ out, say, draw, now: Date.now },
    open: file => (file === '-' ? process.stdin : createReadStream(file)),
    context: () => readContext(),
    signal: stoppedBySignal(),
  })
  const checkedIdentityOf = (name: IdentityName): CheckedIdentity => {
    const settings: Readonly<Record<string, unknown>> = readSettings(settingsOf(name), process.env, readFileSync)
    const { kafka: rights, elasticsearch }: AccessIdentity = identities[name]
    const read = <Settings extends Parameters<typeof readSettings>[0]>(names: Settings) =>
      readSettings(names, process.env, readFileSync)
    const { REDIS_URL: redis, ELASTICSEARCH_INDEX_PREFIX: prefix } = settings
    const checked = {
      values: valuesIn(settings),
      settings,
      sealKeys: checkedSealKeysIn(name, settings, readFileSync),
      ...(elasticsearch && { send: createElasticsearch(clientOf(read(elasticsearchSettings))).send }),
      ...(name === 'api' && { reads: openReads(clientOf(read(elasticsearchSettings)), elapsed) }),
      ...(typeof redis === 'string' && { checkRedis: () => checkRedis(redis, String(prefix)) }),
    }
    if (rights.length === 0 || (name === 'api' && auditTopicIn(settings) === undefined)) return checked
    const given = read(kafkaSettings)
    const config = kafkaConfig(given, 'commission-doctor', readFileSync, Date.now)
    const { kafka, openLog } = kafkaAccess(config, config => new kafkajs.Kafka(config))
    const open = () => openAuthorizedOperations(config, kafka.logger())
    return { ...checked, kafka: { admin: kafka.admin(), open, openLog, messageBytes: given.KAFKA_MAX_MESSAGE_BYTES } }
  }
  /** Creates the missing topics. @param onLine called with a line for each topic */
  const createTopics = async (onLine: (line: string) => void): Promise<void> => {
    const settings = readSettings({ ...kafkaSettings, ...topicSettings }, process.env, readFileSync)
    const admin = new kafkajs.Kafka(kafkaConfig(settings, 'commission-topics', readFileSync, Date.now)).admin()
    await admin.connect()
    try {
      await createMissingTopics(settings, { admin, sleep, say: onLine })
    } catch (error) {
      if (error instanceof StopError || !(error instanceof Error)) throw error
      // The client's message is safe: it names brokers and topics only.
      throw new CommandError(`Kafka: ${error.message}`)
    } finally {
      await admin.disconnect()
    }
  }
  const doctorContext = (): DoctorContext => ({
    ...{ out, say, checkedIdentityOf, readFile: readFileSync, now: Date.now, signal: stoppedBySignal() },
    hasKafka: Boolean(process.env.KAFKA_BROKERS),
    // Without colours if the output is no terminal, or with NO_COLOR.
    paint: (outcome, text) => styleText(colours[outcome], text, { stream: process.stdout }),
  })
  return {
    out,
    say,
    draw,
    time,
    readContext,
    kafkaContext,
    interruptible,
    erasing,
    targetSteps,
    groupId,
    rebuilding,
    growing,
    replayingArchive,
    sealKeys,
    exporting,
    closing,
    archiving,
    adopting,
    validating,
    doctorContext,
    /** Whether the environment has the addresses of Kafka. */
    hasKafka: Boolean(process.env.KAFKA_BROKERS),
    createTopics,
  }
}

/** The settings of new indices. */
const { ELASTICSEARCH_SHARDS, ELASTICSEARCH_ROUTING_PARTITION_SIZE, ELASTICSEARCH_REPLICAS } = projectorSettings
const sizeSettings = { ELASTICSEARCH_SHARDS, ELASTICSEARCH_ROUTING_PARTITION_SIZE, ELASTICSEARCH_REPLICAS }
