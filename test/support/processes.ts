/** Starts the real processes, set by environment, on free ports. They end with the test or with this process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { expectNoContent } from './canary.ts'
import { compileCache } from './compile-cache.ts'
import { eventually, type Scope } from './scope.ts'
import { elasticsearchOf } from './stored.ts'
import type { Topics } from './topics.ts'

const project = join(import.meta.dirname, '..', '..')

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }
export type LogLine = Readonly<Record<string, unknown>> & { readonly level?: number | string; readonly msg?: string }

export type RunningProcess = {
  readonly pid: number
  /** Everything that it has written to stdout and stderr. */
  readonly log: () => string
  readonly lines: () => LogLine[]
  readonly exited: Promise<Exit>
  /** How it ended; undefined while it runs. */
  readonly exit: () => Exit | undefined
  /** Sends SIGTERM and waits until it has ended. */
  readonly stop: () => Promise<Exit>
  readonly kill: () => Promise<Exit>
  /** Sends SIGSTOP: the process stands still until `thaw`. */
  readonly freeze: () => void
  readonly thaw: () => void
}

export const startProcess = (
  scope: Scope,
  file:
    | 'projector/main.ts'
    | 'projector/topics.ts'
    | 'api/main.ts'
    | 'tools/main.ts'
    | 'test/support/crashing-projector.ts'
    | 'test/support/other-rules.ts',
  settings: Readonly<Record<string, string | undefined>>,
  {
    parameters = [],
    descriptors = 'unlimited',
  }: { readonly parameters?: readonly string[]; readonly descriptors?: number | 'unlimited' } = {},
): RunningProcess => {
  const command = [process.execPath, join(project, file), ...parameters]
  const limited = ['/bin/sh', '-c', 'ulimit -n "$0" && exec "$@"', String(descriptors), ...command]
  return startCommand(scope, descriptors === 'unlimited' ? command : limited, { ...compileCache, ...settings })
}

