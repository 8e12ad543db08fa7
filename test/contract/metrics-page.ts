/** The page of all metrics of both admin ports, docs/metrics.md, as their help texts say it. */
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { createApiMetrics } from '../../api/admin/metrics.ts'
import { createProjectorMetrics } from '../../core/projection/progress/metrics.ts'
import { createProcessMetrics } from '../../core/runtime/process-metrics.ts'

export const METRICS_PAGE = join(import.meta.dirname, '../../docs/metrics.md')

/** A metric with the fields that the published type lacks. */
export type Metric = {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames: readonly string[]
}

/** Returns all metrics of a process, also those that appear only once something watches. */
export const allMetrics = (): Readonly<Record<'projector' | 'API', readonly Metric[]>> => {
  const api = createApiMetrics()
  api.watchUsage(() => ({}) as never)
  api.watchAnswers(() => 0)
  api.watchReadiness(async () => ({ notReady: [], positions: undefined }))
  const metricsOf = ({ registry }: { readonly registry: Registry }) =>
    registry.getMetricsAsArray() as unknown as readonly Metric[]
  return { projector: metricsOf(createProjectorMetrics(createProcessMetrics('projector'))), API: metricsOf(api) }
}

/** Metrics of every Node process, which prom-client describes. */
const isOfNode = ({ name }: Metric): boolean => /^(?:nodejs|process)_/.test(name)

/** Returns the page in Markdown. */
export const metricsPage = (): string =>
  `${[
    '# Metrics',
    'For those who write alerts and dashboards. `npm run contract` writes this page. The admin ports serve these metrics: `GET :9465/metrics` of the projector, `GET :9464/metrics` of the API.',
    'A histogram has the series `…_bucket`, `…_sum` and `…_count`. Both processes also have those of prom-client, such as `process_resident_memory_bytes`.',
    'Alerts: [deploy/monitoring/rules.yml](../deploy/monitoring/rules.yml), with a paragraph each in [runbooks.md](runbooks.md).',
    ...Object.entries(allMetrics()).flatMap(([program, metrics]) => [
      `## ${program === 'API' ? 'API' : 'Projector'}`,
      [
        '| metric | type | labels | meaning |',
        '|---|---|---|---|',
        ...metrics.filter(one => !isOfNode(one)).map(rowOf),
      ].join('\n'),
    ]),
  ].join('\n\n')}\n`

const rowOf = ({ name, type, labelNames, help }: Metric): string =>
  `| \`${name}\` | ${type} | ${labelNames.map(label => `\`${label}\``).join(', ')} | ${help.replace(/\.$/, '')} |`
