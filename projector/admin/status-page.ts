/** The status page of the projector: whether it can work, which generation is live, and how far each partition is. */
import {
  type Ages,
  ageText,
  type Cell,
  grouped,
  type PublishedTime,
  STALE_AGE_MS,
  type StatusPage,
  stalePartitions,
  statusPageHtml,
  type Trouble,
  utcText,
} from '../../core/runtime/index.ts'
import type { ClockState } from '../../core/store/index.ts'
import { API_KEYS_GENERATION } from '../../schemas/stored/documents.ts'
import type { FailedSpare } from '../keep-up.ts'
import { LONG_LAG, PARKED_LATELY_HOURS } from '../limits.ts'
import type { ParkedLately, PartitionStatus } from './status.ts'

type ProjectorState = {
  /** The reason of each part that cannot work now. */
  readonly reasons: Readonly<Record<string, string>>
  /** The name of the live generation; empty while it is not known. */
  readonly live: string
  readonly failed: readonly FailedSpare[]
  readonly clocks: ClockState
  readonly partitions: readonly PartitionStatus[] | undefined
  readonly parked: ParkedLately | undefined
  readonly ages: ReturnType<Ages['list']>
  /** Of the live generation, as far as this process publishes it. */
  readonly published: readonly PublishedTime[]
}

/** Returns the page as HTML. @param now milliseconds since 1970 */
export const projectorPage = (state: ProjectorState, now: number): string =>
  statusPageHtml({
    title: 'Commission projector',
    isReady: Object.keys(state.reasons).length === 0,
    troubles: troublesOf(state, now),
    notes: [
      state.live === ''
        ? 'Which generation is live is not known yet.'
        : `Readers see generation ${state.live}: it is live.`,
      ...(state.partitions === undefined ? ['The positions cannot be read now.'] : []),
    ],
    ages: { of: 'Age of what this process publishes for readers', samples: state.ages, now },
    tables: [
      ...(state.partitions === undefined ? [] : [generationsOf(state, state.partitions)]),
      parkedOf(state.parked),
      ...(state.partitions === undefined ? [] : [partitionsOf(state.partitions)]),
    ],
    links: [
      ['status', 'Status as JSON'],
      ['runbooks', 'Runbooks'],
      ['metrics', 'Metrics'],
      ['readyz', 'Readiness'],
      ['asyncapi.json', 'AsyncAPI'],
    ],
  })

const troublesOf = (state: ProjectorState, now: number): Trouble[] => {
  const { reasons, failed, clocks, live, partitions = [], parked, published } = state
  const stale = stalePartitions(published, now)
  const lag = sum(partitions.filter(({ generation }) => generation === live).map(one => one.lag))
  const lately = sum(parked?.codes.map(({ records }) => records) ?? [])
  return [
    ...Object.entries(reasons).map(reasonOf),
    ...(stale === undefined
      ? []
      : [
          {
            text: `This process publishes data of ${stale} that is older than ${ageText(STALE_AGE_MS)}.`,
            alert: 'CommissionStale',
          },
        ]),
    ...(lag > LONG_LAG ? [{ text: `${grouped(lag)} records wait.`, alert: 'CommissionLagGrows' }] : []),
    ...partitions
      .filter(({ lost }) => lost > 0)
      .map(({ topic, partition, generation, lost }) => ({
        text: `Partition ${partition} of ${topic} ends ${grouped(lost)} records before the position of ${generation}.`,
      })),
    ...(lately > 0
      ? [
          {
            text: `${grouped(lately)} ${lately === 1 ? 'record was' : 'records were'} parked in the last ${PARKED_LATELY_HOURS} hours.`,
            alert: 'CommissionRecordsParked',
          },
        ]
      : []),
    ...failed.map(({ generation, code }) => ({
      text: `Generation ${generation} is not live, and has failed: ${code}.`,
      alert: 'CommissionGenerationFailed',
    })),
    ...(clocks.agree
      ? []
      : [{ text: 'The clocks of this machine and of Elasticsearch do not agree.', alert: 'CommissionClockWrong' }]),
  ]
}

/** A start and a stop are no alert. */
const reasonOf = ([part, reason]: [string, string]): Trouble => {
  const text = `${part}: ${reason}.`
  if (part === 'start' || part === 'projector') return { text }
  return { text, alert: part.endsWith(' owners') ? 'CommissionPartitionWithoutOwner' : 'CommissionPartitionStuck' }
}

type Table = StatusPage['tables'][number]

const generationsOf = ({ live, failed }: ProjectorState, partitions: readonly PartitionStatus[]): Table => {
  const stateOf = (generation: string, lag: number): Cell => {
    if (generation === API_KEYS_GENERATION) return { text: 'the API keys', mark: 'good' }
    if (generation === live) return { text: 'live', mark: 'good' }
    return lag > 0 ? { text: 'being built', mark: 'work' } : { text: 'built, not live', mark: 'work' }
  }
  const rows = [...Map.groupBy(partitions, ({ generation }) => generation)].map(([generation, all]) => {
    const lag = sum(all.map(one => one.lag))
    return [generation, stateOf(generation, lag), lag, sum(all.map(({ parked }) => parked))]
  })
  return {
    title: 'Generations',
    heads: ['Generation', 'State', 'Records that wait', 'Parked in all'],
    rows: [
      ...rows,
      ...failed.map(({ generation, code }): Cell[] => [generation, { text: `failed: ${code}`, mark: 'bad' }, '', '']),
    ],
  }
}

const parkedOf = (parked: ParkedLately | undefined): Table => {
  const title = `Parked in the last ${PARKED_LATELY_HOURS} hours`
  if (parked === undefined) return { title, note: 'The parked records cannot be read now.', heads: [], rows: [] }
  const { codes, ahead } = parked
  const note = [
    codes.length === 0 ? 'No record.' : 'They wait for an operator: npx commission parked list.',
    'The times are those of the records: older records that were parked since do not count.',
    ...(ahead > 0 ? [`With a time ahead of the clock: ${grouped(ahead)}.`] : []),
  ].join(' ')
  if (codes.length === 0) return { title, note, heads: [], rows: [] }
  return {
    ...{ title, note, heads: ['Code', 'Records', 'Since', 'Last'] },
    rows: codes.map(({ code, records, first, last }) => [code, records, utcText(first), utcText(last)]),
  }
}

const partitionsOf = (partitions: readonly PartitionStatus[]): Table => ({
  title: 'Partitions',
  note: 'A partition in which no record waits is searchable up to its end.',
  heads: ['Generation', 'Topic', 'Partition', 'Searchable to', 'End', 'Waiting', 'Parked'],
  rows: partitions.map(({ generation, topic, partition, searchable_to, end, lag, parked }) => [
    ...[generation, topic, `${partition}`],
    ...[searchable_to, end, lag, parked],
  ]),
})

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
