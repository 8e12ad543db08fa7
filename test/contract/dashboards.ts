/** The Grafana dashboards of deploy/monitoring/dashboards/, from the panels below. */
import { join } from 'node:path'

export const DASHBOARDS = join(import.meta.dirname, '../../deploy/monitoring/dashboards')

/** Of Grafana. `locale` is a whole number, and `cps` counts a second. */
export type PanelUnit = 's' | 'bytes' | 'locale' | 'short' | 'reqps' | 'cps' | 'percentunit'
type Panel = {
  readonly title: string
  readonly unit: PanelUnit
  readonly series: string
  readonly expr: string
  /** Series stand on each other: those of the same value would hide each other. */
  readonly isStacked?: boolean
  /** Each series is bad news, except for the one of this name. */
  readonly calm?: string
}
type Dashboard = { readonly title: string; readonly panels: readonly Panel[] }

const panel = (title: string, unit: PanelUnit, series: string, expr: string): Panel => ({ title, unit, series, expr })
const stacked = (one: Panel): Panel => ({ ...one, isStacked: true })
const rate = (metric: string, by: string): string => `sum by (${by}) (rate(${metric}[$__rate_interval]))`
const p99 = (metric: string, by: string): string =>
  `histogram_quantile(0.99, sum by (le, ${by}) (rate(${metric}_bucket[$__rate_interval])))`
const ofProgram = (metric: string, program: string): string =>
  `${metric} * on (job, instance) group_left (program) commission_build_info{program="${program}"}`
const ofProcess = (program: string): Panel[] => [
  panel('Memory', 'bytes', '{{instance}}', ofProgram('process_resident_memory_bytes', program)),
  panel(
    'CPU, in cores',
    'short',
    '{{instance}}',
    ofProgram('rate(process_cpu_seconds_total[$__rate_interval])', program),
  ),
  panel('Delay of the event loop, p99', 's', '{{instance}}', ofProgram('nodejs_eventloop_lag_p99_seconds', program)),
]

const CALM = 'none fires'
const alerts = 'sum by (alertname, severity) (ALERTS{alertstate="firing"})'
const firing = `${alerts} or (label_replace(vector(0), "alertname", "${CALM}", "", "") unless on () ${alerts})`

/** An hour ago, or before an outage; for a generation that is new since, at its first scrape. */
const parkedBefore =
  'last_over_time(commission:parked:records[7d] offset 1h) or min_over_time(commission:parked:records[1h])'

