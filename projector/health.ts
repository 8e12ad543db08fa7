/** Whether the projector can do its work now, and what is in the way. Says each change once, in the log and on /readyz. */
import type { Logger } from 'pino'

export type Health = {
  /** A reason not to be ready, by the part it concerns; undefined when the part works again. */
  readonly set: (part: string, reason: string | undefined) => void
  readonly reasons: () => Record<string, string>
}

export const createHealth = (log: Pick<Logger, 'warn' | 'info'>): Health => {
  const reasons = new Map<string, string>()
  return {
    set: (part, reason) => {
      const before = reasons.get(part)
      if (before === reason) return
      if (reason === undefined) {
        reasons.delete(part)
        log.info({ part }, 'works again')
      } else {
        reasons.set(part, reason)
        if (before === undefined) log.warn({ part, reason }, 'does not work; trying again')
      }
    },
    reasons: () => Object.fromEntries(reasons),
  }
}
