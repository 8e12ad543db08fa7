/** An installation beside a Prometheus whose rules have shorter windows; faults are made in it one after the other. */
import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { freePort } from '../../services/ports.ts'
import type { AlertFault } from '../monitoring/alert-faults.ts'
import { keyCreated, newId, newKeyText, repRecorded } from './events.ts'
import { type Api, type Projector, startApi } from './processes.ts'
import { startProjection } from './projection.ts'
import { type Prometheus, soonerRules, startPrometheus } from './prometheus.ts'
import { RULES } from './run-prometheus.ts'
import { eventually, type Scope } from './scope.ts'
import type { Topics } from './topics.ts'

export const SOON = { every: 500 }
/** A busy machine may take two seconds for a scrape. */
const SCRAPE_SECONDS = 3

type Settings = Readonly<Record<string, string>>
export type WatchedInstallation = {
  readonly topics: Topics
  readonly prefix: string
  /** Settings of the projector beyond those of its topics and prefix. */
  readonly settings: Settings
  readonly projector: Projector
  readonly api: Api
  readonly prometheus: Prometheus
  readonly publishReps: (count: number) => Promise<unknown>
  /** Asks the API with a valid key. Returns the status. */
  readonly ask: (path?: string) => Promise<number>
}

/** Starts an installation with a rep and a key. Its Prometheus has seen both processes and has no alert. */
export const watchInstallation = async (
  scope: Scope,
  given: { readonly projector?: Settings; readonly api?: Settings } = {},
): Promise<WatchedInstallation> => {
  const [adminPort, org, key] = [String(await freePort()), newId('org'), newKeyText()]
  const settings = { PROJECTOR_ADMIN_PORT: adminPort, ...given.projector }
  const records = [keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org, id: newId('rep') })]
  const { topics, prefix, projector } = await startProjection(scope, records, { partitions: 2, settings })
  const publishReps = (count: number) =>
    topics.publish(Array.from({ length: count }, () => repRecorded({ org_id: org, id: newId('rep') })))
  const api = await startApi(scope, prefix, { settings: given.api ?? {} })
  const targets = { projector: `127.0.0.1:${adminPort}`, api: new URL(api.adminUrl).host }
  const rules = soonerRules(await readFile(RULES, 'utf8'))
  const prometheus = await startPrometheus(scope, { targets, rules, scrapeSeconds: SCRAPE_SECONDS })
  // Before the first scrape of a process, its absence is an alert.
  await eventually(async () => {
    expect(await prometheus.query('up == 1')).toHaveLength(2)
    expect(await prometheus.alerts()).toEqual([])
  }, SOON)
  const ask = async (path = '/reps'): Promise<number> => {
    const answer = await fetch(`${api.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    await answer.text()
    return answer.status
  }
  return { topics, prefix, settings, projector, api, prometheus, publishReps, ask }
}

export type FaultSteps = {
  readonly begin: () => unknown
  /** Runs before each look at the alerts. */
  readonly meanwhile?: () => Promise<unknown>
  readonly heal?: () => Promise<unknown>
}

/**
 * Makes a fault and waits until its alerts fire. Then no other may have fired since it began, except those that an
 * earlier fault left.
 */
export const expectAlerts = async (
  prometheus: Prometheus,
  { fires, mayFollow = [] }: AlertFault,
  { begin, meanwhile, heal }: FaultSteps,
): Promise<void> => {
  const left = async () => new Set((await prometheus.alerts()).map(({ name }) => name))
  await eventually(async () => {
    const active = await left()
    expect(fires.filter(name => active.has(name))).toEqual([])
  }, SOON)
  const allowed = new Set([...fires, ...mayFollow, ...(await left())])
  const began = performance.now()
  await begin()
  try {
    await eventually(async () => {
      await meanwhile?.()
      const alerts = await prometheus.alerts()
      const firing = new Set(alerts.filter(({ state }) => state === 'firing').map(({ name }) => name))
      expect(fires.filter(name => !firing.has(name))).toEqual([])
    }, SOON)
    const seconds = Math.ceil((performance.now() - began) / 1000)
    const firing = `last_over_time(ALERTS{alertstate="firing"}[${seconds}s])`
    const fired = await prometheus.query(`count by (alertname) (${firing})`)
    expect(fired.map(({ metric }) => metric.alertname ?? '').filter(name => !allowed.has(name))).toEqual([])
    expect(await prometheus.ruleErrors()).toEqual([])
  } finally {
    await heal?.()
  }
}