/** The key is the name of the file. */
export const dashboards: Readonly<Record<string, Dashboard>> = {
  'on-call': {
    title: 'Commission: on call',
    panels: [
      {
        ...stacked(panel('Alerts that fire', 'locale', '{{alertname}} {{severity}}', firing)),
        calm: CALM,
      },
      stacked(
        panel('Processes', 'locale', '{{program}} {{version}}', 'count by (program, version) (commission_build_info)'),
      ),
      panel('Age that readers see', 's', '{{generation}} partition {{partition}}', 'commission:served_age:seconds'),
      panel('Records that wait', 'locale', '{{generation}} {{topic}}', 'commission:lag:records'),
      panel('Stale, of the last hour', 'percentunit', 'stale', 'commission:freshness_errors:ratio_1h'),
      panel('Failed requests, of the last hour', 'percentunit', 'failed', 'commission:availability_errors:ratio_1h'),
      panel(
        'Parked in the last hour',
        'locale',
        '{{generation}} {{stream}}',
        `max by (generation, stream) (commission:parked:records - (${parkedBefore}))`,
      ),
      panel('Refusals by reason', 'reqps', '{{status}} {{reason}}', rate('api_refusals_total', 'status, reason')),
    ],
  },
  projector: {
    title: 'Commission: projector',
    panels: [
      panel(
        'Records by outcome',
        'cps',
        '{{generation}} {{stream}} {{outcome}}',
        rate('commission_records_total', 'generation, stream, outcome'),
      ),
      panel(
        'Documents by outcome',
        'cps',
        '{{generation}} {{outcome}}',
        rate('commission_documents_total', 'generation, outcome'),
      ),
      panel('Parked by code', 'cps', '{{generation}} {{code}}', rate('commission_parked_total', 'generation, code')),
      panel('Publish to visible, p99', 's', '{{generation}}', p99('commission_publish_seconds', 'generation')),
      panel(
        'Age of what is published, p99',
        's',
        '{{generation}}',
        p99('commission_published_age_seconds', 'generation'),
      ),
      panel(
        'Lag in records',
        'locale',
        '{{generation}} {{topic}} {{partition}}',
        'sum by (generation, topic, partition) (commission_lag_records)',
      ),
      panel(
        'Positions',
        'locale',
        '{{generation}} {{topic}} {{partition}} {{reached}}',
        'max by (generation, topic, partition, reached) (commission_position)',
      ),
      panel(
        'Partitions without owner',
        'locale',
        '{{generation}} {{topic}}',
        'min by (generation, topic) (commission_partitions_without_owner)',
      ),
      panel(
        'Clocks ahead',
        's',
        '{{clock}} {{generation}} {{topic}} {{partition}} {{instance}}',
        'commission_clock_ahead_seconds',
      ),
      panel('Publishers that wait for receipts', 'locale', '{{instance}}', 'commission_receipts_waiting'),
      ...ofProcess('projector'),
    ],
  },
  api: {
    title: 'Commission: API',
    panels: [
      panel('Requests', 'reqps', '{{route}} {{status}}', rate('api_request_seconds_count', 'route, status')),
      panel('Time of requests, p99', 's', '{{route}}', p99('api_request_seconds', 'route')),
      panel(
        'Requests to Elasticsearch',
        'reqps',
        '{{operation}} {{outcome}}',
        rate('api_elasticsearch_seconds_count', 'operation, outcome'),
      ),
      panel('Time of Elasticsearch, p99', 's', '{{operation}}', p99('api_elasticsearch_seconds', 'operation')),
      panel('Refusals', 'reqps', '{{status}} {{reason}}', rate('api_refusals_total', 'status, reason')),
      panel('In use', 'locale', '{{use}} {{state}}', 'sum by (use, state) (api_in_use)'),
      panel('Bytes of answers', 'bytes', '{{instance}}', 'api_answer_bytes'),
      panel('Limited requests', 'reqps', '{{by}}', rate('api_rate_limited_total', 'by')),
      panel('Answers refused for their bytes', 'cps', '{{by}}', rate('api_answers_refused_total', 'by')),
      panel('Answers cut off', 'cps', '{{instance}}', rate('api_answers_cut_off_total', 'instance')),
      panel('Connections turned away', 'cps', '{{instance}}', rate('api_connections_turned_away_total', 'instance')),
      ...ofProcess('api'),
    ],
  },
}

const WIDTH = 12
const HEIGHT = 8
const datasource = { type: 'prometheus', uid: `\${datasource}` }

/** A count has no half, so its axis has none. */
const COUNT = { decimals: 0, min: 0 }
/** Shades of red; the calm series is green. */
const alarmOf = (calm: string) => ({
  defaults: { color: { mode: 'shades', fixedColor: 'red' } },
  overrides: [
    {
      matcher: { id: 'byName', options: calm },
      properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: 'green' } }],
    },
  ],
})

const STACKED = { fillOpacity: 20, stacking: { mode: 'normal', group: 'A' } }

/** Returns name and content of each file. */
export const dashboardFiles = (): Map<string, string> =>
  new Map(
    Object.entries(dashboards).map(([name, { title, panels }]) => {
      const dashboard = {
        uid: `commission-${name}`,
        title,
        schemaVersion: 39,
        tags: ['commission'],
        time: { from: 'now-3h', to: 'now' },
        refresh: '30s',
        templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Prometheus' }] },
        panels: panels.map(({ title, unit, series, expr, calm, isStacked = false }, at) => ({
          id: at + 1,
          type: 'timeseries',
          title,
          datasource,
          gridPos: { x: (at % 2) * WIDTH, y: Math.floor(at / 2) * HEIGHT, w: WIDTH, h: HEIGHT },
          fieldConfig: {
            defaults: {
              unit,
              ...(unit === 'locale' && COUNT),
              ...(calm !== undefined && alarmOf(calm).defaults),
              ...(isStacked && { custom: STACKED }),
            },
            overrides: calm === undefined ? [] : alarmOf(calm).overrides,
          },
          targets: [{ refId: 'A', datasource, expr, legendFormat: series }],
        })),
      }
      return [`${name}.json`, `${JSON.stringify(dashboard, null, 2)}\n`]
    }),
  )
