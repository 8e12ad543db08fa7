/**
 * Checks whether the API can answer: Elasticsearch is up, keys are served, and at least one partition of the live
 * generation. Out: the reasons against it, as words; empty if the API is ready.
 * Promises: a partition is served here exactly if requests for its organizations are. One that waits, for days after
 *   `adopt`, takes no answer from the others: requests for its organizations get 503, and only these.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { READY_TIME_MAX } from '../../core/reading/index.ts'
import { Refusal, scheduleTimer, unavailable, withTimeLimit } from '../../core/runtime/index.ts'
import type { ServedPositions } from '../../core/store/index.ts'
import type { Log } from '../answer/answer-and-log.ts'
import { READY_INTERVAL, READY_SWAP_INTERVAL, READY_SWAP_TIME } from '../limits.ts'

/** A check. Rejects with `unavailable` if the checked thing is not there. */
type HealthCheck<Seen> = (signal: AbortSignal) => Promise<Seen>

/** `positions` is undefined if they could not be read. */
export type Readiness = { readonly notReady: readonly string[]; readonly positions: ServedPositions | undefined }

/** Creates the readiness check. It never rejects, and takes at most READY_TIME_MAX. */
export const createReadiness =
  (readServedPositions: HealthCheck<ServedPositions>, checkKeys: HealthCheck<unknown>) =>
  async (): Promise<Readiness> => {
    const readPositions = async (signal: AbortSignal): Promise<ServedPositions> => {
      const until = performance.now() + READY_SWAP_TIME
      for (let swaps = 0; ; ) {
        const positions = await readServedPositions(signal)
        // The first read after a swap has no positions.
        if (positions.partitions.length === 0) {
          if (swaps++ > 0) throw unavailable('live_generation_changes')
          continue
        }
        if (!isCatchingUp(positions) || performance.now() >= until) return positions
        await sleep(READY_SWAP_INTERVAL, undefined, { signal })
      }
    }
    const [positions, keys] = await withTimeLimit(READY_TIME_MAX, scheduleTimer, signal =>
      Promise.allSettled([readPositions(signal), checkKeys(signal)]),
    )
    const reasons = [positions, keys].filter(one => one.status === 'rejected').map(({ reason }) => wordOf(reason))
    const read = positions.status === 'fulfilled' ? positions.value : undefined
    const isNoneServed = read?.partitions.every(position => position === undefined)
    return {
      notReady: [...new Set([...reasons, ...(isNoneServed ? (read?.notServed.values() ?? []) : [])])],
      positions: read,
    }
  }

/** After a swap the new live generation can be behind for milliseconds: requests wait for it, and are answered. */
const isCatchingUp = ({ partitions, notServed }: ServedPositions): boolean =>
  notServed.size === partitions.length && [...notServed.values()].every(reason => reason === 'position_went_back')

const wordOf = (error: unknown): string => (error instanceof Refusal ? (error.reason ?? error.code) : 'failed')

/** Logs once after the start that the API is not ready and why, and once that it is. The API serves meanwhile. */
export const logWhenReady = async (
  readiness: () => Promise<Readiness>,
  say: Log['say'],
  ending: AbortSignal,
): Promise<void> => {
  for (let isFirst = true; !ending.aborted; isFirst = false) {
    const { notReady } = await readiness()
    if (notReady.length === 0) return say('info', 'ready')
    if (isFirst) say('warn', 'not ready yet; the API answers what it can', { reasons: notReady.join(' ') })
    await sleep(READY_INTERVAL, undefined, { signal: ending }).catch(() => undefined)
  }
}
