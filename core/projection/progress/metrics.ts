/** The projector's Prometheus metrics. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { type ParkCode, parkCodes } from '../../../schemas/errors.ts'
import type { Stream } from '../../../schemas/events.ts'
import { API_KEYS_GENERATION } from '../../../schemas/stored/documents.ts'
import type { ProjectedBatch } from '../../ledger/index.ts'
import type { ClockState } from '../../store/index.ts'

/** Progress of a partition: the next offset of each stage. */
export type StreamStatus = {
  readonly generation: string
  readonly topic: string
  readonly partition: number
  readonly readTo: number
  readonly writtenTo: number
  /** The published position. */
  readonly searchableTo: number
  readonly committedTo: number
  readonly end: number
  /** Everything published up to this instant is included: milliseconds since 1970, 0 while not known. */
  readonly publishedUntil: number
}

/** How many parked records of a stream are stored, whichever process stored them. */
export type StoredParked = { readonly generation: string; readonly stream: Stream; readonly records: number }

/** Functions that each scrape calls. */
type Scraped = {
  readonly partitions?: () => readonly StreamStatus[]
  /** Without the streams whose records cannot be counted now. It never rejects. */
  readonly storedParked?: () => Promise<readonly StoredParked[]>
  readonly receiptsWaiting?: () => number
  readonly failedSpares?: () => readonly { readonly generation: string; readonly code: string }[]
  readonly clock?: () => ClockState
}

