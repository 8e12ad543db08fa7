/**
 * `validate`: predicts the outcome of records before they are published. In: a file of records or events. Out:
 * for each whether it would be applied, a duplicate, or parked and why. Read-only.
 * Without `live` the file is a whole log: nothing exists before its first line. With it, the file follows everything
 * that is projected now; with a generation, everything in that generation or sandbox.
 */

import { Cache, type ReadDocuments, RULES_VERSION } from '../../core/ledger/index.ts'
import { firstKeyRulesUntil, multiGet, readDocuments } from '../../core/store/index.ts'
import { parkCodes } from '../../schemas/errors.ts'
import { KEYS_PARTITIONS } from '../../schemas/partition.ts'
import type { CommandContext, Out } from '../context.ts'
import { refuseUncompared } from '../documents/shards.ts'
import { linesIn } from '../export/lines.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { servedPositionsOf } from '../generations/generations.ts'
import { describeMade, findWhole } from '../generations/sandboxes.ts'
import { eventsIn, type LiveStream, readServedLive, unknownShardIn } from '../live.ts'
import { AFTER_ALL_OFFSETS, decideRecord, type Outcome } from '../parked/decide-record.ts'
import { type ReadRecord, readLine } from './read-lines.ts'

export type ValidateOptions = {
  /** A path, or `-` for standard input. */
  readonly file: string
  readonly type: string | undefined
  /** Of the events topic, if the file does not follow a live projection. */
  readonly partitions: number
  readonly live: boolean
  /** A generation, or `sandbox:NAME`, which the file follows. */
  readonly generation?: string | undefined
  readonly json: boolean
}

export type ValidateSteps = {
  readonly open: (file: string) => AsyncIterable<Buffer>
  readonly out: Out<string>
  readonly say: (line: string) => void
  /** Overwrites a progress line; undefined if nobody sees it. */
  readonly draw: ((line: string) => void) | undefined
  readonly now: () => number
  /** Only called with `live` or a generation. */
  readonly context: () => CommandContext
  readonly signal: AbortSignal
}

const PROGRESS_LINES = 1_000

export const validateFile = async (options: ValidateOptions, steps: ValidateSteps): Promise<ExitCode> => {
  const predictor = await predictorAfter(options, steps)
  const counts = new Map<string, number>()
  let lineNumber = 0
  for await (const line of linesIn(steps.open(options.file), 'a line')) {
    steps.signal.throwIfAborted()
    lineNumber++
    if (line.length === 0) continue
    const given = readLine(line, lineNumber, { type: options.type, partitions: predictor.partitions, now: steps.now() })
    const outcome = await predictor.next(given, lineNumber)
    const name = outcome.outcome === 'parked' ? outcome.code : outcome.outcome
    counts.set(name, (counts.get(name) ?? 0) + 1)
    if (options.json) await steps.out(`${JSON.stringify({ line: lineNumber, ...outcome })}\n`)
    else if (outcome.outcome === 'parked')
      await steps.out(`line ${lineNumber}: parked as ${outcome.code}: ${outcome.detail}\n`)
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

type Predictor = {
  readonly partitions: number
  readonly next: (given: ReadRecord, line: number) => Promise<Outcome>
}
type Sources = { readonly events: Source; readonly 'api-keys'?: Source }
type Source = {
  readonly topic: string
  readonly partitions: number
  readonly read: ReadDocuments
  readonly firstKeyRulesUntil?: number
}

const predictorOn = (sources: Sources, firstOffset: number): Predictor => {
  // All partitions share one cache: the documents of an organization are in one partition.
  const fromNothing = firstOffset === 0
  const caches = {
    events: new Cache({ fromFirstRecord: fromNothing }),
    'api-keys': new Cache({ fromFirstRecord: fromNothing }),
  }
  let offset = firstOffset
  let latest = 0
  return {
    partitions: sources.events.partitions,
    next: async ({ stream, partition, record }, line) => {
      const source = sources[stream]
      if (source === undefined)
        throw new CommandError(`line ${line}: a record of API keys: only --live knows the API keys`)
      const { read, ...where } = source
      // The time of an event never goes back.
      latest = Math.max(latest, record.timestamp)
      const cache = caches[stream]
      const placed = { ...record, offset: offset++, timestamp: latest }
      const { outcome, documents } = await decideRecord(placed, { stream, partition, ...where }, cache, read)
      cache.addDecided(documents)
      return outcome
    },
  }
}

const predictorFromNothing = (partitions: number): Predictor => {
  const read: ReadDocuments = async keys => new Map(keys.map(key => [key, null]))
  return predictorOn(
    {
      events: { topic: 'events', partitions, read },
      'api-keys': { topic: 'api-keys', partitions: KEYS_PARTITIONS, read },
    },
    0,
  )
}

const predictorAfter = async (
  { live, generation, partitions }: ValidateOptions,
  steps: ValidateSteps,
): Promise<Predictor> => {
  if (!live && generation === undefined) return predictorFromNothing(partitions)
  const context = steps.context()
  const sourceIn = ({ stream, identity, layout }: LiveStream): Source => {
    if (stream === 'events' && identity.rules_version !== RULES_VERSION) {
      const others = `${identity.generation} has version ${identity.rules_version} of the rules`
      steps.say(`warning: ${others}, and the outcomes are those of version ${RULES_VERSION}`)
    }
    return {
      topic: identity.topic,
      partitions: identity.partitions,
      read: readDocuments(documents => multiGet(context.send, documents), layout),
      ...(stream === 'api-keys' && { firstKeyRulesUntil: firstKeyRulesUntil(identity) }),
    }
  }
  if (generation === undefined) {
    const live = await readServedLive(context.send, context.prefix)
    refuseUncompared(unknownShardIn(live), undefined, context)
    const { events, 'api-keys': keys } = live
    return predictorOn({ events: sourceIn(events), 'api-keys': sourceIn(keys) }, AFTER_ALL_OFFSETS)
  }
  const { identity, context: where } = await findWhole(generation, context)
  await servedPositionsOf(identity, where)
  if (identity.sandbox?.org || identity.sandbox?.rules) {
    steps.say(
      `warning: the records follow ${generation} (${describeMade(identity)}); the outcomes are of the built-in rules`,
    )
  }
  return predictorOn({ events: sourceIn(eventsIn(identity, where.prefix)) }, AFTER_ALL_OFFSETS)
}
