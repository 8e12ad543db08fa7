/**
 * `npm run pictures`: draws the dashboards of deploy/monitoring/ with data, into docs/pictures/. It runs a projector,
 * an API and a Prometheus, publishes the organizations of the demo in waves, reads, and forbids writes to an index for
 * a while. Then it evaluates the expression of each panel as Grafana does. It needs `prometheus` on the PATH, and uses
 * KAFKA_BROKERS and ELASTICSEARCH_URL if both are set.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from '@elastic/elasticsearch'
import kafkajs from 'kafkajs'
import { kafkaConfig } from '../../core/log/kafka-config.ts'
import { elasticsearchSettings, kafkaSettings, readSettings } from '../../core/runtime/settings.ts'
import { elasticsearchConfig } from '../../core/store/elasticsearch-config.ts'
import { makeOrganizations } from '../../demo/data/organization.ts'
import { createPublisher } from '../../demo/data/publish.ts'
import { removeIndices, removeTopics } from '../../demo/run/cleanup.ts'
import { install, namesFor } from '../../demo/run/installation.ts'
import { FIRST_GENERATION, indexOf } from '../../schemas/stored/documents.ts'
import { waitForInterruption } from '../../services/interruption.ts'
import { startServices } from '../../services/services.ts'
import { dashboards } from '../contract/dashboards.ts'
import { prometheusProgram } from '../support/programs.ts'
import { type RunningPrometheus, runPrometheus } from '../support/run-prometheus.ts'
import { type DrawnPanel, drawDashboard } from './draw-dashboard.ts'

const SECONDS = 360
const STEP_SECONDS = 4
const PARTITIONS = 3
/** Seconds between which Elasticsearch accepts no payout. */
const FAULT = { from: 210, until: 235 }
const folder = join(import.meta.dirname, '../../docs/pictures')
const say = (line: string): void => console.log(line)

type Series = { readonly metric: Record<string, string>; readonly values: readonly [number, string][] }

/** Returns the panels of a dashboard, with the series that Prometheus has between two instants. */
const evaluate = async (
  { ask }: RunningPrometheus,
  panels: (typeof dashboards)[string]['panels'],
  [start, end]: readonly [number, number],
): Promise<DrawnPanel[]> => {
  const drawn: DrawnPanel[] = []
  for (const { title, unit, series: legend, expr, calm, isStacked = false } of panels) {
    // Grafana sets it to four scrapes or more.
    const query = expr.replaceAll('$__rate_interval', '15s')
    const range = new URLSearchParams({ query, start: `${start}`, end: `${end}`, step: `${STEP_SECONDS}` })
    const { result } = await ask<{ result: Series[] }>(`query_range?${range}`)
    const series = result.map(({ metric, values }) => ({
      name: legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '').trim() || 'none',
      points: pointsOf(values, start, end),
    }))
    drawn.push({ title, unit, isStacked, calm, series })
  }
  return drawn
}

/** A point for each step; null where the series has no value. */
const pointsOf = (values: Series['values'], start: number, end: number): [number, number | null][] => {
  const known = new Map(values.map(([at, value]) => [Math.round(at - start), Number(value)]))
  return Array.from({ length: Math.floor((end - start) / STEP_SECONDS) + 1 }, (_, step) => {
    const value = known.get(step * STEP_SECONDS)
    return [step * STEP_SECONDS, value === undefined || !Number.isFinite(value) ? null : value]
  })
}

const run = async (signal: AbortSignal): Promise<void> => {
  if (prometheusProgram === undefined)
    throw new Error('expected prometheus on the PATH (Debian: prometheus), found none')
  await using stack = new AsyncDisposableStack()
  const services = stack.use(await startServices({ say, environment: process.env }))
  const environment = {
    ...process.env,
    KAFKA_BROKERS: services.kafkaBrokers,
    ELASTICSEARCH_URL: services.elasticsearchUrl,
  }
  const kafka = new kafkajs.Kafka(
    kafkaConfig(readSettings(kafkaSettings, environment, readFileSync), 'commission-pictures', readFileSync, Date.now),
  )
  const client = new Client(
    elasticsearchConfig(readSettings(elasticsearchSettings, environment, readFileSync), readFileSync),
  )
  const names = namesFor(randomBytes(4).toString('hex'))
  stack.defer(() => client.close())
  stack.defer(() => removeIndices(names, client))
  stack.defer(() => removeTopics(names, kafka))
  const node = [process.execPath, ...process.execArgv] as const
  const { base, apiAdmin, projectorAdmin } = await install(stack, {
    names,
    partitions: PARTITIONS,
    environment,
    node,
    say,
    signal,
  })
  const publisher = createPublisher(kafka)
  await publisher.connect()
  stack.defer(() => publisher.disconnect())
  const targets = { projector: new URL(projectorAdmin).host, api: new URL(apiAdmin).host }
  const prometheus = await runPrometheus({ targets })
  stack.defer(prometheus.stop)

  const organizations = makeOrganizations(1, { years: 10, partitions: PARTITIONS })
  const sent = organizations.flatMap(organization => organization.sent)
  await publisher.publish(
    names.topics['api-keys'],
    sent.filter(({ stream }) => stream === 'api-keys').map(({ message }) => message),
  )
  const events = sent.filter(({ stream }) => stream === 'events').map(({ message }) => message)
  const keys = [...organizations.map(({ keys }) => keys.reading.text), 'ck_unknown']
  say(`publishing ${events.length} events and reading, for ${SECONDS} s`)
  const start = Math.ceil(Date.now() / 1000)
  const index = indexOf(names.prefix, FIRST_GENERATION, 'payouts')
  const forbidWrites = (value: boolean) => client.indices.putSettings({ index, settings: { 'blocks.write': value } })
  let published = 0
  for (let second = 0; second < SECONDS; second++) {
    signal.throwIfAborted()
    const due = Math.floor(events.length * progressAt(second / SECONDS))
    await publisher.publish(names.topics.events, events.slice(published, due))
    published = due
    if (second === FAULT.from || second === FAULT.until) await forbidWrites(second === FAULT.from)
    const paths = ['/payouts?limit=100', '/reps', '/periods', '/changes', '/payouts/payout_0', '/nowhere']
    await Promise.all(
      paths.flatMap(path =>
        keys.map(async key => (await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${key}` } })).text()),
      ),
    )
    if (second % 60 === 0) say(`${second} s of ${SECONDS} s: ${published} events`)
    await delay(Math.max(0, (start + second + 1) * 1000 - Date.now()), undefined, { signal })
  }
  for (const [name, { title, panels }] of Object.entries(dashboards)) {
    const drawn = await evaluate(prometheus, panels, [start, start + SECONDS])
    const file = `dashboard-${name}.svg`
    writeFileSync(join(folder, file), drawDashboard(title, drawn, SECONDS))
    say(
      `docs/pictures/${file}: ${drawn.filter(({ series }) => series.length > 0).length} of ${panels.length} panels have data`,
    )
  }
}

/** The part of the events that is published at a part of the time: waves of different height. */
const progressAt = (part: number): number => part - Math.sin(part * 6 * Math.PI) / (6 * Math.PI)

const stopping = new AbortController()
waitForInterruption(process).then(
  reason => stopping.abort(new Error(reason)),
  () => undefined,
)
try {
  await run(stopping.signal)
  process.exit(0)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
