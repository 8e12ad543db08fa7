/** Prometheus metrics of the API. Labels hold only route patterns, methods, statuses and fixed words. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { createProcessMetrics } from '../../core/runtime/index.ts'
import type { Limit, Observe, ServedPositions } from '../../core/store/index.ts'
import type { Usage } from '../access/permits.ts'
import type { ObserveRequest } from '../answer/answer-and-log.ts'
import type { Readiness } from './ready.ts'

type Metrics = {
  readonly registry: Registry
  readonly request: ObserveRequest
  readonly elasticsearch: Observe
  readonly countRateLimited: (by: (typeof LIMITED_BY)[number]) => void
  /** Whether Redis counts requests. `countLocalRate` is called for each request that this process counts meanwhile. */
  readonly setRateShared: (shared: boolean) => void
  readonly countLocalRate: () => void
  readonly countRefusedBytes: (code: string) => void
  readonly countConnectionDrop: () => void
  readonly countUnhandledRejection: () => void
  /** Registers the function that returns what is in use. Each scrape calls it. */
  readonly watchUsage: (usage: () => Usage) => void
  readonly countAnswerRefused: (by: Limit) => void
  readonly countDeliveryTimeout: () => void
  readonly countAuditLines: (outcome: 'written' | 'lost', lines: number) => void
  /** Registers the function that returns the held bytes of answers. Each scrape calls it. */
  readonly watchAnswers: (held: () => number) => void
  /** Registers the function that reads the readiness. Each scrape calls it once. It never rejects. */
  readonly watchReadiness: (read: () => Promise<Readiness>) => void
}

