/** An assignment with held positions and verifications, and the calls it makes to the Kafka client. */

import { recordHash } from '../../core/ledger/event/decode.ts'
import { PartitionFlow } from '../../core/projection/flow/flow.ts'
import { Assignment } from '../../core/projection/stream/assign.ts'
import type { PublishedPosition, PublishedState } from '../../core/store/positions/publish.ts'
import { Held } from './held.ts'
import { eventRecord } from './records.ts'
import { startFlow } from './running-flow.ts'
import { rep } from './story.ts'

export const setUp = () => {
  /** The calls to the Kafka client, in order. */
  const told: string[] = []
  const failures: unknown[] = []
  const positions = new Held<{ partition: number; signal: AbortSignal }, PublishedPosition>()
  const verifications = new Held<AbortSignal, void>()
  /** The partitions that were verified further. */
  const verified: number[] = []
  const flows: PartitionFlow[] = []
  /** For each flow, how many partitions share the memory. */
  const sharing: number[] = []
  const { parts, limits } = startFlow()
  const assignment = new Assignment({
    topic: 'commission.events',
    consumption: () => ({
      seek: (partition, offset) => told.push(`seek ${partition} to ${offset}`),
      resume: partition => told.push(`resume ${partition}`),
    }),
    openPartition: (partition, signal) => positions.call({ partition, signal }),
    verify: signal => verifications.call(signal),
    onVerified: partition => verified.push(partition),
    startFlow: (_, published, _signal, partitions) => {
      sharing.push(partitions)
      const flow = new PartitionFlow({ ...parts, store: { ...parts.store, published } }, limits)
      flows.push(flow)
      return flow
    },
    fail: error => failures.push(error),
  })
  return { assignment, told, failures, positions, verifications, verified, flows, sharing }
}

export const publishedAt = (position: number, last: PublishedState['last'] = null): PublishedPosition => {
  let current: PublishedState = { position, last, at: 0, time: 0, serve_from: 0 }
  return {
    current: () => current,
    advance: async further => {
      current = { ...current, ...further }
    },
    advanceTime: async time => {
      current = { ...current, time }
    },
    readAgain: async () => undefined,
  }
}
export const record = eventRecord(rep(), 6, 1_000)
export const last = { offset: 6, sha256: recordHash(record) }
export const lastBatch = { from: 6, end: 12, records: [record, eventRecord(rep({ name: 'Ada' }), 11, 1_000)] }
