/** Answers a fetch like a broker: at once if there are records, otherwise after FETCH_WAIT_MS. */
import type { FetchedMessage } from '../../core/log/kafka/patch-fetch.ts'
import { FETCH_WAIT_MS } from '../../core/log/limits.ts'
import type { Random } from '../support/random.ts'
import { fetchedOf } from '../support/record-batches.ts'
import type { Topic } from './broker.ts'
import type { Clock } from './clock.ts'
import type { Entry } from './history.ts'

export type Fetched = {
  readonly partition: number
  readonly from: number
  /** Undefined when the offset is out of range. */
  readonly entries: readonly Entry[] | undefined
  readonly end: number
}

export const fetchFrom = (
  { partitions }: Topic,
  asked: readonly (readonly [partition: number, offset: number])[],
  clock: Clock,
  random: Random,
  answer: (fetched: Fetched[]) => void,
): void => {
  const look = (): Fetched[] =>
    asked.map(([partition, from]) => {
      const count = 1 + random.below(random.pick([2, 5, 40]))
      return {
        partition,
        from,
        entries: partitions[partition]?.read(from, count),
        end: partitions[partition]?.end ?? 0,
      }
    })
  const first = look()
  if (first.some(({ entries }) => entries === undefined || entries.length > 0)) answer(first)
  else clock.after(FETCH_WAIT_MS, () => answer(look()))
}

export const batchOf = (topic: string, { partition, from, entries, end }: Fetched) => ({
  topic,
  partition,
  fetchedOffset: String(from),
  highWatermark: String(end),
  rawMessages: messagesOf(entries ?? []),
})

/** As `core/log/kafka/patch-fetch.ts` leaves them. */
export const messagesOf = (entries: readonly Entry[]): FetchedMessage[] => {
  if (entries.length === 0) return []
  const records = entries.map(({ kind, offset, message, batch }) => ({
    kind,
    batch,
    offset,
    timestamp: Number(message.timestamp),
    key: message.key,
    value: message.value,
    headers: message.headers,
  }))
  return [{ offset: String(Number.MAX_SAFE_INTEGER), fetched: fetchedOf(records) }]
}
