/**
 * The changes since the page was opened, as they come. In: clients whose requests end with a signal. Out: the newest
 *   changes, and when a round begins.
 * Promises: a round begins each minute, also for a key that may not follow. It reads again what the former one
 *   remembered, so that nothing of a generation that is no longer live stays: another one can have other changes, or
 *   other texts in the same changes, and no answer says that it is live. If the API no longer knows the change before
 *   the first one, the changes begin anew with the next one.
 */
import type { Change, Client } from '../../../client/src/index.ts'
import { isRefused } from '../refusals.ts'
import { lastChangeOf } from './last-change.ts'
import type { Session } from './session.ts'

/** Changes that the page remembers. */
export const CHANGES_KEPT = 100
/** Milliseconds: the page may show the former generation this long, and each round costs one request. */
export const ROUND_MS = 60_000
export const PAUSE_MS = 5_000

/** How the page follows changes. `refused` says why it does not. `too far`: the key cannot find the last change. */
export type LiveState =
  | { readonly state: 'off' | 'on' | 'again' | 'too far' }
  | { readonly state: 'refused'; readonly why: unknown }

type Kept = {
  /** The change before them; null if they are the first ones. */
  readonly begin: string | null
  /** Newest first. */
  readonly changes: readonly Change[]
}

const plus = ({ begin, changes }: Kept, change: Change): Kept => {
  const all = [change, ...changes]
  const oldest = all[CHANGES_KEPT]
  return oldest === undefined ? { begin, changes: all } : { begin: oldest.id, changes: all.slice(0, CHANGES_KEPT) }
}

export type FeedEvents = {
  readonly onLive: (live: LiveState) => void
  /** `upTo`: everything published up to this instant, since the page follows, was told. */
  readonly onLatest: (latest: readonly Change[], upTo: string | undefined) => void
  /** Everything that was read before can be of another generation. */
  readonly onRound: () => void
}

export type Feed = {
  /** Follows until the signal. If the key may not, only rounds begin. Another call continues: no change is left out. */
  readonly follow: (signal: AbortSignal) => Promise<void>
}

const pause = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds))

export const createFeed = (until: Session['clientUntil'], { onLive, onLatest, onRound }: FeedEvents): Feed => {
  /** Undefined until the page knows where to begin. */
  let kept: Kept | undefined
  /** Of the last answer. */
  let upTo: string | undefined
  const clientUntil = (signal: AbortSignal): Client =>
    until(signal).noting(time => {
      upTo = time
    })
  const keep = (next: Kept | undefined): void => {
    kept = next
    onLatest(next?.changes ?? [], upTo)
  }

  /** Returns what is kept, as the API has it now. */
  const readAnew = async (signal: AbortSignal): Promise<Kept | 'too far'> => {
    const client = clientUntil(signal)
    if (kept === undefined) {
      const begin = await lastChangeOf(client)
      return begin === 'too far' ? begin : { begin, changes: [] }
    }
    const { begin } = kept
    let anew: Kept = { begin, changes: [] }
    for await (const change of client.changes({ startingAfter: begin })) anew = plus(anew, change)
    return anew
  }

  const followRound = async (signal: AbortSignal): Promise<'too far' | 'over'> => {
    let now = await readAnew(signal)
    if (now === 'too far') return now
    if (signal.aborted) return 'over'
    keep(now)
    onRound()
    onLive({ state: 'on' })
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), ROUND_MS)
    const client = clientUntil(AbortSignal.any([signal, ending.signal]))
    try {
      for await (const change of client.follow({ startingAfter: now.changes[0]?.id ?? now.begin })) {
        // The changes of a page come one by one, also when the page shows a moment since.
        if (signal.aborted) break
        now = plus(now, change)
        keep(now)
      }
    } catch (error) {
      if (!ending.signal.aborted) throw error
    } finally {
      clearTimeout(timer)
    }
    return 'over'
  }

  /** Without changes, nothing else says when to read again. */
  const beginRounds = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      await pause(ROUND_MS)
      if (signal.aborted) return
      onRound()
    }
  }

  return {
    follow: async signal => {
      while (!signal.aborted) {
        const why = await followRound(signal).catch((error: unknown) => error)
        if (signal.aborted) return
        if (why === 'over') continue
        const isFinal = isRefused(why, 'unauthorized', 'forbidden')
        onLive(isFinal ? { state: 'refused', why } : { state: why === 'too far' ? why : 'again' })
        if (isFinal || why === 'too far') return beginRounds(signal)
        // The API does not know a change that it knew: another generation is live.
        if (isRefused(why, 'invalid_cursor')) keep(undefined)
        await pause(PAUSE_MS)
      }
    },
  }
}
