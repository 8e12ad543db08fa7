/**
 * The time that may be published. In: this machine's clock, Elasticsearch's clock, and a clock that never goes back.
 * Out: the time that both this machine's clock and Elasticsearch's have reached. So neither of them alone can push a
 * published time ahead.
 * Promises: nobody waits for Elasticsearch here. Between two looks, its clock is continued by the one that never goes
 * back.
 * Can go wrong: Elasticsearch does not tell us its clock → this machine's clock is believed alone, and that is said.
 */

import { CLOCK_LOOK_MS, CLOCKS_APART_MS } from '../limits.ts'
import { type Elasticsearch, Unavailable } from './client.ts'

/** Milliseconds since 1970. */
export type Reading = {
  /** Both clocks have reached it. */
  readonly reached: number
  /** At least one of them has. */
  readonly latest: number
}

export type ClockState = {
  /** Milliseconds by which Elasticsearch's clock is ahead of ours; null while it is not known. */
  readonly elasticsearch_ahead_ms: number | null
  readonly agree: boolean
}

/** In words. */
export const clockSays = {
  clocks_disagree:
    'the clocks of this machine and of Elasticsearch disagree; published times go by the one that is behind',
  clocks_agree: 'the clocks of this machine and of Elasticsearch agree again',
  clock_unknown: 'Elasticsearch does not tell its clock; published times go by the clock of this machine alone',
} as const
export type ClockCode = keyof typeof clockSays

export type Clocks = {
  /** Undefined until Elasticsearch was asked for the first time. */
  readonly read: () => Reading | undefined
  readonly state: () => ClockState
}

export type ClockSteps = {
  readonly send: Elasticsearch['send']
  /** This machine's clock. */
  readonly now: () => number
  /** Milliseconds on a clock that never goes back. */
  readonly elapsed: () => number
  /** Told each change: the clocks disagree, agree again, or Elasticsearch's is not told to us. */
  readonly onChange: (code: ClockCode, state: ClockState) => void
}

export const sayChange =
  (log: Readonly<Record<'info' | 'warn', (details: object, message: string) => void>>): ClockSteps['onChange'] =>
  (code, state) =>
    log[code === 'clocks_agree' ? 'info' : 'warn']({ code, ...state }, clockSays[code])

export const createClocks = ({ send, now, elapsed, onChange }: ClockSteps): Clocks => {
  /** Elasticsearch's clock less the one that never goes back; null when it is not told. */
  let offset: number | null | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let isLooking = false
  let code: ClockCode = 'clocks_agree'

  const look = async (): Promise<void> => {
    isLooking = true
    lookedAt = elapsed()
    try {
      const { body } = await send({ method: 'GET', path: PATH, query: { filter_path: 'nodes.*.timestamp' } })
      const timestamp = timestampIn(body)
      // The answer took too long to tell anything.
      if (offset !== undefined && elapsed() - lookedAt > CLOCKS_APART_MS) return
      // It was read between the question and the answer. As of the answer, it is late rather than early.
      if (timestamp !== undefined) offset = timestamp - elapsed()
      // What was told once is believed on: of one node that does not answer, or of a refusal, ours must not be believed
      // alone.
      else offset ??= null
    } catch (error) {
      // What does not answer now is asked again; what refuses us once does so for good.
      if (!(error instanceof Unavailable)) offset ??= null
    } finally {
      isLooking = false
    }
  }

  const state = (): ClockState => {
    const ahead = offset === undefined || offset === null ? null : Math.round(offset + elapsed() - now())
    return { elasticsearch_ahead_ms: ahead, agree: ahead === null || Math.abs(ahead) <= CLOCKS_APART_MS }
  }

  const tell = (): void => {
    const present = state()
    const next = offset === null ? 'clock_unknown' : present.agree ? 'clocks_agree' : 'clocks_disagree'
    if (next !== code) onChange(next, present)
    code = next
  }

  return {
    state,
    read: () => {
      if (!isLooking && elapsed() - lookedAt >= CLOCK_LOOK_MS) void look()
      if (offset === undefined) return undefined
      tell()
      const ours = now()
      const theirs = offset === null ? ours : Math.floor(offset + elapsed())
      return { reached: Math.min(ours, theirs), latest: Math.max(ours, theirs) }
    },
  }
}

const PATH = '/_nodes/_local/stats/process'

const timestampIn = (body: unknown): number | undefined => {
  const { nodes } = (body ?? {}) as { nodes?: Record<string, { timestamp?: unknown }> }
  const [node] = Object.values(nodes ?? {})
  return typeof node?.timestamp === 'number' ? node.timestamp : undefined
}
