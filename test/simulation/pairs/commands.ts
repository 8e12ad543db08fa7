/** The real commands of an operator, each in its own simulated process, which can be killed at any request. */

import type { LogCluster } from '../../../core/log/records/open-cluster.ts'
import { momentOf } from '../../../core/reading/index.ts'
import { replay } from '../../../tools/analysis/replay.ts'
import { sourceInKafka } from '../../../tools/analysis/replay-source.ts'
import { directoryTarget } from '../../../tools/archive/target.ts'
import { addPart } from '../../../tools/export/add-part.ts'
import { exportOrganization } from '../../../tools/export/export.ts'
import type { Processes } from '../../../tools/export/lock.ts'
import { sourceOf } from '../../../tools/export/manifest.ts'
import { readThrough } from '../../../tools/export/readers.ts'
import type { ExitCode } from '../../../tools/failures.ts'
import { drop } from '../../../tools/generations/drop.ts'
import { listGenerations } from '../../../tools/generations/generations.ts'
import { rebuild } from '../../../tools/generations/rebuild.ts'
import { dropSandbox, listSandboxes } from '../../../tools/generations/sandboxes.ts'
import { rollback, swap } from '../../../tools/generations/swap.ts'
import { verify } from '../../../tools/generations/verify.ts'
import { again } from '../../../tools/parked/parked.ts'
import type { Broker } from '../broker.ts'
import { SimulatedProcess } from '../clock.ts'
import { openSimulatedCluster } from '../cluster.ts'
import { API_KEYS, EVENTS } from '../history.ts'
import { createKafka } from '../kafka.ts'
import { createLink } from '../link.ts'
import { type Services, settings } from '../projector.ts'
import { PREFIX } from '../promises.ts'
import { createSearches } from '../searches.ts'
import { withFiles } from './files.ts'
import { carryOutOnSource, isOnSource, type SourceTold } from './source-commands.ts'

export const names = ['rebuild', 'verify', 'swap', 'rollback', 'drop', 'replay', 'export', 'publish-again'] as const
export type Name = (typeof names)[number]

export type Told =
  | { readonly name: 'rebuild' | 'rollback' | 'list' | 'list sandboxes' }
  | { readonly name: 'verify'; readonly a: string; readonly b: string }
  | { readonly name: 'swap' | 'drop' | 'drop sandbox'; readonly generation: string; readonly force?: string }
  | { readonly name: 'replay'; readonly sandbox: string }
  | {
      readonly name: 'export'
      readonly org: string
      readonly directory: string
      readonly add?: true
      readonly asOf?: string | undefined
    }
  | { readonly name: 'publish-again'; readonly positions: readonly Position[] }
  | SourceTold
type Position = { readonly topic: string; readonly partition: number; readonly offset: number }

export type Running = {
  readonly told: Told
  readonly host: SimulatedProcess
  readonly said: string[]
  /** Its output, as JSON if the command supports that. */
  readonly out: string[]
  /** Rejects the reads of a killed process, which nobody answers. */
  release: () => void
  steps: number
  began: number
  ended: number | undefined
  code: ExitCode | undefined
  error: unknown
}

/** @param killAt number of the request before which the command is killed */
export const start = (told: Told, services: Omit<Services, 'watcher'>, killAt = Number.POSITIVE_INFINITY): Running => {
  const { clock } = services
  const host = new SimulatedProcess(clock, told.name)
  const running: Running = {
    told,
    host,
    said: [],
    out: [],
    release: () => undefined,
    steps: 0,
    began: clock.elapsed,
    ended: undefined,
    code: undefined,
    error: undefined,
  }
  host.onStep = () => {
    running.steps++
    if (running.steps === killAt) host.kill()
  }
  const disk = { host, delay: () => services.faults.delay() }
  const begin = () => carryOut(running, services)
  // An export writes real files, but for a part of a copy.
  const carried = told.name === 'export' && !told.add ? begin() : withFiles(disk, begin)
  carried.then(
    code => Object.assign(running, { code, ended: clock.elapsed }),
    (error: unknown) => Object.assign(running, { error, ended: clock.elapsed }),
  )
  return running
}

