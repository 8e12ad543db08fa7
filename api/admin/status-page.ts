/** The status page of the API: whether it can answer, and up to which time its answers are complete. */
import {
  type Ages,
  ageText,
  oldestAge,
  STALE_AGE_MS,
  type StatusPage,
  stalePartitions,
  statusPageHtml,
  type Trouble,
  utcText,
} from '../../core/runtime/index.ts'
import type { ServedPositions } from '../../core/store/index.ts'
import type { Readiness } from './ready.ts'

/** The age of the oldest served partition; undefined if it is not known. @param now milliseconds since 1970 */
export const ageOf = ({ positions }: Readiness, now: number): number | undefined =>
  oldestAge(positions?.partitions.flatMap(position => position?.time ?? []) ?? [], now)

/** Returns the page as HTML. @param now milliseconds since 1970 */
export const statusPage = (readiness: Readiness, ages: ReturnType<Ages['list']>, now: number): string => {
  const { notReady, positions } = readiness
  return statusPageHtml({
    title: 'Commission API',
    isReady: notReady.length === 0,
    troubles: [
      ...notReady.map(reasonOf),
      ...(positions === undefined ? [] : [...notServedOf(positions), ...staleOf(positions, now)]),
    ],
    ages: { of: 'Age of the answers, for the oldest partition', samples: ages, now },
    ...(positions === undefined
      ? { notes: ['The positions of the projection cannot be read now.'], tables: [] }
      : projectionOf(positions, now)),
    links: [
      ['reference', 'Reference'],
      ['openapi.json', 'OpenAPI'],
      ['runbooks', 'Runbooks'],
      ['metrics', 'Metrics'],
      ['readyz', 'Readiness'],
    ],
  })
}

const reasonOf = (reason: string): Trouble =>
  reason === 'stopping'
    ? { text: 'This process is stopping.' }
    : { text: `The API cannot answer: ${reason}.`, alert: 'CommissionApiNotReady' }

const notServedOf = ({ notServed }: ServedPositions): Trouble[] =>
  [...notServed].map(([partition, reason]) => ({
    text: `Requests for organizations of partition ${partition} get 503: ${reason}.`,
    alert: 'CommissionPartitionNotServed',
  }))

const staleOf = ({ partitions }: ServedPositions, now: number): Trouble[] => {
  const times = partitions.flatMap((position, partition) => (position ? [{ partition, time: position.time }] : []))
  const stale = stalePartitions(times, now)
  if (stale === undefined) return []
  return [
    { text: `Readers see data of ${stale} that is older than ${ageText(STALE_AGE_MS)}.`, alert: 'CommissionStale' },
  ]
}

const projectionOf = (
  { generation, building, partitions, notServed }: ServedPositions,
  now: number,
): Pick<StatusPage, 'notes' | 'tables'> => ({
  notes: [
    `Generation ${generation.name} is live, with version ${generation.rules} of the rules: answers come from it.`,
    building === null ? 'No generation is being built.' : `Generation ${building} is being built.`,
  ],
  tables: [
    {
      title: 'Partitions',
      note: 'Answers include everything that was published up to these times. Each organization is in one partition.',
      heads: ['Partition', 'Published to offset', 'Included up to', 'Age'],
      rows: partitions.map((position, partition) => {
        if (position === undefined)
          return [`${partition}`, '', { text: `not served: ${notServed.get(partition)}`, mark: 'bad' }, '']
        const { publishedTo, time } = position
        return [
          `${partition}`,
          publishedTo,
          // At a first start, and after `adopt` or `rewind`, until the position has reached an end.
          time === 0 ? { text: 'not known', mark: 'bad' } : utcText(time),
          time === 0 ? '' : { text: ageText(now - time), mark: now - time > STALE_AGE_MS ? 'bad' : 'good' },
        ]
      }),
    },
  ],
})
