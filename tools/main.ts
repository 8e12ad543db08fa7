/** All commands, such as `npm run parked`: reads command line and settings, builds clients, runs a command, exits. */

import { createReadStream, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { kafkaAccess, kafkaConfig, openAuthorizedOperations, openCluster } from '../core/log/index.ts'
import { createOpenRecords, keySourcesOf } from '../core/reading/index.ts'
import {
  elasticsearchSettings,
  endAtUnhandledErrors,
  kafkaSettings,
  projectorSettings,
  type Read,
  readSettings,
  sealSettings,
} from '../core/runtime/index.ts'
import { authOf, createCredentials, createElasticsearch, elasticsearchConfig } from '../core/store/index.ts'
import { type AccessIdentity, type IdentityName, identities } from '../schemas/access.ts'
import { explain } from './analysis/explain.ts'
import { type ReplaySteps, replay } from './analysis/replay.ts'
import { sourceInArchive, sourceInKafka } from './analysis/replay-source.ts'
import { type AdoptSourceSteps, adoptSource } from './archive/adopt-source.ts'
import { type ArchiveSteps, archive } from './archive/archive.ts'
import { targetOpener } from './archive/open-target.ts'
import { restore } from './archive/restore.ts'
import { verifyTarget } from './archive/verify.ts'
import { type CommandContext, type KafkaContext, topicsOf } from './context.ts'
import { type CheckedIdentity, type DoctorContext, doctor } from './doctor/doctor.ts'
import { pingRedis } from './doctor/ping-redis.ts'
import { checkedSealKeysIn } from './doctor/seal-keys.ts'
import { auditTopicIn, settingsOf, valuesIn } from './doctor/settings.ts'
import { type ExportSteps, exportOrganization } from './export/export.ts'
import { follow } from './export/follow.ts'
import { runningProcesses } from './export/lock.ts'
import { sourceOf } from './export/manifest.ts'
import { openReaders } from './export/readers.ts'
import { writeReference } from './export/reference.ts'
import { openSealKeys } from './export/seal-keys.ts'
import { showTotals } from './export/totals.ts'
import { exitCodes, messageOf } from './failures.ts'
import { adopt, type TakeOverContext } from './generations/adopt.ts'
import { diff } from './generations/diff.ts'
import { drop } from './generations/drop.ts'
import { listGenerations } from './generations/generations.ts'
import { type RebuildSteps, rebuild } from './generations/rebuild.ts'
import { rewind } from './generations/rewind.ts'
import { dropSandbox, findAny, listSandboxes } from './generations/sandboxes.ts'
import { status } from './generations/status.ts'
import { rollback, swap } from './generations/swap.ts'
import { upgradeKeys } from './generations/upgrade-keys.ts'
import { verify } from './generations/verify.ts'
import { createKey, listKeys, revokeKey } from './keys/keys.ts'
import { rotateKey } from './keys/rotate.ts'
import { createOutput } from './output.ts'
import * as parked from './parked/parked.ts'
import { runProgram } from './program.ts'
import { createStop } from './signals.ts'
import { eraseSubject, listSubjects, reportSubject, type SubjectsContext } from './subjects/subjects.ts'
import { checkRules } from './validate/check-rules.ts'
import { type ValidateSteps, validateFile } from './validate/validate.ts'

const out = createOutput(process.stdout)
/** Overwrites the progress line. */
const say = (line: string): void => void process.stderr.write(`${process.stderr.isTTY ? '\r\u001b[K' : ''}${line}\n`)

const draw = process.stderr.isTTY ? (line: string): void => void process.stderr.write(`\r\u001b[K${line}`) : undefined

const stoppedBySignal = createStop(say, process)

const main = async (args: readonly string[]): Promise<number> => {
  await using stack = new AsyncDisposableStack()
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
  ) => ({
    ...readContext(settings),
    kafka: new kafkajs.Kafka(kafkaConfig(settings, 'commission-commands', readFileSync)),
    topics: topicsOf(settings),
  })
  /** A signal ends its waits. */
  const interruptible = <Context extends KafkaContext>(context: Context, signal = stoppedBySignal()) => {
    const sleep = async (milliseconds: number): Promise<void> => {
      await context.sleep(milliseconds)
      signal.throwIfAborted()
    }
    return { ...context, sleep, signal }
  }
  const erasing = (): SubjectsContext => ({ ...readContext(), keys: sealKeys(), draw, signal: stoppedBySignal() })
  const targetSteps = (signal = stoppedBySignal()) => {
    const wait = (milliseconds: number) => sleep(milliseconds, undefined, { signal }).catch(() => undefined)
    const steps = { say, elapsed, signal, sleep: wait, now: time.now, random: Math.random }
    return { signal, openTarget: targetOpener({ ...steps, environment: process.env, readFile: readFileSync }) }
  }
  const groupId = (): string => readSettings(projectorSettings, process.env, readFileSync).KAFKA_GROUP_ID
  const generationSteps = (
    settings: Pick<Read<typeof projectorSettings>, 'ELASTICSEARCH_SHARDS' | 'ELASTICSEARCH_REPLICAS'>,
  ) => ({
    retryOptions: {
      sleep: (milliseconds: number, signal: AbortSignal) => sleep(milliseconds, undefined, { signal }),
      random: Math.random,
    },
    signal: stoppedBySignal(),
    shards: settings.ELASTICSEARCH_SHARDS,
    replicas: settings.ELASTICSEARCH_REPLICAS,
    draw,
  })
  const rebuilding = (settings = readSettings(projectorSettings, process.env, readFileSync)): RebuildSteps => {
    const config = kafkaConfig(settings, 'commission-rebuild', readFileSync)
    const { kafkaWithConnectHook, openLog } = kafkaAccess(config, config => new kafkajs.Kafka(config))
    return {
      ...kafkaContext(settings),
      kafkaWithConnectHook,
      openLog,
      ...generationSteps(settings),
      groupId: settings.KAFKA_GROUP_ID,
    }
  }
  /** Needs no settings for Kafka. */
  const replayingArchive = (): ReplaySteps => {
    const { ELASTICSEARCH_SHARDS, ELASTICSEARCH_REPLICAS } = projectorSettings
    const names = { ...elasticsearchSettings, ELASTICSEARCH_SHARDS, ELASTICSEARCH_REPLICAS }
    const settings = readSettings(names, process.env, readFileSync)
    return { ...readContext(settings), ...generationSteps(settings) }
  }
  const sealKeys = () => keySourcesOf(readSettings(sealSettings, process.env, readFileSync))
  const later = (milliseconds: number, run: () => void) => {
    const timeout = setTimeout(run, milliseconds).unref()
    return () => clearTimeout(timeout)
  }
  /** @param named a generation, or `sandbox:NAME`; the live generation by default */
  const exporting = async (named?: string): Promise<ExportSteps> => {
    const settings = readSettings(elasticsearchSettings, process.env, readFileSync)
    const client = clientOf(settings)
    const credentials = createCredentials(() => authOf(settings))
    const send = createElasticsearch(client, credentials).send
    const ours = { out, say, send, prefix: settings.ELASTICSEARCH_INDEX_PREFIX, ...time }
    const { context, identity } = named === undefined ? { context: ours } : await findAny(named, ours)
    const read = { client, credentials, prefix: context.prefix, generation: identity?.generation }
    const signal = stoppedBySignal()
    return {
      ...openReaders({ ...read, elapsed, now: time.now, sleep: time.sleep, signal }),
      ...context,
      draw,
      signal,
      sourceOf: sourceOf(context),
      processes: runningProcesses,
      openRecords: createOpenRecords(openSealKeys(sealKeys(), { elapsed, later, say })),
    }
  }
  const archiving = (settings = readSettings(kafkaSettings, process.env, readFileSync)): ArchiveSteps => {
    const config = kafkaConfig(settings, 'commission-archive', readFileSync)
    const kafka = new kafkajs.Kafka(config)
    const targets = targetSteps()
    return {
      ...{ out, say, draw, kafka, processes: runningProcesses, ...time, ...targets },
      topics: topicsOf(settings),
      openCluster: topic => openCluster({ config, logger: kafka.logger() }, topic, targets.signal),
    }
  }
  const takingOver = (): TakeOverContext => {
    const context = kafkaContext()
    const config = kafkaConfig(readSettings(kafkaSettings, process.env, readFileSync), 'commission-adopt', readFileSync)
    const { signal } = new AbortController()
    return {
      ...context,
      openCluster: topic => openCluster({ config, logger: context.kafka.logger() }, topic, signal),
    }
  }
  const adopting = (steps = archiving()): AdoptSourceSteps => ({
    ...steps,
    ...interruptible(kafkaContext(), steps.signal),
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
    const { REDIS_URL: redis } = settings
    const checked = {
      values: valuesIn(settings),
      settings,
      sealKeys: checkedSealKeysIn(name, settings, readFileSync),
      ...(elasticsearch && { send: createElasticsearch(clientOf(read(elasticsearchSettings))).send }),
      ...(typeof redis === 'string' && { pingRedis: () => pingRedis(redis) }),
    }
    if (rights.length === 0 || (name === 'api' && auditTopicIn(settings) === undefined)) return checked
    const given = read(kafkaSettings)
    const config = kafkaConfig(given, 'commission-doctor', readFileSync)
    const { kafka, openLog } = kafkaAccess(config, config => new kafkajs.Kafka(config))
    const open = () => openAuthorizedOperations(config, kafka.logger())
    return { ...checked, kafka: { admin: kafka.admin(), open, openLog, messageBytes: given.KAFKA_MAX_MESSAGE_BYTES } }
  }
  const doctorContext = (): DoctorContext => ({
    ...{ out, say, checkedIdentityOf, readFile: readFileSync, now: Date.now, signal: stoppedBySignal() },
    hasKafka: Boolean(process.env.KAFKA_BROKERS),
  })
  // Awaited here: without `await` the clients would be closed while the command runs.
  return await runProgram(
    args,
    {
      list: async options => parked.listParked(options, readContext()),
      count: async options => parked.count(options, readContext()),
      show: async options => parked.showParked(options, readContext()),
      again: async options => parked.again(options, interruptible(kafkaContext())),
      createKey: async options => createKey(options, kafkaContext()),
      listKeys: async options => listKeys(options, readContext()),
      revokeKey: async options => revokeKey(options, kafkaContext()),
      listSubjects: async options => listSubjects(options, erasing()),
      reportSubject: async options => reportSubject(options, erasing()),
      eraseSubject: async options => eraseSubject(options, erasing()),
      rotateKey: async options => rotateKey(options, kafkaContext()),
      upgradeKeys: async options => upgradeKeys(options, kafkaContext(), groupId()),
      listGenerations: async options => listGenerations(options, readContext()),
      status: async options => status(options, kafkaContext()),
      rebuild: async options => rebuild(options, rebuilding()),
      verify: async options => verify(options, readContext()),
      swap: async options => swap(options, readContext()),
      rollback: async options => rollback(options, readContext()),
      rewind: async options => rewind(options, takingOver(), groupId()),
      adopt: async ({ archive: address, redacted, json }) =>
        address === undefined
          ? adopt({ json }, takingOver(), groupId())
          : adoptSource({ archive: address, redacted, json }, adopting(), groupId()),
      drop: async options => drop(options, kafkaContext(), groupId()),
      replay: async options => {
        if (options.fromArchive === undefined) {
          const steps = rebuilding()
          return replay(options, steps, sourceInKafka({ ...steps, openCluster: archiving().openCluster }))
        }
        const steps = replayingArchive()
        return replay(options, steps, sourceInArchive(options.fromArchive, { ...steps, ...targetSteps(steps.signal) }))
      },
      diff: async options => diff(options, { ...readContext(), out }),
      explain: async options => explain(options, readContext()),
      exportOrganization: async options => exportOrganization(options, await exporting(options.generation)),
      showTotals: async options => showTotals(options, await exporting(options.generation)),
      listSandboxes: async options => listSandboxes(options, readContext()),
      // Without settings for Kafka: a sandbox from an archive.
      dropSandbox: async options => {
        if (!process.env.KAFKA_BROKERS) return dropSandbox(options, readContext(), undefined)
        const context = kafkaContext()
        return dropSandbox(options, context, { kafka: context.kafka, groupId: groupId() })
      },
      follow: async options => follow(options, { ...(await exporting()), out }),
      archive: async options => archive(options, archiving()),
      verifyArchive: async options =>
        verifyTarget(options, { out, say, draw, elapsed, sleep: time.sleep, ...targetSteps() }),
      restore: async options => restore(options, { ...archiving(), keysDirectory: () => sealKeys()?.directory }),
      reference: async options => writeReference(options, { say }),
      validate: async options => validateFile(options, validating()),
      doctor: async options => doctor(options, doctorContext()),
      checkRules: async options => checkRules(options, validating()),
    },
    { out, error: text => void process.stderr.write(text) },
  )
}

// The output is incomplete: the command has failed, whatever its exit code.
const outputIsLost = (error: Error): void => {
  const { code }: NodeJS.ErrnoException = process.stdout.errored ?? error
  say(code === 'EPIPE' ? 'stopped: nobody reads the output any more' : `the output cannot be written: ${code}`)
  process.exit(exitCodes.failed)
}
process.stdout.on('error', outputIsLost)
// Nobody reads the messages: the command continues.
process.stderr.on('error', () => undefined)
endAtUnhandledErrors(process, ({ error, at }) => say([`a defect: ${error}`, ...at].join('\n  ')))
const code = await main(process.argv.slice(2)).catch((error: unknown) => {
  say(messageOf(error))
  return exitCodes.failed
})
// Open connections must not keep the process alive. Output that is written goes out first.
process.stdout.write('', error => (error ? outputIsLost(error) : process.exit(code)))