const carryOut = async (running: Running, services: Omit<Services, 'watcher'>): Promise<ExitCode> => {
  const { told, host, said, out } = running
  const { clock, broker, engine, faults, coverage } = services
  const watcher = { onSend: () => undefined, onDone: () => undefined, onWritten: () => undefined }
  const link = createLink(host, engine, faults, coverage, watcher)
  const { kafka } = createKafka(host, broker, faults, coverage)
  const { signal } = new AbortController()
  const sleep = (milliseconds: number): Promise<void> => host.sleep(milliseconds, signal)
  const openCluster = async (topic: string) => openSimulatedCluster(host, broker, faults, topic)
  const context = {
    send: link.send,
    prefix: PREFIX,
    out: (text: string | Buffer) => void out.push(String(text)),
    say: (line: string) => void said.push(line),
    sleep,
    now: clock.now,
    elapsed: () => clock.elapsed,
    kafka,
    topics: { events: EVENTS, 'api-keys': API_KEYS },
    openCluster: async (topic: string) => publishedOnly(await openCluster(topic), broker, topic),
  }
  const groupId = settings.KAFKA_GROUP_ID
  const making = {
    ...context,
    kafkaWithConnectHook: () => kafka,
    openLog: async (topic: string) => openSimulatedCluster(host, broker, faults, topic),
    retryOptions: { sleep: host.sleep, random: faults.random.next },
    signal,
    elapsed: () => clock.elapsed,
    groupId,
    shards: 3,
    ...services.layouts.later,
    draw: undefined,
  }
  const json = true
  if (isOnSource(told)) {
    const openTarget = async (directory: string) => directoryTarget(directory)
    const source = { ...making, openTarget, processes: processesOf(host) }
    return carryOutOnSource(told, source)
  }
  switch (told.name) {
    case 'list':
      return listGenerations({ json }, context)
    case 'list sandboxes':
      return listSandboxes({ json }, context)
    case 'rebuild':
      return rebuild({ maxRate: Number.POSITIVE_INFINITY, json }, making)
    case 'verify':
      return verify({ a: told.a, b: told.b, json }, context)
    case 'swap':
      return swap({ generation: told.generation, force: told.force, json }, context)
    case 'rollback':
      return rollback({ force: undefined, json }, context)
    case 'drop':
      return drop({ generation: told.generation, json }, context, groupId)
    case 'drop sandbox':
      return dropSandbox({ name: told.generation, json }, context, { kafka, groupId })
    case 'replay': {
      const nothing = { until: undefined, org: undefined, rules: undefined, fromArchive: undefined }
      const options = { ...nothing, name: told.sandbox, maxRate: Number.POSITIVE_INFINITY, json }
      return replay(options, making, sourceInKafka(making))
    }
    case 'publish-again': {
      const options = { positions: told.positions, filter: {}, publish: true, force: false, waitSeconds: 60, json }
      return again(options, { ...context, signal })
    }
    case 'export': {
      const { now } = services.clock
      const indexIds = async (names: readonly string[]) => new Map(names.map(name => [name, `uuid-of-${name}`]))
      const reads = { ...searchesOf(running, services), indexIds }
      const reading = readThrough(reads, { prefix: PREFIX, elapsed: now, now, sleep, signal })
      const asOf = told.asOf === undefined ? undefined : momentOf(told.asOf)
      const options = { org: told.org, asOf, out: told.directory, parquet: false, json }
      return (told.add ? addPart : exportOrganization)(options, {
        ...reading,
        ...context,
        draw: undefined,
        signal,
        sourceOf: sourceOf(context),
        readReceipts: async () => [],
        processes: processesOf(host),
      })
    }
  }
}

/** All processes that commands started, by the clock of their run. The index is the pid. */
const startedIn = new WeakMap<SimulatedProcess['clock'], SimulatedProcess[]>()
const processesOf = (host: SimulatedProcess): Processes => {
  const started = startedIn.get(host.clock) ?? []
  startedIn.set(host.clock, started)
  const pid = started.push(host) - 1
  return {
    self: async () => ({ host: 'simulated', place: 'simulated', pid, started: `${pid}` }),
    startOf: async other => (started[other]?.isDead === false ? `${other}` : undefined),
  }
}

/** Creates the API's reads for a process that can be killed. */
const searchesOf = (running: Running, { clock, engine, faults }: Omit<Services, 'watcher'>) => {
  const { host } = running
  const { search, multiGet } = createSearches(clock, engine, faults)
  const waiting = new Set<(error: Error) => void>()
  running.release = () => {
    for (const reject of waiting) reject(new Error('the process is dead'))
  }
  const reach = <Args extends unknown[], Result>(ask: (...args: Args) => Promise<Result>) => {
    return (...args: Args): Promise<Result> => {
      host.onStep()
      return new Promise((resolve, reject) => {
        waiting.add(reject)
        const deliver = (end: () => void) => () => host.deliver(end)
        if (host.isDead) return
        ask(...args).then(
          result => deliver(() => resolve(result))(),
          error => deliver(() => reject(error))(),
        )
      })
    }
  }
  return { search: reach(search), multiGet: reach(multiGet) }
}

/** In these worlds, entries behind the end are not published yet. They are of no open transaction. */
const publishedOnly = (cluster: LogCluster, broker: Broker, topic: string): LogCluster => ({
  ...cluster,
  logEnds: async partitions => {
    const written = await cluster.logEnds(partitions)
    return new Map([...written.keys()].map(number => [number, broker.topic(topic).partitions[number]?.end ?? 0]))
  },
})
