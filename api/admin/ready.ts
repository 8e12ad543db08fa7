/**
 * Whether the API can answer: Elasticsearch is there, a generation is live with all its positions, and keys are served.
 * Out: the reasons why not, as words; empty when it can.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../failures.ts'
import type { Log } from '../http/log.ts'
import { READY_INTERVAL, READY_TIME_MAX } from '../limits.ts'
import type { LivePositions } from '../read/position.ts'
import { timer, withTimeLimit } from '../time-limits.ts'

/** A look that fails with `unavailable` when what it looks at is not there. */
export type Look<Seen> = (signal: AbortSignal) => Promise<Seen>

/** `positions`: what was seen of them, undefined when they could not be read. */
export type Readiness = { readonly notReady: readonly string[]; readonly positions: LivePositions | undefined }

export const createReadiness =
  (lookAtPositions: Look<LivePositions>, lookAtKeys: Look<unknown>) => async (): Promise<Readiness> => {
    const [positions, keys] = await withTimeLimit(READY_TIME_MAX, timer, signal =>
      Promise.allSettled([lookAtPositions(signal), lookAtKeys(signal)]),
    )
    const reasons = [positions, keys].filter(one => one.status === 'rejected').map(({ reason }) => wordOf(reason))
    return {
      notReady: [...new Set(reasons)],
      positions: positions.status === 'fulfilled' ? positions.value : undefined,
    }
  }

const wordOf = (reason: unknown): string => (reason instanceof Refusal ? (reason.because ?? reason.code) : 'failed')

/** After a start: says once that the API is not ready yet and why, and once that it is. It serves all the while. */
export const sayWhenReady = async (
  look: () => Promise<Readiness>,
  say: Log['say'],
  ending: AbortSignal,
): Promise<void> => {
  for (let waited = 0; !ending.aborted; waited++) {
    const { notReady } = await look()
    if (notReady.length === 0) return say('info', 'ready')
    if (waited === 0) say('warn', 'not ready yet; serving what can be known', { reasons: notReady.join(' ') })
    await sleep(READY_INTERVAL, undefined, { signal: ending }).catch(() => undefined)
  }
}
