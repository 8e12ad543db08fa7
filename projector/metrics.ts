/** What the projector counts, for Prometheus. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ParkCode } from '../schemas/errors.ts'
import type { Stream } from '../schemas/events.ts'
import type { Projection } from './project.ts'

/** Where a partition stands: next offsets, each named for what has reached it. */
export type StreamStatus = {
  readonly generation: string
  readonly topic: string
  readonly partition: number
  readonly readTo: number
  readonly writtenTo: number
  readonly searchableTo: number
  readonly committedTo: number
  readonly end: number
}

export const createMetrics = (partitions: () => readonly StreamStatus[], receiptsWaiting = () => 0) => {
  const registry = new Registry()
  const registers = [registry]
  const records = new Counter({
    name: 'commission_records_total',
    help: 'Records projected by this process, by what was decided',
    labelNames: ['stream', 'outcome'],
    registers,
  })
  const parked = new Counter({
    name: 'commission_parked_total',
    help: 'Records parked by this process, by reason',
    labelNames: ['stream', 'code'],
    registers,
  })
  const documents = new Counter({
    name: 'commission_documents_total',
    help: 'Documents sent to Elasticsearch, by what became of them',
    labelNames: ['stream', 'outcome'],
    registers,
  })
  const latency = new Histogram({
    name: 'commission_publish_seconds',
    help: 'From the time of a record to the moment readers may see it, of the last record of each publication',
    labelNames: ['stream'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers,
  })
  new Gauge({
    name: 'commission_position',
    help: 'Next offset of a partition, by what has reached it',
    labelNames: ['generation', 'topic', 'partition', 'reached'],
    registers,
    collect() {
      this.reset()
      for (const { generation, topic, partition, ...reached } of partitions()) {
        for (const [name, offset] of Object.entries(reached)) {
          this.set({ generation, topic, partition, reached: name }, offset)
        }
      }
    },
  })
  new Gauge({
    name: 'commission_receipts_waiting',
    help: 'Publishers that wait for what becomes of a record',
    registers,
    collect() {
      this.set(receiptsWaiting())
    },
  })

  return {
    registry,
    of: (stream: Stream) => ({
      projected: (counts: Projection['counts'], codes: readonly ParkCode[]) => {
        for (const [outcome, count] of Object.entries(counts)) if (count > 0) records.inc({ stream, outcome }, count)
        for (const code of codes) parked.inc({ stream, code })
      },
      written: (outcome: 'written' | 'stale' | 'retried', items: number) => {
        if (items > 0) documents.inc({ stream, outcome }, items)
      },
      published: (seconds: number) => latency.observe({ stream }, seconds),
    }),
  }
}

export type StreamMetrics = ReturnType<ReturnType<typeof createMetrics>['of']>
