/** An installation on given services: topics, projector and API, started as an operator starts them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Stream } from '../../schemas/events.ts'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { freePort } from '../../services/ports.ts'
import { runTool } from '../../services/run-program.ts'
import type { Environment, Say } from '../../services/service.ts'
import { rethrow, startProcess } from './processes.ts'

export type DemoNames = {
  readonly topics: Readonly<Record<Stream, string>>
  readonly prefix: string
  readonly group: string
}

/** Returns the names that the documents use. On given servers, a run has unique names. */
export const namesFor = (run: string | undefined): DemoNames =>
  run === undefined
    ? { topics: { events: 'commission.events', 'api-keys': 'commission.api-keys' }, prefix: 'demo', group: 'demo' }
    : {
        topics: { events: `demo-${run}.events`, 'api-keys': `demo-${run}.api-keys` },
        prefix: `demo-${run}`,
        group: `demo-${run}`,
      }

type InstallPlan = {
  readonly names: DemoNames
  readonly partitions: number
  /** Environment of all processes: the user's environment and the addresses of the services. */
  readonly environment: Environment
  /** The program that runs a TypeScript file, and its arguments before that file. */
  readonly node: readonly [program: string, ...args: string[]]
  readonly say: Say
  readonly signal: AbortSignal
}

export type DemoInstallation = {
  /** Of the API, up to and including `/api/v1`. */
  readonly base: string
  readonly apiAdmin: string
  readonly projectorAdmin: string
  readonly folder: string
  /** Settings for `export`, which the commands of an operator need. No secrets: only the paths of their files. */
  readonly settings: string
  /** Resolves when projector or API ends unasked. */
  readonly died: Promise<Error>
}

const root = join(import.meta.dirname, '..', '..')

/** Each started process goes to the stack at once, so that a later failure leaves none behind. */
export const install = async (stack: AsyncDisposableStack, plan: InstallPlan): Promise<DemoInstallation> => {
  const { names, say, signal } = plan
  const ports = { api: await freePort(), apiAdmin: await freePort(), projectorAdmin: await freePort() }
  const at = (port: number) => `http://127.0.0.1:${port}`
  const environment = { ...plan.environment, ...settingsOf(names, plan.partitions, ports) }

  const [node, ...nodeArgs] = plan.node
  await runTool(node, [...nodeArgs, 'projector/topics.ts'], { folder: root, environment, onLine: say })
  signal.throwIfAborted()
  const folder = openFolder(stack)
  const deaths: Promise<Error>[] = []
  const start = async (name: string, file: string, admin: string): Promise<void> => {
    signal.throwIfAborted()
    const logFile = join(folder, `${name.toLowerCase()}.log`)
    const running = startProcess({ name, command: [...plan.node, join(root, file)], environment, logFile })
    stack.defer(running.stop)
    deaths.push(running.died)
    await Promise.race([waitUntilReady(name, admin, signal), running.died.then(rethrow)])
    say(`${name} runs; it logs to ${logFile}`)
  }
  await start('projector', 'projector/main.ts', at(ports.projectorAdmin))
  await start('API', 'api/main.ts', at(ports.apiAdmin))
  return {
    base: `${at(ports.api)}/api/v1`,
    apiAdmin: at(ports.apiAdmin),
    projectorAdmin: at(ports.projectorAdmin),
    folder,
    settings: commandSettings(environment),
    died: Promise.race(deaths),
  }
}

type Ports = { readonly api: number; readonly apiAdmin: number; readonly projectorAdmin: number }

const settingsOf = ({ topics, prefix, group }: DemoNames, partitions: number, ports: Ports): Environment => ({
  KAFKA_EVENTS_TOPIC: topics.events,
  KAFKA_API_KEYS_TOPIC: topics['api-keys'],
  KAFKA_EVENTS_PARTITIONS: String(partitions),
  KAFKA_GROUP_ID: group,
  ELASTICSEARCH_INDEX_PREFIX: prefix,
  API_HOST: '127.0.0.1',
  API_PORT: String(ports.api),
  API_ADMIN_HOST: '127.0.0.1',
  API_ADMIN_PORT: String(ports.apiAdmin),
  PROJECTOR_ADMIN_HOST: '127.0.0.1',
  PROJECTOR_ADMIN_PORT: String(ports.projectorAdmin),
  // The demo exceeds the default rate of one key.
  RATE_LIMIT_REQUESTS: '1000000',
  API_DRAIN_SECONDS: '0',
})

const commandSettings = (environment: Environment): string =>
  [
    'KAFKA_BROKERS',
    'KAFKA_EVENTS_TOPIC',
    'KAFKA_API_KEYS_TOPIC',
    'KAFKA_GROUP_ID',
    'KAFKA_SSL',
    'KAFKA_SSL_CA_FILE',
    'KAFKA_SSL_CERT_FILE',
    'KAFKA_SSL_KEY_FILE',
    'KAFKA_SASL_MECHANISM',
    'KAFKA_SASL_USERNAME',
    'KAFKA_SASL_PASSWORD_FILE',
    'KAFKA_SASL_TOKEN_FILE',
    'ELASTICSEARCH_URL',
    'ELASTICSEARCH_CA_FILE',
    'ELASTICSEARCH_API_KEY_FILE',
    'ELASTICSEARCH_USERNAME',
    'ELASTICSEARCH_PASSWORD_FILE',
    'ELASTICSEARCH_INDEX_PREFIX',
  ]
    .filter(name => environment[name])
    .map(name => `${name}='${environment[name]}'`)
    .join(' ')

const openFolder = (stack: AsyncDisposableStack): string => {
  const folder = mkdtempSync(join(tmpdir(), 'commission-demo-'))
  const exitHook = runOnExit('rm -rf "$0"', folder)
  stack.defer(async () => {
    rmSync(folder, { recursive: true, force: true })
    await exitHook.revoke()
  })
  return folder
}

/** Longest start of a process until it is ready, in milliseconds. */
const READY_TIMEOUT_MS = 180_000

const waitUntilReady = async (name: string, admin: string, signal: AbortSignal): Promise<void> => {
  let last = 'no answer'
  for (let waited = 0; waited < READY_TIMEOUT_MS; waited += 100) {
    const answer = await fetch(`${admin}/readyz`, { signal }).catch(() => undefined)
    if (answer?.ok) return
    if (answer) last = await answer.text()
    await delay(100, undefined, { signal })
  }
  throw new Error(`The ${name} is not ready after ${READY_TIMEOUT_MS / 1000} s: ${last}`)
}
