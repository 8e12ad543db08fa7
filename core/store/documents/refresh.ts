/**
 * Makes written documents searchable. In: the indices written to. Out: nothing, once a refresh that began after the
 * call has succeeded on every shard. One refresh, for all calls that came before it began, is a round:
 *
 *   gathering ──(the round before has ended, and its delay is over)──► refreshing ──(all shards)──► ended
 *
 * - gathering: calls join it. It is delayed for the interval since the round before began, and longer while all its
 *   partitions are far behind. The first call of one that is not, and `endDelay`, end the longer delay.
 * - refreshing: it is tried until it succeeds. Later calls belong to the next round: their writes may not be
 *   acknowledged when this one begins. Writes wait for an attempt (`held`), but not between two attempts.
 * - ended: its calls are answered.
 *
 * At most one round gathers, and one refreshes. `enter` makes each transition.
 *
 * Promises: one refresh at a time over all partitions. Calls during a refresh share the next one. Refreshes begin at
 * least an interval apart. Writes wait for the refresh under way, so that they go together, and do not slow it down.
 */

import { StopError, Unanswered } from '../../runtime/index.ts'
import type { Coverage } from '../elasticsearch/answers.ts'
import type { Send } from '../elasticsearch/client.ts'
import { REFRESH_BEHIND_MS, WRITES_HELD_MS } from '../limits.ts'

export type Refresh = (indices: readonly string[], behind: boolean) => Promise<void>

export type Refreshing = {
  readonly refresh: Refresh
  /** Resolves when no refresh is under way for which readers wait, after WRITES_HELD_MS at the latest. */
  readonly untilRefreshed: () => Promise<void>
  /** Lets the next refresh begin, if it is delayed because all its partitions were far behind. */
  readonly endDelay: () => void
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
  /** Whether the partitions of all calls are far behind. */
  behind: boolean
  readonly endDelay: () => void
  /** Only `enter` sets it. */
  state: RoundState
}

export const createRefresh = (steps: RefreshSteps): Refreshing => {
  let lastEnded: Promise<void> = Promise.resolve()
  let lastBegan = Number.NEGATIVE_INFINITY
  let newest: (Round & { readonly done: Promise<void> }) | undefined
  let refreshing: Round | undefined
  let hasEndedAllDelays = false
  const allDelaysEnded = Promise.withResolvers<void>()

  const enter = (round: Round, state: RoundState): void => {
    round.state = state
    refreshing = state.name === 'refreshing' ? round : undefined
  }
  /** The round that calls join. */
  const gathering = () => (newest?.state.name === 'gathering' ? newest : undefined)

  const run = async (round: Round, delayEnded: Promise<void>, before: Promise<void>): Promise<void> => {
    await before.catch(() => undefined)
    if (round.behind) await Promise.race([delayEnded, waitUntil(lastBegan + REFRESH_BEHIND_MS)])
    await Promise.race([allDelaysEnded.promise, waitUntil(lastBegan + steps.interval)])
    enter(round, { name: 'refreshing', held: undefined })
    lastBegan = steps.elapsed()
    try {
      await steps.keepTrying(() => refreshNow(round))
    } finally {
      enter(round, { name: 'ended' })
    }
  }
  /**
   * Tries once. While it runs, writes wait. But they do not wait for a refresh of partitions that are far behind:
   * readers do not wait for those records one by one, so writing fast is worth more.
   */
  const refreshNow = async (round: Round): Promise<void> => {
    const attempt = refreshOnce([...round.indices].sort(), steps.send)
    if (!round.behind) enter(round, { name: 'refreshing', held: attempt })
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
  const waitUntil = async (time: number): Promise<void> => {
    const left = time - steps.elapsed()
    if (left > 0) await steps.sleep(left)
  }

  const beginRound = (behind: boolean) => {
    const { promise: delayEnded, resolve: endDelay } = Promise.withResolvers<void>()
    const round: Round = { indices: new Set<string>(), behind, endDelay, state: { name: 'gathering' } }
    const before = lastEnded
    lastEnded = run(round, delayEnded, before)
    newest = Object.assign(round, { done: lastEnded })
    return newest
  }

  const refresh: Refresh = (indices, isBehind) => {
    const behind = isBehind && !hasEndedAllDelays
    const round = gathering() ?? beginRound(behind)
    for (const index of indices) round.indices.add(index)
    round.behind &&= behind
    if (!behind) round.endDelay()
    return round.done
  }
  const endDelay = (): void => gathering()?.endDelay()
  const endAllDelays = (): void => {
    hasEndedAllDelays = true
    allDelaysEnded.resolve()
    endDelay()
  }
  return { refresh, untilRefreshed, endDelay, endAllDelays }
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