const LIMITED_BY = ['key', 'under_way', 'address'] as const
const REFUSED_BY: readonly Limit[] = ['process', 'organization', 'key']
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** Creates a registry with all metrics of the API, and the functions that count. Times are in milliseconds. */
export const createApiMetrics = (): Metrics => {
  const registry = createProcessMetrics('api')
  const registers = [registry]
  const requests = new Histogram({
    name: 'api_request_seconds',
    help: 'Requests by method, route pattern and status, and how long they took.',
    labelNames: ['method', 'route', 'status'],
    buckets: SECONDS,
    registers,
  })
  const reads = new Histogram({
    name: 'api_elasticsearch_seconds',
    help: 'Requests to Elasticsearch by operation and outcome, and how long they took.',
    labelNames: ['operation', 'outcome'],
    buckets: SECONDS,
    registers,
  })
  const rateLimited = new Counter({
    name: 'api_rate_limited_total',
    help: 'Requests refused by a limit: the rate of their key, the requests under way, or the unknown keys of their address.',
    labelNames: ['by'],
    registers,
  })
  const rateShared = new Gauge({
    name: 'api_rate_shared',
    help: '1 while Redis counts the requests of each key for all processes; 0 while each process counts alone.',
    registers,
  })
  const localRateCounts = new Counter({
    name: 'api_rate_alone_total',
    help: 'Requests that this process counted alone although REDIS_URL is set.',
    registers,
  })
  const refusedBytes = new Counter({
    name: 'api_refused_bytes_total',
    help: 'Connections refused because their bytes were not a valid request, by code.',
    labelNames: ['code'],
    registers,
  })
  const connectionDrops = new Counter({
    name: 'api_connections_turned_away_total',
    help: 'New connections closed because the limit was reached and no connection was idle.',
    registers,
  })
  const refusals = new Counter({
    name: 'api_refusals_total',
    help: 'Requests that were refused, by status and reason.',
    labelNames: ['status', 'reason'],
    registers,
  })
  const watchUsage = (usage: () => Usage): void => {
    const inUse = new Gauge({
      name: 'api_in_use',
      help: 'Permits held now, and requests waiting: requests under way, reads, large answers, key look-ups and waits for changes.',
      labelNames: ['use', 'state'],
      registers,
      collect: () => {
        for (const [use, { held, waiting }] of Object.entries(usage())) {
          inUse.set({ use, state: 'held' }, held)
          inUse.set({ use, state: 'waiting' }, waiting)
        }
      },
    })
  }
  const unhandled = new Counter({
    name: 'api_unhandled_rejections_total',
    help: 'Unhandled promise rejections. Each is a defect, and the log has its location.',
    registers,
  })
  const answersRefused = new Counter({
    name: 'api_answers_refused_total',
    help: 'Answers refused because too many bytes of answers were held: by the process, an organization or a key.',
    labelNames: ['by'],
    registers,
  })
  // Counters begin at 0. Prometheus sees no increase in a counter that appears with 1.
  for (const by of LIMITED_BY) rateLimited.inc({ by }, 0)
  for (const by of REFUSED_BY) answersRefused.inc({ by }, 0)
  refusals.inc({ status: 500, reason: 'internal' }, 0)
  const deliveryTimeouts = new Counter({
    name: 'api_answers_cut_off_total',
    help: 'Answers whose connection was closed because the client read too slowly.',
    registers,
  })
  const auditLines = new Counter({
    name: 'api_audit_lines_total',
    help: 'Lines of the audit log by outcome: written, or lost. Their requests were answered unless AUDIT_STRICT is true.',
    labelNames: ['outcome'],
    registers,
  })
  for (const outcome of ['written', 'lost']) auditLines.inc({ outcome }, 0)
  const watchAnswers: Metrics['watchAnswers'] = held => {
    new Gauge({
      name: 'api_answer_bytes',
      help: 'Bytes of answers that are held: asked for, being made, or not yet delivered.',
      registers,
      collect() {
        this.set(held())
      },
    })
  }
  const watchReadiness: Metrics['watchReadiness'] = read => {
    let reading: ReturnType<typeof read> | undefined
    /** One read for all gauges: a scrape collects them at once. */
    const readOnce = () => {
      reading ??= read().finally(() => {
        reading = undefined
      })
      return reading
    }
    /** Without positions the gauge is absent. */
    const setFrom = async (
      gauge: { readonly reset: () => void },
      set: (positions: ServedPositions, generation: string) => void,
    ): Promise<void> => {
      const { positions } = await readOnce()
      gauge.reset()
      if (positions !== undefined) set(positions, positions.generation.name)
    }
    new Gauge({
      name: 'api_not_ready',
      help: 'Reasons on `/readyz` of this process: 1 each. Absent while it is ready, or stops.',
      labelNames: ['reason'],
      registers,
      async collect() {
        const { notReady } = await readOnce()
        this.reset()
        for (const reason of notReady) if (reason !== 'stopping') this.set({ reason }, 1)
      },
    })
    new Gauge({
      name: 'commission_published_until_seconds',
      help: 'Everything published up to this instant is served: seconds since 1970, 0 while not known. Absent while it cannot be read, or is not served.',
      labelNames: ['generation', 'partition'],
      registers,
      collect() {
        return setFrom(this, ({ partitions }, generation) => {
          for (const [partition, position] of partitions.entries()) {
            if (position !== undefined) this.set({ generation, partition }, position.time / 1000)
          }
        })
      },
    })
    new Gauge({
      name: 'commission_partition_not_served',
      help: 'Partitions of the live generation whose organizations get 503: 1 each, by the reason.',
      labelNames: ['generation', 'partition', 'reason'],
      registers,
      collect() {
        return setFrom(this, ({ notServed }, generation) => {
          for (const [partition, reason] of notServed) this.set({ generation, partition, reason }, 1)
        })
      },
    })
  }
  return {
    registry,
    request: (method, route, status, milliseconds, reason) => {
      requests.observe({ method, route: route ?? 'none', status }, milliseconds / 1000)
      if (reason !== undefined) refusals.inc({ status, reason })
    },
    elasticsearch: (operation, outcome, milliseconds) => reads.observe({ operation, outcome }, milliseconds / 1000),
    countRateLimited: by => rateLimited.inc({ by }),
    setRateShared: shared => rateShared.set(shared ? 1 : 0),
    countLocalRate: () => localRateCounts.inc(),
    countConnectionDrop: () => connectionDrops.inc(),
    countRefusedBytes: code => refusedBytes.inc({ code }),
    countUnhandledRejection: () => unhandled.inc(),
    watchUsage,
    countAnswerRefused: by => answersRefused.inc({ by }),
    countDeliveryTimeout: () => deliveryTimeouts.inc(),
    countAuditLines: (outcome, lines) => auditLines.inc({ outcome }, lines),
    watchAnswers,
    watchReadiness,
  }
}
