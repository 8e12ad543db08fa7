/** The rules of Prometheus in deploy/monitoring/: tried with promtool, and compared with the metrics and runbooks. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { createApiMetrics } from '../../api/admin/metrics.ts'
import { createProjectorMetrics } from '../../core/projection/progress/metrics.ts'
import { parkCodes } from '../../schemas/errors.ts'
import { DASHBOARDS, dashboardFiles, dashboards } from '../contract/dashboards.ts'
import { allMetrics } from '../contract/metrics-page.ts'
import { promtoolProgram } from '../support/programs.ts'
import { type AlertFault, apiFaults, projectorFaults } from './alert-faults.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'deploy/monitoring')
const rules = readFileSync(join(folder, 'rules.yml'), 'utf8')
const cases = readFileSync(join(folder, 'rules.test.yml'), 'utf8')
const alerts = rules.split('      - alert: ').slice(1)
const panels = Object.values(dashboards).flatMap(one => one.panels.map(({ expr }) => expr))
const expressions = [rules, ...panels].join('\n')
const nameOf = (alert: string): string => alert.split('\n')[0] ?? ''

describe.skipIf(promtoolProgram === undefined)('promtool', () => {
  const promtool = (...words: string[]) => promisify(execFile)(promtoolProgram ?? '', words, { cwd: folder })

  test('accepts the rules', async () => {
    expect((await promtool('check', 'rules', 'rules.yml')).stdout).toContain('SUCCESS')
  })

  test('fires each alert in its fault, and none at rest', async () => {
    expect((await promtool('test', 'rules', 'rules.test.yml')).stdout).toContain('SUCCESS')
  })

  test('accepts the expressions of the dashboards', async scope => {
    const copy = await mkdtemp(join(tmpdir(), 'commission-panels-'))
    scope.onTestFinished(() => rm(copy, { recursive: true, force: true }))
    const records = panels.map((expr, at) => ({
      record: `panel_${at}`,
      expr: expr.replaceAll('$__rate_interval', '1m'),
    }))
    // JSON is YAML.
    await writeFile(join(copy, 'panels.yml'), JSON.stringify({ groups: [{ name: 'panels', rules: records }] }))
    const { stdout } = await promtool('check', 'rules', join(copy, 'panels.yml'))
    expect(stdout).toContain(`${panels.length} rules found`)
  })

  test('notices an alert that never fires', async scope => {
    const copy = await mkdtemp(join(tmpdir(), 'commission-rules-'))
    scope.onTestFinished(() => rm(copy, { recursive: true, force: true }))
    await cp(folder, copy, { recursive: true })
    const [head = '', ...each] = cases.split('  - name: ')
    const one = each.filter(text => text.startsWith('one parked record\n'))
    expect(one).toHaveLength(1)
    await writeFile(join(copy, 'rules.test.yml'), [head, ...one].join('  - name: '))
    await writeFile(join(copy, 'rules.yml'), rules.replace('{outcome="parked"}', '{outcome="nothing"}'))
    const tried = promtool('test', 'rules', join(copy, 'rules.test.yml'))
    await expect(tried).rejects.toHaveProperty('stderr', expect.stringContaining('CommissionRecordsParked'))
  })
})

test('the files of the dashboards are those of the panels; else run `npm run contract`', () => {
  expect(readdirSync(DASHBOARDS).sort()).toEqual([...dashboardFiles().keys()].sort())
  for (const [name, content] of dashboardFiles())
    expect(readFileSync(join(DASHBOARDS, name), 'utf8') === content, name).toBe(true)
})

test('each alert has a case in which it fires', () => {
  expect(alerts.length).toBeGreaterThan(15)
  expect(alerts.map(nameOf).filter(name => !cases.includes(`alertname="${name}"`))).toEqual([])
})

test('each alert is for exactly one of the faults that real processes are tried in', () => {
  const faults: AlertFault[] = [...Object.values(apiFaults), ...Object.values(projectorFaults)]
  expect(faults.flatMap(({ fires }) => fires).sort()).toEqual(alerts.map(nameOf).sort())
  const followers = faults.flatMap(({ mayFollow = [] }) => mayFollow)
  expect(followers.filter(name => !alerts.map(nameOf).includes(name))).toEqual([])
})

test('each alert has a severity, a summary and a paragraph in docs/runbooks.md', () => {
  for (const alert of alerts) {
    expect(alert).toMatch(/^ {10}severity: (?:page|ticket)$/m)
    expect(alert).toMatch(/^ {10}summary: "[A-Z{].+"$/m)
    expect(alert).toContain(`          runbook: docs/runbooks.md#${nameOf(alert).toLowerCase()}\n`)
  }
  const page = readFileSync(join(root, 'docs/runbooks.md'), 'utf8')
  const paragraphs = [...page.matchAll(/^### (\w+)\n\n((?:.+\n)+)/gm)]
  expect(paragraphs.map(([, name]) => name).sort()).toEqual(alerts.map(nameOf).sort())
  for (const [, name, text] of paragraphs)
    for (const word of ['**Meaning**', '**Look**', 'ction**', '**Calm**']) expect(text, name).toContain(word)
})

test('the runbooks of a projector that ends name the stop codes with which records may be lost', () => {
  const page = readFileSync(join(root, 'docs/runbooks.md'), 'utf8')
  for (const name of ['CommissionProjectorAbsent', 'CommissionProcessRestarts']) {
    const [, text = ''] = page.split(`### ${name}\n`)
    for (const code of ['records_deleted', 'source_changed', 'batch_changed'])
      expect(text.split('\n#')[0], name).toContain(`\`${code}\``)
  }
})

test('the rules and the dashboards name only metrics and labels that the processes have', async () => {
  const all = Object.values(allMetrics()).flat()
  const names = new Set(all.flatMap(({ name }) => [name, `${name}_count`, `${name}_bucket`]))
  const known = new Set([
    'job',
    'instance',
    'alertname',
    'alertstate',
    'severity',
    'le',
    ...all.flatMap(({ labelNames }) => labelNames),
  ])
  const used = [...expressions.matchAll(/\b(?:commission|api|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name)
  expect(used.length).toBeGreaterThan(15)
  expect(used.filter(name => !names.has(name))).toEqual([])
  const labels = [
    ...[...expressions.matchAll(/[{,](\w+)=~?"/g)].map(([, label]) => label),
    ...[...expressions.matchAll(/\b(?:by|on|without|group_left) \(([\w, ]+)\)/g)].flatMap(([, list = '']) =>
      list.split(', '),
    ),
  ]
  expect(labels.length).toBeGreaterThan(15)
  expect(labels.filter(label => !known.has(label ?? ''))).toEqual([])
})

const everyPanel = Object.values(dashboards).flatMap(({ panels }) => panels)

test('the legend of a panel has each label that tells its series apart', () => {
  const recorded = new Map(
    [...rules.matchAll(/record: (\S+)\n +expr: (.+)$/gm)].map(([, name = '', expr = '']) => [name, expr]),
  )
  const labelsOf = new Map(
    Object.values(allMetrics()).flatMap(all => all.map(({ name, labelNames }) => [name, labelNames] as const)),
  )
  /** The labels that the result of an expression has. */
  const labelsIn = (expr: string): string[] => {
    const record = recorded.get(expr)
    if (record !== undefined) return labelsIn(record)
    const [, by] = /^(?:sum|min|max|count|histogram_quantile\(0\.99, sum) by \(([\w, ]+)\)/.exec(expr) ?? []
    if (by !== undefined) return by.split(', ').filter(label => label !== 'le')
    if (/^(?:avg_over_time|\()/.test(expr)) return []
    const [name = ''] = /\b(?:commission|api|process|nodejs)_[a-z0-9_]+/.exec(expr) ?? []
    // A metric that is not summed has a series in each process.
    return [...(labelsOf.get(name) ?? ['unknown']), 'instance']
  }
  const alike = everyPanel.flatMap(({ title, expr, series }) =>
    labelsIn(expr)
      .filter(label => !series.includes(`{{${label}}}`))
      .map(label => `${title}: ${label}`),
  )
  expect(alike).toEqual([])
  expect(everyPanel.filter(({ expr }) => labelsIn(expr).length > 0).length).toBeGreaterThan(20)
})

