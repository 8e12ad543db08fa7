/** Runs a Prometheus (Debian: prometheus) with rules of deploy/monitoring/, and asks it. Needs no test runner. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { freePort } from '../../services/ports.ts'
import { prometheusProgram } from './programs.ts'

export const RULES = join(import.meta.dirname, '../../deploy/monitoring/rules.yml')

export type PrometheusOptions = {
  /** Names of jobs, and the addresses (host:port) that each scrapes. */
  readonly targets: Readonly<Record<string, string>>
  /** The text of the rules; by default those of deploy/monitoring/. */
  readonly rules?: string
  /** Seconds between two scrapes of a process; rules are evaluated every second. */
  readonly scrapeSeconds?: number
}
export type RunningPrometheus = {
  /** Asks the HTTP API, and returns `data` of the answer. */
  readonly ask: <Data>(path: string) => Promise<Data>
  readonly stop: () => Promise<void>
}

const READY_TIMEOUT_MS = 240_000

/** Starts it on a free port and waits until it is ready. */
export const runPrometheus = async ({
  targets,
  rules,
  scrapeSeconds = 1,
}: PrometheusOptions): Promise<RunningPrometheus> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-prometheus-'))
  const file = (name: string) => join(folder, name)
  const interval = `${scrapeSeconds}s`
  const configuration = {
    global: { scrape_interval: interval, scrape_timeout: interval, evaluation_interval: '1s' },
    rule_files: [file('rules.yml')],
    scrape_configs: Object.entries(targets).map(([name, target]) => ({
      job_name: name,
      static_configs: [{ targets: [target] }],
    })),
  }
  await writeFile(file('rules.yml'), rules ?? (await readFile(RULES, 'utf8')))
  // JSON is YAML.
  await writeFile(file('prometheus.yml'), JSON.stringify(configuration))
  const address = `127.0.0.1:${await freePort()}`
  const words = [
    `--config.file=${file('prometheus.yml')}`,
    `--storage.tsdb.path=${file('data')}`,
    `--web.listen-address=${address}`,
    '--log.level=warn',
  ]
  const child = spawn(prometheusProgram ?? 'prometheus', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const will = runOnExit('kill -9 "$0"; rm -rf "$1"', String(child.pid), folder)
  let log = ''
  child.stderr.setEncoding('utf8').on('data', text => (log += text))
  const ended = once(child, 'close')
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
    await will.revoke()
  }
  for (let waited = 0; ; waited += 100) {
    const answer = await fetch(`http://${address}/-/ready`).catch(() => undefined)
    if (answer?.ok) break
    if (waited > READY_TIMEOUT_MS || child.exitCode !== null) {
      await stop()
      throw new Error(`Prometheus is not ready: ${log}`)
    }
    await delay(100)
  }
  const ask: RunningPrometheus['ask'] = async path => {
    const answer = await fetch(`http://${address}/api/v1/${path}`)
    const text = await answer.text()
    if (!answer.ok) throw new Error(`Prometheus answers ${answer.status} to ${path}: ${text}`)
    return JSON.parse(text).data
  }
  return { ask, stop }
}
