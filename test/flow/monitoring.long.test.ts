/** deploy/monitoring/ in a real Prometheus that scrapes a real projector and a real API. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { DASHBOARDS } from '../contract/dashboards.ts'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, payoutCalculated, periodRecorded, repRecorded } from '../support/events.ts'
import { reasonsUnavailable, startApi } from '../support/processes.ts'
import { prometheusProgram } from '../support/programs.ts'
import { startProjection } from '../support/projection.ts'
import { type Prometheus, patientRules, startPrometheus } from '../support/prometheus.ts'
import { RULES } from '../support/run-prometheus.ts'
import { eventually, type Scope } from '../support/scope.ts'

type Dashboard = { readonly panels: { readonly title: string; readonly targets: { readonly expr: string }[] }[] }

const panels = readdirSync(DASHBOARDS).flatMap(file =>
  (JSON.parse(readFileSync(join(DASHBOARDS, file), 'utf8')) as Dashboard).panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({
      name: `${file}: ${title}`,
      // Grafana sets it to four scrapes or more.
      expression: expr.replaceAll('$__rate_interval', '1m'),
    })),
  ),
)
/** A quiet time: these evaluations without an alert, of these seconds. There is one a second, or fewer. */
const QUIET = { evaluations: 30, seconds: 60 }
const SOON = { every: 500 }

const setUp = async (scope: Scope) => {
  const [org, key] = [newId('org'), newKeyText()]
  const records = [keyCreated({ org_id: org, text: key }), repRecorded({ org_id: org })]
  const { topics, prefix, projector } = await startProjection(scope, records, { partitions: 1 })
  const api = await startApi(scope, prefix)
  const client = createClient([api], key)
  /** Two events, and two requests: one of them is refused. */
  const use = async () => {
    const period = newId('period')
    await topics.publish([
      periodRecorded({ org_id: org, id: period }),
      payoutCalculated({ org_id: org, id: newId('payout'), period_id: period }),
    ])
    const answers = [await client.askInTime('/payouts'), await client.askInTime('/payouts/payout_0')]
    expect(answers.map(({ status }) => status)).toEqual([200, 404])
  }
  /** On a busy machine some reads take too long, and get a 503: then the alerts about those are right. */
  const withoutReason = (alerts: readonly string[]): string[] =>
    alerts.filter(alert => !alert.startsWith('CommissionAvailabilityBurns') || reasonsUnavailable(api).length === 0)
  await use()
  const rules = patientRules(readFileSync(RULES, 'utf8'))
  const targets = { projector: new URL(projector.adminUrl).host, api: new URL(api.adminUrl).host }
  // A scrape that takes longer than its interval makes a process absent.
  const prometheus = await startPrometheus(scope, { targets, scrapeSeconds: 5, rules })
  // Before the first scrape of a process, its absence is pending. Until two scrapes saw a position move, a scrape
  // between publishing and projecting looks like a partition that is stuck.
  await eventually(async () => {
    await use()
    expect(await prometheus.query('up == 1')).toHaveLength(2)
    expect(await prometheus.query('changes(commission_position{reached="searchableTo"}[5m]) > 0')).not.toEqual([])
    const alerts = await prometheus.alerts()
    expect(withoutReason(alerts.map(({ name, state }) => `${name} ${state}`))).toEqual([])
  }, SOON)
  return { projector, prometheus, use, withoutReason }
}

/** Panels without a series, or whose values are all NaN. */
const emptyPanels = async ({ query }: Prometheus): Promise<string[]> => {
  const empty: string[] = []
  for (const { name, expression } of panels) {
    const series = await query(expression)
    if (!series.some(({ value }) => Number.isFinite(value))) empty.push(name)
  }
  return empty
}

describe.skipIf(prometheusProgram === undefined)('a real Prometheus', () => {
  test('has a value for each panel and no alert at rest; a killed projector is an alert', async scope => {
    const { projector, prometheus, use, withoutReason } = await setUp(scope)
    expect(panels.length).toBeGreaterThan(30)
    await eventually(async () => {
      await use()
      expect(await emptyPanels(prometheus)).toEqual([])
    }, SOON)

    // ALERTS has a sample of each pending or firing alert at each evaluation. A busy machine may miss scrapes.
    await eventually(
      async () => {
        await use()
        const during = `[${QUIET.seconds}s]`
        const [evaluations] = await prometheus.query(`count_over_time(commission:stale:bool${during})`)
        const seen = await prometheus.query(`count by (alertname, alertstate) (count_over_time(ALERTS${during}))`)
        const alerts = seen.map(({ metric }) => `${metric.alertname} ${metric.alertstate}`)
        expect(withoutReason(alerts)).toEqual([])
        expect(evaluations?.value).toBeGreaterThanOrEqual(QUIET.evaluations)
      },
      { within: 300_000, every: 500 },
    )
    expect(await prometheus.ruleErrors()).toEqual([])

    await projector.kill()
    await eventually(async () => {
      expect(await prometheus.alerts()).toContainEqual({ name: 'CommissionProjectorAbsent', state: 'pending' })
    }, SOON)
  })
})
