/**
 * `npm run validate`: foresees what becomes of records before they are published. In: a file of records or events. Out:
 * for each whether it would be applied, a duplicate, or parked and why. Read-only.
 * Without `live` the file is a whole log: nothing exists before its first line. With it, the file follows everything
 * that is projected now.
 */
import { parkCodes } from '../../schemas/errors.ts'
import type { Stream } from '../../schemas/events.ts'
import { linesIn } from '../export/lines.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import type { Live } from '../live.ts'
import { AFTER_ALL_OFFSETS, decideRecord, type Outcome } from '../parked/decide-record.ts'
import { Cache, explainInvalid, multiGet, type ReadDocuments, readDocuments, type Send } from '../projector.ts'
import { readLine } from './read-lines.ts'

export type ValidateOptions = {
  /** A path, or `-` for standard input. */
  readonly file: string
  readonly type: string | undefined
  /** Of the events topic, if the file does not follow a live projection. */
  readonly partitions: number
  readonly live: boolean
  readonly json: boolean
}

export type ValidateSteps = {
  readonly open: (file: string) => AsyncIterable<Buffer>
  readonly out: (text: string) => void
  readonly say: (line: string) => void
  /** Overwrites a progress line; undefined if nobody sees it. */
  readonly draw: ((line: string) => void) | undefined
  readonly now: () => number
  /** The live projection. Only called with `live`. */
  readonly readLive: () => Promise<{ readonly live: Live; readonly send: Send }>
  readonly signal: AbortSignal
}

const PROGRESS_LINES = 1_000

export const validateFile = async (options: ValidateOptions, steps: ValidateSteps): Promise<ExitCode> => {
  const decide = options.live ? await decideLive(steps) : decideFromNothing(options.partitions)
  const counts = new Map<string, number>()
  let lineNumber = 0
  for await (const line of linesIn(steps.open(options.file), 'a line')) {
    steps.signal.throwIfAborted()
    lineNumber++
    if (line.length === 0) continue
    const given = readLine(line, lineNumber, { type: options.type, partitions: decide.partitions, now: steps.now() })
    const outcome = await decide.next(given)
    const code = outcome.outcome === 'parked' ? outcome.code : undefined
    counts.set(code ?? outcome.outcome, (counts.get(code ?? outcome.outcome) ?? 0) + 1)
    const detail = code === 'data_invalid' ? explainInvalid(given.stream, given.record) : undefined
    if (options.json) steps.out(`${JSON.stringify({ line: lineNumber, ...outcome, ...(detail && { detail }) })}\n`)
    else if (code !== undefined) steps.out(`line ${lineNumber}: parked as ${code}${detail ? `: ${detail}` : ''}\n`)
    if (lineNumber % PROGRESS_LINES === 0) steps.draw?.(`${lineNumber} lines`)
  }
  return summarize(counts, steps)
}

const summarize = (counts: ReadonlyMap<string, number>, { say }: ValidateSteps): ExitCode => {
  const countOf = (outcome: string): number => counts.get(outcome) ?? 0
  const codes = parkCodes.filter(code => countOf(code) > 0)
  const parked = codes.reduce((sum, code) => sum + countOf(code), 0)
  const why = parked === 0 ? '' : ` (${codes.map(code => `${code} ${countOf(code)}`).join(', ')}; see docs/errors.md)`
  say(`${countOf('applied')} applied, ${countOf('duplicate')} duplicate, ${parked} parked${why}`)
  return parked === 0 ? exitCodes.done : exitCodes.notAll
}

type Decide = {
  readonly partitions: number
  readonly next: (given: ReturnType<typeof readLine>) => Promise<Outcome>
}
type Source = { readonly topic: string; readonly partitions: number; readonly read: ReadDocuments }

const decideOn = (sources: Readonly<Record<Stream, Source>>, firstOffset: number): Decide => {
  // All partitions share one cache: the documents of an organization are in one partition.
  const fromNothing = firstOffset === 0
  const caches = { events: new Cache(fromNothing), 'api-keys': new Cache(fromNothing) }
  let offset = firstOffset
  let latest = 0
  return {
    partitions: sources.events.partitions,
    next: async ({ stream, partition, record }) => {
      const { topic, partitions, read } = sources[stream]
      // The time of an event never goes back.
      latest = Math.max(latest, record.timestamp)
      const cache = caches[stream]
      const placed = { ...record, offset: offset++, timestamp: latest }
      const { outcome, documents } = await decideRecord(placed, { stream, topic, partition, partitions }, cache, read)
      cache.addDecided(documents)
      return outcome
    },
  }
}

const decideFromNothing = (partitions: number): Decide => {
  const read: ReadDocuments = async keys => new Map(keys.map(key => [key, null]))
  return decideOn(
    { events: { topic: 'events', partitions, read }, 'api-keys': { topic: 'api-keys', partitions: 1, read } },
    0,
  )
}

const decideLive = async ({ readLive }: ValidateSteps): Promise<Decide> => {
  const { live, send } = await readLive()
  const sourceOf = ({ identity, indexOf }: Live[Stream]): Source => ({
    topic: identity.topic,
    partitions: identity.partitions,
    read: readDocuments(documents => multiGet(send, documents), indexOf),
  })
  return decideOn({ events: sourceOf(live.events), 'api-keys': sourceOf(live['api-keys']) }, AFTER_ALL_OFFSETS)
}
