/** What the API counts and measures, for Prometheus. Labels are route patterns, methods, statuses and words of ours only. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ObserveRequest } from './answer-errors.ts'
import type { Observe } from './elasticsearch.ts'

export type Metrics = {
  readonly registry: Registry
  readonly request: ObserveRequest
  readonly elasticsearch: Observe
  readonly rateLimited: (by: 'key' | 'address') => void
  /** Whether Redis counts requests, and every request that this process counted for itself meanwhile. */
  readonly countedTogether: (counts: boolean) => void
  readonly countedAlone: () => void
  readonly refusedBytes: (code: string) => void
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

export const createMetrics = (): Metrics => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
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
  const limited = new Counter({
    name: 'api_rate_limited_total',
    help: 'Requests over the limit of their key, or of an address that comes without a valid one.',
    labelNames: ['by'],
    registers,
  })
  const together = new Gauge({
    name: 'api_rate_shared',
    help: '1 while Redis counts the requests of each key for all processes; 0 while each counts for itself.',
    registers,
  })
  const alone = new Counter({
    name: 'api_rate_alone_total',
    help: 'Requests counted by this process for itself although REDIS_URL is set.',
    registers,
  })
  const refused = new Counter({
    name: 'api_refused_bytes_total',
    help: 'Connections whose bytes were no request, by code.',
    labelNames: ['code'],
    registers,
  })
  return {
    registry,
    request: (method, route, status, milliseconds) =>
      requests.observe({ method, route: route ?? 'none', status }, milliseconds / 1000),
    elasticsearch: (operation, outcome, milliseconds) => reads.observe({ operation, outcome }, milliseconds / 1000),
    rateLimited: by => limited.inc({ by }),
    countedTogether: counts => together.set(counts ? 1 : 0),
    countedAlone: () => alone.inc(),
    refusedBytes: code => refused.inc({ code }),
  }
}