/** Starts a command in the folder of the project, with this environment and nothing else. */
export const startCommand = (
  scope: Scope,
  [program = '', ...others]: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): RunningProcess => {
  const child = spawn(program, others, { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const { pid } = child
  if (pid === undefined) throw new Error(`${[program, ...others].join(' ')} could not be started`)
  const will = runOnExit('kill -9 "$0"', String(pid))
  let log = ''
  for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', text => (log += text))
  let exit: Exit | undefined
  const exited = once(child, 'close').then(async ([code, signal]): Promise<Exit> => {
    await will.revoke()
    exit = { code, signal }
    return exit
  })
  const end = (signal: NodeJS.Signals) => async (): Promise<Exit> => {
    if (isRunning(child)) child.kill(signal)
    return exited
  }
  const kill = end('SIGKILL')
  scope.onTestFinished(async () => {
    await kill()
    expectNoContent(log)
  })
  return {
    pid,
    log: () => log,
    lines: () => linesOf(log),
    exited,
    exit: () => exit,
    stop: end('SIGTERM'),
    kill,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

const linesOf = (log: string): LogLine[] =>
  log.split('\n').flatMap(line => {
    try {
      return line.startsWith('{') ? [JSON.parse(line)] : []
    } catch {
      // The rest of the line has not arrived yet.
      return []
    }
  })

/** Waits until a process has stopped with this code. Returns the message of its fatal log line. */
export const expectRefused = async (child: RunningProcess, code: string): Promise<string> => {
  await eventually(() => expect(child.exit(), child.log()).toEqual({ code: 1, signal: null }))
  const fatal = child.lines().filter(({ level }) => level === 60)
  expect(fatal, child.log()).toEqual([expect.objectContaining({ code })])
  return String(fatal[0]?.msg)
}

// --- the projector

export type ProjectorOptions = {
  readonly topics: Topics
  readonly prefix: string
  /** By default the prefix. */
  readonly groupId?: string
  readonly settings?: Readonly<Record<string, string>>
}

export type Projector = RunningProcess & {
  readonly adminUrl: string
  readonly ask: (
    path: '/livez' | '/readyz' | '/metrics' | '/status' | '/asyncapi.json' | `/receipts/${string}`,
  ) => Promise<{ status: number; text: string }>
  readonly status: () => Promise<PartitionStatus[]>
}
export type PartitionStatus = Readonly<Record<'partition' | 'searchable_to' | 'end' | 'lag' | 'parked', number>> & {
  readonly topic: string
}

/** Starts a projector and waits until its admin port answers. */
export const startProjector = (scope: Scope, options: ProjectorOptions): Promise<Projector> =>
  withAdminPort(startProcess(scope, 'projector/main.ts', projectorSettings(options)))

/** Waits until the admin port of a started process answers. */
export const withAdminPort = async (child: RunningProcess): Promise<Projector> => {
  const port = await eventually(() => {
    const address = child.lines().find(({ msg }) => msg === 'the admin port listens')?.address
    expect(address, child.log()).toHaveProperty('port')
    return (address as { port: number }).port
  })
  const adminUrl = `http://127.0.0.1:${port}`
  const ask: Projector['ask'] = async path => {
    // A test that computes for 5 s does not see that the projector has closed a connection that was kept.
    const answer = await fetch(`${adminUrl}${path}`, { headers: { connection: 'close' } })
    return { status: answer.status, text: await answer.text() }
  }
  const status = async (): Promise<PartitionStatus[]> => {
    const { status, text } = await ask('/status')
    expect(status, text).toBe(200)
    return JSON.parse(text).partitions
  }
  return { ...child, adminUrl, ask, status }
}

export const projectorSettings = ({ topics, prefix, groupId, settings }: ProjectorOptions): Record<string, string> => ({
  KAFKA_BROKERS: topics.brokers,
  KAFKA_EVENTS_TOPIC: topics.events,
  KAFKA_API_KEYS_TOPIC: topics.apiKeys,
  KAFKA_GROUP_ID: groupId ?? prefix,
  ELASTICSEARCH_URL: elasticsearchOf(prefix),
  ELASTICSEARCH_INDEX_PREFIX: prefix,
  PROJECTOR_ADMIN_PORT: '0',
  LOG_LEVEL: 'debug',
  ...settings,
})

/** Waits until everything in Kafka is published to readers. */
export const untilCaughtUp = async (projector: Projector, options: { readonly within?: number } = {}): Promise<void> =>
  eventually(async () => {
    const status = await projector.status()
    expect(status.length, projector.log()).toBeGreaterThan(0)
    expect(status.map(({ lag }) => lag)).toEqual(status.map(() => 0))
  }, options)

// --- the API

export type Api = RunningProcess & { readonly url: string; readonly adminUrl: string }

export type ApiOptions = { readonly settings?: Readonly<Record<string, string>>; readonly ready?: boolean }

/** Starts an API and waits until it is ready, or only until it listens. */
export const startApi = async (
  scope: Scope,
  prefix: string,
  { settings = {}, ready = true }: ApiOptions = {},
): Promise<Api> => {
  const child = startProcess(scope, 'api/main.ts', {
    ELASTICSEARCH_URL: elasticsearchOf(prefix),
    ELASTICSEARCH_INDEX_PREFIX: prefix,
    API_PORT: '0',
    API_ADMIN_PORT: '0',
    RATE_LIMIT_REQUESTS: '1000000',
    API_DRAIN_SECONDS: '0',
    LOG_LEVEL: 'debug',
    ...settings,
  })
  const [port, adminPort] = await eventually(() => {
    const line = child.lines().find(({ msg }) => msg === 'the API listens')
    expect(line, child.log()).toBeDefined()
    return [line?.port, line?.admin_port]
  })
  const adminUrl = `http://127.0.0.1:${adminPort}`
  if (ready) await eventually(async () => expect((await fetch(`${adminUrl}/readyz`)).status, child.log()).toBe(200))
  return { ...child, url: `http://127.0.0.1:${port}/api/v1`, adminUrl }
}

/** Returns why these API processes answered 503: the route of each, the reason, and how long it took. */
export const reasonsUnavailable = (...apis: readonly Api[]): string[] =>
  apis
    .flatMap(api => api.lines())
    .flatMap(line => (line.status === 503 ? [`${line.route}: ${line.because}, ${line.ms} ms`] : []))
