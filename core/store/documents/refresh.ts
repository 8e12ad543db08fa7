/**
 * Makes written documents searchable. In: the indices written to. Out: nothing, once a refresh that began after the
 * call has succeeded on every shard. One refresh, for all calls that came before it began, is a round:
 *
 *   gathering ──(the round before has ended, and its delay is over)──► refreshing ──(all shards)──► ended
 *
 * - gathering: calls join it. It begins an interval after the round before began, or after the shortest delay of its
 *   calls if that is longer.
 * - refreshing: it is tried until it succeeds. Later calls belong to the next round: their writes may not be
 *   acknowledged when this one begins. Writes wait for an attempt (`held`), but not between two attempts.
 * - ended: its calls are answered.
 *
 * At most one round gathers, and one refreshes. `enter` makes each transition.
 *
 * Promises: one refresh at a time over all partitions. Calls during a refresh share the next one. Refreshes begin at
 * least an interval apart, but for another attempt, and for the last one of a stop. Writes wait for the refresh under
 * way, so that they go together, and do not slow it down.
 */

import { StopError, Unanswered } from '../../runtime/index.ts'
import type { Coverage } from '../elasticsearch/answers.ts'
import type { Send } from '../elasticsearch/client.ts'
import { WRITES_HELD_MS } from '../limits.ts'

/**
 * A call without an index refreshes nothing. It only lets the refresh that gathers begin after its delay, if that is
 * shorter: less is left to write.
 * @param delay the refresh may begin only these milliseconds after the one before it
 */
export type Refresh = (indices: readonly string[], delay: number) => Promise<void>

export type Refreshing = {
  readonly refresh: Refresh
  /** Resolves when no refresh is under way for which readers wait, after WRITES_HELD_MS at the latest. */
  readonly untilRefreshed: () => Promise<void>
  /** Lets the next refresh and all later ones begin without a delay: a stream that stops publishes all it wrote. */
  readonly endAllDelays: () => void
}

type RefreshSteps = {
  /** Retries until success or a permanent error. */
  readonly keepTrying: <Result>(attempt: () => Promise<Result>) => Promise<Result>
  /** Tries once. */
  readonly send: Send
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  readonly sleep: (milliseconds: number) => Promise<void>
  /** Milliseconds from the beginning of one refresh to the next. */
  readonly interval: number
}

type RoundState =
  | { readonly name: 'gathering' }
  /** `held` is the attempt for which writes wait, because readers wait for it. */
  | { readonly name: 'refreshing'; readonly held: Promise<unknown> | undefined }
  | { readonly name: 'ended' }

type Round = {
  readonly indices: Set<string>
  /** The shortest delay of its calls. */
  delay: number
  /** Resolves when the delay is shorter than it was. Of this round only: a promise keeps a reaction for each wait. */
  shortened: PromiseWithResolvers<void>
  /** Only `enter` sets it. */
  state: RoundState
}

export const createRefresh = (steps: RefreshSteps): Refreshing => {
  let lastEnded: Promise<void> = Promise.resolve()
  let lastBegan = Number.NEGATIVE_INFINITY
  let newest: (Round & { readonly done: Promise<void> }) | undefined
  let refreshing: Round | undefined
  let hasEndedAllDelays = false

  const enter = (round: Round, state: RoundState): void => {
    round.state = state
    refreshing = state.name === 'refreshing' ? round : undefined
  }
  /** The round that calls join. */
  const gathering = () => (newest?.state.name === 'gathering' ? newest : undefined)

  const run = async (round: Round, before: Promise<void>): Promise<void> => {
    await before.catch(() => undefined)
    await untilDue(round)
    enter(round, { name: 'refreshing', held: undefined })
    lastBegan = steps.elapsed()
    try {
      await steps.keepTrying(() => refreshNow(round))
    } finally {
      enter(round, { name: 'ended' })
    }
  }
  const untilDue = async (round: Round): Promise<void> => {
    const left = (): number => lastBegan + Math.max(steps.interval, round.delay) - steps.elapsed()
    for (let wait = left(); wait > 0 && !hasEndedAllDelays; wait = left()) {
      await Promise.race([round.shortened.promise, steps.sleep(wait)])
    }
  }
  /**
   * Tries once. While it runs, writes wait. But they do not wait for a refresh with a long delay: readers do not wait
   * for those records one by one, so writing fast is worth more.
   */
  const refreshNow = async (round: Round): Promise<void> => {
    const attempt = refreshOnce([...round.indices].sort(), steps.send)
    if (round.delay <= WRITES_HELD_MS) enter(round, { name: 'refreshing', held: attempt })
    try {
      await attempt
    } finally {
      enter(round, { name: 'refreshing', held: undefined })
    }
  }
  const untilRefreshed = async (): Promise<void> => {
    const held = refreshing?.state.name === 'refreshing' ? refreshing.state.held : undefined
    if (held !== undefined) await Promise.race([held.catch(() => undefined), steps.sleep(WRITES_HELD_MS)])
  }

  const beginRound = (delay: number) => {
    const shortened = Promise.withResolvers<void>()
    const round: Round = { indices: new Set<string>(), delay, shortened, state: { name: 'gathering' } }
    const before = lastEnded
    lastEnded = run(round, before)
    newest = Object.assign(round, { done: lastEnded })
    return newest
  }

  const refresh: Refresh = async (indices, delay) => {
    const round = gathering() ?? (indices.length > 0 ? beginRound(delay) : undefined)
    if (round === undefined) return
    for (const index of indices) round.indices.add(index)
    if (delay < round.delay) {
      round.delay = delay
      round.shortened.resolve()
      round.shortened = Promise.withResolvers<void>()
    }
    if (indices.length > 0) await round.done
  }
  const endAllDelays = (): void => {
    hasEndedAllDelays = true
    gathering()?.shortened.resolve()
  }
  return { refresh, untilRefreshed, endAllDelays }
}

const refreshOnce = async (indices: readonly string[], send: RefreshSteps['send']): Promise<void> => {
  const { status, body } = await send<Coverage | undefined>({
    method: 'POST',
    path: `/${indices.join(',')}/_refresh`,
  })
  if (status === 404) throw new StopError('index_missing', `one of ${indices.join(', ')}, while refreshing`)
  const { total, successful, failed } = body?._shards ?? {}
  if (status !== 200 || failed !== 0) throw new Unanswered('elasticsearch', status === 200 ? 503 : status)
  if (successful === total) return
  // Fewer shards were refreshed than there are, and none failed. A missing replica does no harm. But a shard without
  // any copy, for example while it moves, is not counted as failed either, and its documents are not searchable. The
  // health of the index tells the two cases apart.
  if (indices.length > 1) return void (await Promise.all(indices.map(index => refreshOnce([index], send))))
  const { body: health } = await send<Health | undefined>({ method: 'GET', path: `/_cluster/health/${indices[0]}` })
  const { status: color, active_shards } = health ?? {}
  if (color === 'red' || !(Number(successful) >= Number(active_shards))) throw new Unanswered('elasticsearch', 503)
}

type Health = { readonly status?: string; readonly active_shards?: number }
