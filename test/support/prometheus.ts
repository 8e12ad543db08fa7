/** A test's own Prometheus with the rules of deploy/monitoring/, if the machine has one (Debian: prometheus). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runOnExit } from '../../services/cleanup-on-exit.ts'
import { freePort } from '../../services/ports.ts'
import { prometheusProgram } from './programs.ts'
import { eventually, type Scope } from './scope.ts'

export type Series = { readonly metric: Readonly<Record<string, string>>; readonly value: number }
export type Alert = { readonly name: string; readonly state: 'pending' | 'firing' }

export type Prometheus = {
  /** The series that an expression has now. */
  readonly query: (expression: string) => Promise<Series[]>
  readonly alerts: () => Promise<Alert[]>
  /** The last error of each rule that has one. */
  readonly ruleErrors: () => Promise<string[]>
}

const rules = join(import.meta.dirname, '../../deploy/monitoring/rules.yml')

/** Starts a Prometheus that scrapes these addresses (host:port) and evaluates the rules every second. */
export const startPrometheus = async (scope: Scope, targets: Readonly<Record<string, string>>): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-prometheus-'))
  scope.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const configuration = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: Object.entries(targets).map(([name, target]) => ({
      job_name: name,
      static_configs: [{ targets: [target] }],
    })),
  }
  // JSON is YAML.
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(configuration))
  const address = `127.0.0.1:${await freePort()}`
  const words = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
    '--log.level=warn',
  ]
  const child = spawn(prometheusProgram ?? '', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const will = runOnExit('kill -9 "$0"', String(child.pid))
  let log = ''
  child.stderr.setEncoding('utf8').on('data', text => (log += text))
  const ended = once(child, 'close')
  scope.onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
    await will.revoke()
  })
  await eventually(async () => expect((await fetch(`http://${address}/-/ready`)).status, log).toBe(200))

  const ask = async <Data>(path: string): Promise<Data> => {
    const answer = await fetch(`http://${address}/api/v1/${path}`)
    const text = await answer.text()
    expect(answer.status, text).toBe(200)
    return JSON.parse(text).data
  }
  return {
    query: async expression => {
      type Result = { readonly metric: Record<string, string>; readonly value: [number, string] }
      const parameters = new URLSearchParams({ query: expression })
      const { result } = await ask<{ result: Result[] }>(`query?${parameters}`)
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    alerts: async () => {
      type Found = { readonly labels: { readonly alertname: string }; readonly state: Alert['state'] }
      const { alerts } = await ask<{ alerts: Found[] }>('alerts')
      return alerts.map(({ labels, state }) => ({ name: labels.alertname, state }))
    },
    ruleErrors: async () => {
      type Group = { readonly rules: { readonly name: string; readonly lastError?: string }[] }
      const { groups } = await ask<{ groups: Group[] }>('rules')
      expect(groups.length).toBeGreaterThan(0)
      return groups.flatMap(({ rules }) =>
        rules.flatMap(({ name, lastError }) => (lastError ? [`${name}: ${lastError}`] : [])),
      )
    },
  }
}
