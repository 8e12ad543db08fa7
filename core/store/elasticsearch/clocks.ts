/**
 * The time that may be published. In: this machine's clock, Elasticsearch's clock and a monotonic clock. Out: the time
 * that the first two have both reached, so that neither alone can push a published time ahead.
 * Promises: no caller waits for Elasticsearch. Between two reads of its clock, the monotonic clock continues it.
 * Can go wrong: Elasticsearch does not tell its clock. Then this machine's clock counts alone, and the log says so.
 */

import { Unanswered } from '../../runtime/index.ts'
import { CLOCK_INTERVAL_MS, CLOCK_SILENCES, CLOCKS_APART_MS } from '../limits.ts'
import type { Send } from './client.ts'

/** Milliseconds since 1970. Both clocks have reached `reached`; at least one has reached `latest`. */
export type ClockReading = {
  readonly reached: number
  readonly latest: number
}

export type ClockState = {
  /** Milliseconds that Elasticsearch's clock is ahead of ours; null if unknown. */
  readonly elasticsearch_ahead_ms: number | null
  readonly agree: boolean
}

/** The log messages. */
export const clockMessages = {
  clocks_disagree:
    'the clocks of this machine and of Elasticsearch disagree; published times use the one that is behind',
  clocks_agree: 'the clocks of this machine and of Elasticsearch agree again',
  clock_unknown: 'Elasticsearch does not tell its clock; published times use the clock of this machine alone',
} as const
type ClockCode = keyof typeof clockMessages

export type Clocks = {
  /** Undefined until Elasticsearch first answers. */
  readonly read: () => ClockReading | undefined
  readonly state: () => ClockState
}

type ClockSteps = {
  readonly send: Send
  /** This machine's clock. */
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsed: () => number
  /** Called when the clocks start to disagree, agree again, or Elasticsearch does not tell its clock. */
  readonly onChange: (code: ClockCode, state: ClockState) => void
}

export const logClockChange =
  (log: Readonly<Record<'info' | 'warn', (details: object, message: string) => void>>): ClockSteps['onChange'] =>
  (code, state) => {
    if (code === 'clocks_agree') log.info({ code, ...state }, clockMessages[code])
    else log.warn({ code, ...state }, clockMessages[code])
  }

export const createClocks = ({ send, now, elapsed, onChange }: ClockSteps): Clocks => {
  /** Elasticsearch's clock minus the monotonic clock; null if Elasticsearch does not tell its clock. */
  let offset: number | null | undefined
  let silences = 0
  let polledAt = Number.NEGATIVE_INFINITY
  let isPolling = false
  let code: ClockCode = 'clocks_agree'

  const poll = async (): Promise<void> => {
    isPolling = true
    polledAt = elapsed()
    try {
      const timestamp = await readElasticsearchClock(send)
      // A slow answer tells an old time. The first answer counts in any case: without one no time is published.
      if (offset !== undefined && elapsed() - polledAt > CLOCKS_APART_MS) return
      // Elasticsearch read its clock before the answer arrived: the offset is too low rather than too high.
      if (timestamp !== undefined) offset = timestamp - elapsed()
      // Keep the last known offset: one failing node or refusal must not make our clock count alone.
      // Before the first answer, some silences: a proxy may only reload, or a node hang.
      else if (++silences >= CLOCK_SILENCES) offset ??= null
    } catch (error) {
      // Retry what is unavailable. A refusal is permanent.
      if (!(error instanceof Unanswered)) offset ??= null
    } finally {
      isPolling = false
    }
  }

  const state = (): ClockState => {
    const ahead = offset === undefined || offset === null ? null : Math.round(offset + elapsed() - now())
    return { elasticsearch_ahead_ms: ahead, agree: ahead === null || Math.abs(ahead) <= CLOCKS_APART_MS }
  }

  const reportChange = (): void => {
    const present = state()
    const next = offset === null ? 'clock_unknown' : present.agree ? 'clocks_agree' : 'clocks_disagree'
    if (next !== code) onChange(next, present)
    code = next
  }

  return {
    state,
    read: () => {
      if (!isPolling && elapsed() - polledAt >= CLOCK_INTERVAL_MS) void poll()
      if (offset === undefined) return undefined
      reportChange()
      const ours = now()
      const theirs = offset === null ? ours : Math.floor(offset + elapsed())
      return { reached: Math.min(ours, theirs), latest: Math.max(ours, theirs) }
    },
  }
}

/**
 * Reads Elasticsearch's clock now; undefined if it does not tell it. Elasticsearch leaves out a node that does not
 * answer, with status 200: then its clock is not known.
 * @param nodes with `_all`, the latest clock of all nodes: one hanging node delays the answer
 * @throws Unanswered
 */
export const readElasticsearchClock = async (
  send: Send,
  nodes: '_local' | '_all' = '_local',
): Promise<number | undefined> => {
  const path = `/_nodes/${nodes}/stats/process`
  const query = { filter_path: '_nodes.failed,nodes.*.timestamp' }
  const { body } = await send<Stats>({ method: 'GET', path, query, isOptional: true })
  return body?._nodes?.failed === 0 ? latestIn(body) : undefined
}

type Stats =
  | {
      readonly _nodes?: { readonly failed?: unknown }
      readonly nodes?: Readonly<Record<string, { readonly timestamp?: unknown }>>
    }
  | undefined

const latestIn = (body: Stats): number | undefined => {
  const times = Object.values(body?.nodes ?? {}).map(({ timestamp }) => timestamp)
  const known = times.filter(time => typeof time === 'number')
  return known.length === 0 ? undefined : Math.max(...known)
}
