/** The status page of the projector: whether it can work, and how far each partition of each generation is. */
import { statusPageHtml } from '../../core/runtime/index.ts'
import type { ClockState } from '../../core/store/index.ts'
import type { FailedSpare } from '../keep-up.ts'
import type { PartitionStatus } from './status.ts'

type ProjectorState = {
  /** The reason of each part that cannot work now. */
  readonly reasons: Readonly<Record<string, string>>
  readonly failed: readonly FailedSpare[]
  readonly clocks: ClockState
  readonly partitions: readonly PartitionStatus[] | undefined
}

/** Returns the page as HTML. */
export const projectorPage = ({ reasons, failed, clocks, partitions }: ProjectorState): string =>
  statusPageHtml({
    title: 'Commission projector',
    notReady: Object.entries(reasons).map(([part, reason]) => `${part}: ${reason}`),
    warnings: [
      ...failed.map(({ generation, code }) => `Generation ${generation} is not live, and has failed: ${code}.`),
      ...(clocks.agree ? [] : ['The clocks of this machine and of Elasticsearch do not agree.']),
    ],
    ...(partitions === undefined
      ? { notes: ['The positions cannot be read now.'] }
      : {
          notes: [
            'A partition with a lag of 0 is searchable up to its end. Parked records wait for an operator: npx commission parked list.',
          ],
          table: {
            heads: ['Generation', 'Topic', 'Partition', 'Searchable to', 'End', 'Lag', 'Parked'],
            rows: partitions.map(({ generation, topic, partition, searchable_to, end, lag, parked }) => [
              ...[generation, topic, partition],
              ...[searchable_to, end, lag, parked],
            ]),
          },
        }),
    links: [
      ['status', 'Status'],
      ['metrics', 'Metrics'],
      ['readyz', 'Readiness'],
      ['asyncapi.json', 'AsyncAPI'],
    ],
  })
