/**
 * The right answer for an instant, given the times of an organization's events. Independent of the API: it tries each
 * number of events, and knows an answer only if exactly one number separates the times.
 */
import { EVENT_TIME_AHEAD_MAX_MS, EVENT_TIME_MIN } from '../../schemas/limits.ts'

/** An applied event: its offset, and its time in Kafka. */
export type TimedEvent = { readonly seq: number; readonly at: number }

/**
 * Returns the number of events up to the instant, `refused` if their times do not say it, and `unknown` if none of them
 * is later: then clocks decide whether the instant is over.
 */
export const eventsUpTo = (
  events: readonly TimedEvent[],
  instant: number,
  now: number,
): number | 'refused' | 'unknown' => {
  const says = ({ at }: TimedEvent): boolean => at >= EVENT_TIME_MIN && at <= now + EVENT_TIME_AHEAD_MAX_MS
  if (!events.some(event => says(event) && event.at > instant)) return 'unknown'
  const counts = Array.from({ length: events.length + 1 }, (_, count) => count).filter(count =>
    events.every((event, place) => !says(event) || event.at <= instant === place < count),
  )
  const [only] = counts
  return counts.length === 1 && only !== undefined ? only : 'refused'
}

/**
 * Whether an answer with this many events was right earlier. A process remembers an answer: a later event with an
 * earlier time does not change it. While no event was later than the instant, clocks decided that it was over: then the
 * answer has all events of that time.
 */
export const mayBeRemembered = (events: readonly TimedEvent[], instant: number, now: number, count: number): boolean =>
  events.some((_, end) => {
    const then = eventsUpTo(events.slice(0, end), instant, now)
    return then === count || (then === 'unknown' && end === count)
  })
