/**
 * Keeps the wanted streams running: API keys, the live generation, spare generations. In: periodically, the wanted
 * streams. Out: the running streams, and the spare generations that failed.
 * Promises: if API keys or the live generation fail, the process fails. A spare generation fails alone: the log says
 * so, and it is retried after a while. It stays reported until it has run again for SPARE_PROVEN_MS. If it becomes live
 * meanwhile it starts at once, and its next failure ends the process.
 */

import type { RunningStream, StreamOptions } from '../core/projection/index.ts'
import { type Health, nameOf, StopError, type Where } from '../core/runtime/index.ts'
import type { Stream } from '../schemas/events.ts'
import { API_KEYS_GENERATION } from '../schemas/stored/documents.ts'
import { SPARE_PROVEN_MS, SPARE_RETRY_MS } from './limits.ts'

export type StreamSource = { readonly stream: Stream; readonly topic: string; readonly partitions: number }

export type Wanted = {
  /** The generation that readers see. */
  readonly live: string
  readonly streams: readonly StreamOptions[]
  /** The topics of all streams, also of those that failed. For events that of the live generation comes first. */
  readonly sources: readonly StreamSource[]
  /** Spare generations that cannot be opened, and why. */
  readonly broken: ReadonlyMap<string, StopError>
}

export type FailedSpare = { readonly generation: string; readonly code: string }

export type KeepUpSteps = {
  /** Resolves once the stream has joined its group. `fail` may be called before that. */
  readonly start: (options: StreamOptions, fail: (error: unknown) => void) => Promise<RunningStream>
  /** Called with the failure of a stream that must run. */
  readonly fail: (error: unknown) => void
  /** Reads which generation is live. Tries once; undefined if unknown. */
  readonly readLiveGeneration: () => Promise<string | undefined>
  readonly health: Pick<Health, 'forget'>
  readonly log: Readonly<Record<'info' | 'error', (details: object, message: string) => void>>
  /** Milliseconds of a monotonic clock. */
  readonly elapsed: () => number
  readonly signal: AbortSignal
}

export type KeepUp = {
  /** Starts and stops streams until exactly the wanted ones run. */
  readonly run: (wanted: Wanted) => Promise<void>
  readonly streams: () => RunningStream[]
  /** The wanted streams, without those that failed and do not run again. */
  readonly options: () => readonly StreamOptions[]
  /** Empty before the first run. */
  readonly sources: () => readonly StreamSource[]
  /** Also those that run again, but not for long. */
  readonly failed: () => FailedSpare[]
  /** Those that failed and do not run again. */
  readonly stopped: () => FailedSpare[]
  /** The name of the live generation; empty before the first run. */
  readonly live: () => string
}

/** `at`: when it failed, or was started again since. */
type Failed = { readonly code: string; readonly at: number; readonly isBroken: boolean }

export const createKeepUp = ({
  start,
  fail,
  readLiveGeneration,
  health,
  log,
  elapsed,
  signal,
}: KeepUpSteps): KeepUp => {
  const running = new Map<string, RunningStream>()
  const leaving = new Map<string, Promise<void>>()
  const failed = new Map<string, Failed>()
  let wanted: Wanted = { live: '', streams: [], sources: [], broken: new Map() }

  const mustRun = (generation: string): boolean => generation === API_KEYS_GENERATION || generation === wanted.live

  const leave = (generation: string, how: 'stop' | 'abandon'): Promise<void> => {
    const stream = running.get(generation)
    running.delete(generation)
    const left = Promise.resolve(stream?.[how]())
      .catch(() => undefined)
      .then(() => {
        health.forget(generation)
        leaving.delete(generation)
      })
    leaving.set(generation, left)
    return left
  }

  const noteFailure = (generation: string, error: unknown, isBroken: boolean): void => {
    const code = error instanceof StopError ? error.code : 'defect'
    const before = failed.get(generation)
    failed.set(generation, { code, at: elapsed(), isBroken })
    if (before?.code === code && before.isBroken && isBroken) return
    const where: Where = error instanceof StopError ? error.where : { error: nameOf(error) }
    const message = error instanceof StopError ? error.message : 'a defect'
    log.error({ generation, code, ...where }, `the projection of a generation that is not live failed: ${message}`)
  }

  const startOne = async (options: StreamOptions): Promise<void> => {
    const { generation } = options.identity
    await leaving.get(generation)
    const before = failed.get(generation)
    if (before !== undefined && !mustRun(generation))
      failed.set(generation, { ...before, at: elapsed(), isBroken: false })
    else failed.delete(generation)
    let hasFailed = false
    /** Reads the live generation again: a process that was frozen may find that its own was replaced and dropped. */
    const failIfLive = async (error: unknown): Promise<void> => {
      const live = await readLiveGeneration().catch(() => undefined)
      if (live === undefined || live === generation) return fail(error)
      wanted = { ...wanted, live }
      failOne(error)
    }
    const failOne = (error: unknown): void => {
      // Ignore further failures of a stream that is being left.
      if (hasFailed) return
      if (mustRun(generation)) {
        if (generation === API_KEYS_GENERATION) fail(error)
        else void failIfLive(error)
        return
      }
      hasFailed = true
      noteFailure(generation, error, false)
      if (running.has(generation)) void leave(generation, 'abandon')
    }
    try {
      running.set(generation, await start(options, failOne))
      if (hasFailed) await leave(generation, 'abandon')
      else log.info({ generation }, 'started to project the generation')
    } catch (error) {
      if (mustRun(generation) || signal.aborted) throw error
      failOne(error)
      health.forget(generation)
    }
  }

  const mayStart = (generation: string): boolean => {
    const before = failed.get(generation)
    return before === undefined || before.isBroken || mustRun(generation) || elapsed() - before.at >= SPARE_RETRY_MS
  }

  const run = async (next: Wanted): Promise<void> => {
    wanted = next
    const names = new Set(wanted.streams.map(({ identity }) => identity.generation))
    for (const [name, { at }] of failed) {
      const isProven = running.has(name) && (mustRun(name) || elapsed() - at >= SPARE_PROVEN_MS)
      if (isProven || (!names.has(name) && !wanted.broken.has(name))) failed.delete(name)
    }
    for (const [name, error] of wanted.broken) noteFailure(name, error, true)
    for (const name of [...running.keys()]) {
      if (names.has(name)) continue
      if (!wanted.broken.has(name))
        log.info({ generation: name }, 'stops projecting the generation: it is no longer active')
      await leave(name, 'stop')
    }
    // Start what must run first: a spare one may take long.
    const inOrder = wanted.streams.toSorted(
      (a, b) => Number(mustRun(b.identity.generation)) - Number(mustRun(a.identity.generation)),
    )
    for (const options of inOrder) {
      const { generation } = options.identity
      if (running.has(generation) || !mayStart(generation)) continue
      if (signal.aborted) return
      await startOne(options)
    }
  }

  const isStopped = (generation: string): boolean => failed.has(generation) && !running.has(generation)
  const reportOf = ([generation, { code }]: [string, Failed]): FailedSpare => ({ generation, code })
  return {
    run,
    streams: () => [...running.values()],
    options: () => wanted.streams.filter(({ identity }) => !isStopped(identity.generation)),
    sources: () => wanted.sources,
    failed: () => [...failed].map(reportOf),
    stopped: () => [...failed].filter(([generation]) => isStopped(generation)).map(reportOf),
    live: () => wanted.live,
  }
}