test('each panel has the unit of its metric, and a count has only whole numbers on its axis', () => {
  const unitOf = (expr: string): string[] => {
    if (/:ratio_/.test(expr)) return ['percentunit']
    if (/process_cpu_seconds_total/.test(expr)) return ['short']
    if (/histogram_quantile/.test(expr)) return ['s']
    if (/\brate\(/.test(expr)) return /api_(?!answers|connections)/.test(expr) ? ['reqps'] : ['cps']
    if (/bytes/.test(expr)) return ['bytes']
    return /seconds/.test(expr) ? ['s'] : ['locale']
  }
  expect(everyPanel.filter(({ unit, expr }) => !unitOf(expr).includes(unit)).map(({ title }) => title)).toEqual([])
  const drawn = [...dashboardFiles().values()].flatMap(text => JSON.parse(text).panels)
  const counts = drawn.filter(({ fieldConfig }) => fieldConfig.defaults.unit === 'locale')
  expect(counts.length).toBeGreaterThan(6)
  expect(counts.filter(({ fieldConfig }) => fieldConfig.defaults.decimals !== 0)).toEqual([])
})

test('an alert that fires is red, and the one series that says that none does is green', () => {
  const all = [...dashboardFiles().values()].flatMap(text => JSON.parse(text).panels)
  const ofAlerts = all.filter(({ targets }) => targets[0].expr.includes('ALERTS'))
  expect(ofAlerts).toHaveLength(1)
  for (const { fieldConfig, targets } of ofAlerts) {
    expect(fieldConfig.defaults.color).toEqual({ mode: 'shades', fixedColor: 'red' })
    const [{ matcher, properties }] = fieldConfig.overrides
    expect(targets[0].expr).toContain(`"alertname", "${matcher.options}"`)
    expect(properties).toEqual([{ id: 'color', value: { mode: 'fixed', fixedColor: 'green' } }])
  }
})

test('counters begin at 0, so that the first record and the first refusal are an increase', async () => {
  const { registry, of } = createProjectorMetrics(new Registry())
  of('events', 'g1')
  const projector = await registry.metrics()
  expect(projector).toContain('commission_records_total{generation="g1",stream="events",outcome="parked"} 0\n')
  for (const code of parkCodes)
    expect(projector).toContain(`commission_parked_total{generation="g1",stream="events",code="${code}"} 0\n`)
  const api = await createApiMetrics().registry.metrics()
  for (const by of ['key', 'under_way', 'address']) expect(api).toContain(`api_rate_limited_total{by="${by}"} 0\n`)
  for (const by of ['process', 'organization', 'key'])
    expect(api).toContain(`api_answers_refused_total{by="${by}"} 0\n`)
  expect(api).toContain('api_refusals_total{status="500",reason="internal"} 0\n')
})
