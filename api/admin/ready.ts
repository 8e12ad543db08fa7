/**
 * Checks whether the API can answer: Elasticsearch is up, a generation is live with all its positions, and keys are
 * served. Out: the reasons against it, as words; empty if the API is ready.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { READY_TIME_MAX } from '../../core/reading/index.ts'
import { Refusal, scheduleTimer, withTimeLimit } from '../../core/runtime/index.ts'
import type { LivePositions } from '../../core/store/index.ts'
import type { Log } from '../http/log.ts'
import { READY_INTERVAL } from '../limits.ts'

/** A check. Rejects with `unavailable` if the checked thing is not there. */
type HealthCheck<Seen> = (signal: AbortSignal) => Promise<Seen>

/** `positions` is undefined if they could not be read. */
export type Readiness = { readonly notReady: readonly string[]; readonly positions: LivePositions | undefined }

/** Creates the readiness check. It never rejects, and takes at most READY_TIME_MAX. */
export const createReadiness =
  (readLivePositions: HealthCheck<LivePositions>, checkKeys: HealthCheck<unknown>) => async (): Promise<Readiness> => {
    const [positions, keys] = await withTimeLimit(READY_TIME_MAX, scheduleTimer, signal =>
      Promise.allSettled([readLivePositions(signal), checkKeys(signal)]),
    )
    const reasons = [positions, keys].filter(one => one.status === 'rejected').map(({ reason }) => wordOf(reason))
    return {
      notReady: [...new Set(reasons)],
      positions: positions.status === 'fulfilled' ? positions.value : undefined,
    }
  }

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
