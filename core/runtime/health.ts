/**
 * Whether the projector can work now, and what prevents it. Reports each change once, in the log and on /readyz. Each
 * further reason of a part that does not work gets a line too, up to REASONS_LOGGED.
 */
export type Health = {
  /** Reports the work of a part before it is ready. This is no trouble. */
  readonly prepare: (part: HealthPart, what: string) => void
  /** Why a part is not ready; undefined when it works again. */
  readonly set: (part: HealthPart, reason: string | undefined) => void
  /**
   * Runs one of several tasks of a part. A task reports its reason not to be ready, or undefined when it works again.
   * The part works again when all its tasks do. A task longer than `slow` milliseconds is a reason too.
   */
  readonly during: <Result>(
    part: HealthPart,
    task: (report: ReportTrouble) => Promise<Result>,
    slow?: number,
  ) => Promise<Result>
  /** Drops the reasons of a generation that has stopped. */
  readonly forget: (generation: string) => void
  readonly reasons: () => Record<string, string>
}
/** A part of the process, or of one generation. */
export type HealthPart = string | { readonly generation: string; readonly name: string }
export type ReportTrouble = (reason: string | undefined) => void

/** The lines about one trouble of a part: reasons that follow each other without end must not fill the log. */
export const REASONS_LOGGED = 8

type Task = { readonly part: string; readonly slowAt: number }

export type HealthLog = Readonly<Record<'warn' | 'info', (details: HealthLogFields, message: string) => void>>
type HealthLogFields = { readonly part: string; readonly reason?: string; readonly what?: string }

export const createHealth = (log: HealthLog, elapsed: () => number): Health => {
  const preparing = new Map<string, string>()
  const reported = new Map<string, Map<unknown, string>>()
  /** Of each part in `reported`: the reasons that have a line. */
  const logged = new Map<string, Set<string>>()
  const running = new Set<Task>()
  const generationOf = new Map<string, string>()

  const labelOf = (part: HealthPart): string => {
    if (typeof part === 'string') return part
    const label = `${part.generation} ${part.name}`
    generationOf.set(label, part.generation)
    return label
  }

  const report = (part: string, who: unknown, reason: string | undefined): void => {
    const before = reported.get(part)
    if (reason !== undefined) {
      reported.set(part, new Map(before).set(who, reason))
      const known = before === undefined ? new Set<string>() : (logged.get(part) ?? new Set<string>())
      logged.set(part, known)
      if (known.has(reason) || known.size >= REASONS_LOGGED) return
      known.add(reason)
      log.warn({ part, reason }, 'does not work; trying again')
    } else if (removeReason(part, who)) log.info({ part }, 'works again')
  }
  /** Removes the reason of a task. Returns whether it was the last reason of the part. */
  const removeReason = (part: string, who: unknown): boolean => {
    const before = reported.get(part)
    before?.delete(who)
    return before?.size === 0 && reported.delete(part)
  }

  return {
    prepare: (of, what) => {
      const part = labelOf(of)
      if (!preparing.has(part)) log.info({ part, what }, 'not ready yet')
      preparing.set(part, what)
    },
    set: (of, reason) => {
      const part = labelOf(of)
      if (reason === undefined && preparing.delete(part)) log.info({ part }, 'ready')
      report(part, part, reason)
    },
    during: async (of, task, slow = Number.POSITIVE_INFINITY) => {
      const part = labelOf(of)
      const who: Task = { part, slowAt: elapsed() + slow }
      running.add(who)
      try {
        return await task(reason => report(part, who, reason))
      } finally {
        running.delete(who)
        // If the task was given up, its reason ends, but nothing works again: no log line.
        removeReason(part, who)
      }
    },
    forget: generation => {
      for (const [part, of] of generationOf) {
        if (of === generation) for (const parts of [preparing, reported, logged, generationOf]) parts.delete(part)
      }
    },
    reasons: () => {
      const late = [...running].filter(({ slowAt }) => slowAt <= elapsed())
      const reasons = new Map(preparing)
      for (const { part } of late) reasons.set(part, 'no answer for some seconds')
      for (const [part, all] of reported) reasons.set(part, [...all.values()].at(-1) ?? '')
      return Object.fromEntries(reasons)
    },
  }
}