/** Registers the metrics of a projector or of a rebuild, which nobody scrapes, and returns the functions that count. */
export const createProjectorMetrics = (
  registry: Registry,
  {
    partitions = () => [],
    storedParked = async () => [],
    receiptsWaiting = () => 0,
    failedSpares = () => [],
    clock,
  }: Scraped = {},
) => {
  const registers = [registry]
  const records = new Counter({
    name: 'commission_records_total',
    help: 'Records projected by this process, by outcome',
    labelNames: ['generation', 'stream', 'outcome'],
    registers,
  })
  const parked = new Counter({
    name: 'commission_parked_total',
    help: 'Records parked by this process, by code',
    labelNames: ['generation', 'stream', 'code'],
    registers,
  })
  new Gauge({
    name: 'commission_parked_records',
    help: 'Parked records that are stored, also by other processes. Absent while Elasticsearch does not count them',
    labelNames: ['generation', 'stream'],
    registers,
    async collect() {
      const found = await storedParked()
      this.reset()
      for (const { generation, stream, records } of found) this.set({ generation, stream }, records)
    },
  })
  const documents = new Counter({
    name: 'commission_documents_total',
    help: 'Documents sent to Elasticsearch, by outcome. `retried` also counts documents whose read was refused',
    labelNames: ['generation', 'stream', 'outcome'],
    registers,
  })
  const balances = new Counter({
    name: 'commission_balances_total',
    help: 'Balances of totals that were stored',
    labelNames: ['generation'],
    registers,
  })
  const latency = new Histogram({
    name: 'commission_publish_seconds',
    help: 'Seconds from the timestamp of a record until readers see it, for the last record of each publication',
    labelNames: ['generation', 'stream'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers,
  })
  new Gauge({
    name: 'commission_position',
    help: 'Next offset of a partition, by the stage that reached it',
    labelNames: ['generation', 'topic', 'partition', 'reached'],
    registers,
    collect() {
      this.reset()
      for (const { generation, topic, partition, publishedUntil: _, ...reached } of partitions()) {
        for (const [name, offset] of Object.entries(reached)) {
          this.set({ generation, topic, partition, reached: name }, offset)
        }
      }
    },
  })
  new Gauge({
    name: 'commission_lag_records',
    help: 'Offsets of a partition that readers do not see yet',
    labelNames: ['generation', 'topic', 'partition'],
    registers,
    collect() {
      this.reset()
      for (const { generation, topic, partition, searchableTo, end } of partitions()) {
        this.set({ generation, topic, partition }, Math.max(0, end - searchableTo))
      }
    },
  })
  new Gauge({
    name: 'commission_published_until_seconds',
    help: 'Everything published up to this instant is included: seconds since 1970, 0 while not known. Its age is the lag in seconds',
    labelNames: ['generation', 'partition'],
    registers,
    collect() {
      this.reset()
      for (const { generation, partition, publishedUntil } of partitions()) {
        if (generation !== API_KEYS_GENERATION) this.set({ generation, partition }, publishedUntil / 1000)
      }
    },
  })
  const age = new Histogram({
    name: 'commission_published_age_seconds',
    help: 'Age of the published time of a partition, observed several times a second, also while nothing is published',
    labelNames: ['generation'],
    buckets: [0.5, 1, 2, 5, 10, 30, 60, 300],
    registers,
  })
  new Gauge({
    name: 'commission_receipts_waiting',
    help: 'Publishers that wait for a receipt',
    registers,
    collect() {
      this.set(receiptsWaiting())
    },
  })
  const clocks = new Gauge({
    name: 'commission_clock_ahead_seconds',
    help: "Seconds that a clock is ahead of the local clock. For records: below 0 while their broker's clock is behind",
    labelNames: ['clock', 'generation', 'topic', 'partition'],
    registers,
    collect() {
      const ahead = clock?.().elasticsearch_ahead_ms
      if (typeof ahead === 'number') this.set({ clock: 'elasticsearch' }, ahead / 1000)
    },
  })

  new Gauge({
    name: 'commission_generation_failed',
    help: 'Spare generations that failed: 1 each, by the code of the failure',
    labelNames: ['generation', 'code'],
    registers,
    collect() {
      this.reset()
      for (const { generation, code } of failedSpares()) this.set({ generation, code }, 1)
    },
  })

  const unowned = new Gauge({
    name: 'commission_partitions_without_owner',
    help: 'Partitions that no projector of this index prefix owns',
    labelNames: ['generation', 'topic'],
    registers,
  })

  /** A counter that begins above 0 has no increase: Prometheus would not see the first parked record. */
  const startAtZero = (stream: Stream, generation: string): void => {
    for (const outcome of ['applied', 'duplicate', 'parked']) records.inc({ generation, stream, outcome }, 0)
    for (const code of parkCodes) parked.inc({ generation, stream, code }, 0)
    for (const outcome of ['written', 'stale', 'retried']) documents.inc({ generation, stream, outcome }, 0)
  }

  const of = (stream: Stream, generation: string) => {
    startAtZero(stream, generation)
    return {
      countProjected: (counts: ProjectedBatch['counts'], codes: readonly ParkCode[]) => {
        for (const [outcome, count] of Object.entries(counts))
          if (count > 0) records.inc({ generation, stream, outcome }, count)
        for (const code of codes) parked.inc({ generation, stream, code })
      },
      countWritten: (outcome: 'written' | 'stale' | 'retried', items: number) => {
        if (items > 0) documents.inc({ generation, stream, outcome }, items)
      },
      countBalances: (written: number) => balances.inc({ generation }, written),
      setUnowned: (topic: string, partitions: number) => unowned.set({ generation, topic }, partitions),
      setRecordsBehind: (topic: string, partition: number, milliseconds: number) =>
        clocks.set({ clock: 'records', generation, topic, partition }, -milliseconds / 1000),
      // The last value of a stream or partition that is gone would be an alert until the end of the process.
      forgetUnowned: (topic: string) => unowned.remove({ generation, topic }),
      forgetRecordsBehind: (topic: string, partition: number) =>
        clocks.remove({ clock: 'records', generation, topic, partition }),
      observePublished: (seconds: number) => latency.observe({ generation, stream }, seconds),
      observeAge: (seconds: number) => age.observe({ generation }, seconds),
    }
  }
  return { registry, of }
}

export type StreamMetrics = ReturnType<ReturnType<typeof createProjectorMetrics>['of']>
