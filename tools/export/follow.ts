/**
 * `follow`: prints the changes of an organization as lines of JSON, as the API answers them, for ever. In: an
 * organization, and the last change that is known already. Out: one line for each change, in order, each once.
 * Can go wrong: Elasticsearch does not answer (retries); a role hides documents, or a change was left out (an error);
 *   nobody reads the output (ends). A stop is no failure; with `once` it is one, because changes are missing.
 */

import { changeNameOf, readListParameters, sequenceIn, textOfChange, textOfName } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import type { Out } from '../context.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { type ExportReaders, refuseUnknown, UNKNOWN_CURSOR } from './readers.ts'

export type FollowOptions = {
  readonly org: string
  /** The id of a change. The first line is the change after it. */
  readonly startingAfter: string | undefined
  /** Ends after the last change there is now. */
  readonly once: boolean
}

type FollowSteps = ExportReaders & {
  readonly out: Out<Buffer>
  readonly say: (line: string) => void
  readonly sleep: (milliseconds: number) => Promise<void>
  readonly signal: AbortSignal
}

const FOLLOW_INTERVAL_MS = 250
const LINE_END = Buffer.from('\n')

/** Other rules may park the change of the last line. Nobody gave its id as an option. */
const LAST_CHANGE_GONE =
  'the change of the last line is gone: other rules are live now, and they parked it; follow again from the beginning'

/** @throws CommandError for an unknown organization or change, or if other rules parked the change of the last line */
export const follow = async ({ org, startingAfter, once }: FollowOptions, steps: FollowSteps): Promise<ExitCode> => {
  const { readList, out, say, sleep, signal } = steps
  let after = startingAfter
  let before: number | undefined
  await refuseUnknown(org, steps).catch(stopped)
  while (!signal.aborted) {
    const page = await readList(org, 'changes', parametersOf(after)).catch(error => {
      if (after === startingAfter || !isUnknownCursor(error)) return stopped(error)
      throw new CommandError(LAST_CHANGE_GONE)
    })
    if (page === undefined) break
    for (const [at, hit] of page.hits.entries()) {
      const sequence = sequenceIn(page, at)
      if (before !== undefined) refuseGap(sequence, before)
      await out(Buffer.concat([textOfChange(hit, sequence), LINE_END]))
      before = sequence
    }
    const last = page.hits.at(-1)
    if (last) after = textOfName(changeNameOf(last))
    if (page.hasMore) continue
    if (once) return exitCodes.done
    await sleep(FOLLOW_INTERVAL_MS)
  }
  if (!once) return exitCodes.done
  say(after === undefined ? 'stopped before the first change' : `stopped; --starting-after ${after} continues`)
  return exitCodes.failed

  function stopped(error: unknown): undefined {
    if (!signal.aborted) throw error
  }
}

/** As both clients: a change was left out if a role hid documents for a moment. */
const refuseGap = (sequence: number, before: number): void => {
  if (sequence === before + 1) return
  const what = `expected the change with sequence ${before + 1}, got ${sequence}`
  throw new CommandError(`${what}: one was left out, or other rules are live now; follow again from the beginning`)
}

const isUnknownCursor = (error: unknown): boolean => error instanceof CommandError && error.message === UNKNOWN_CURSOR

const parametersOf = (after: string | undefined) => {
  try {
    return readListParameters('changes', `limit=200${after === undefined ? '' : `&starting_after=${after}`}`)
  } catch (error) {
    throw error instanceof Refusal ? new CommandError(UNKNOWN_CURSOR) : error
  }
}
