/** A control index that a test changes, with a reader of positions. */
import { Refusal } from '../../core/runtime/refusals.ts'
import { scheduleTimer } from '../../core/runtime/time-limits.ts'
import { createPositionReader } from '../../core/store/positions/position.ts'
import type { DocumentName } from '../../core/store/read/slice-documents.ts'
import { generationText, liveText, multiGetAnswer, positionText } from '../api/answers.ts'

/** A control index with one partition that the test changes, and the names that were requested. */
export const controlIndex = (stored: Record<string, string>) => {
  const asked: string[][] = []
  const documents: Record<string, string> = {
    live: liveText('g1'),
    'generation:g1': generationText('g1'),
    'position:g1:0': positionText(10, 1_000),
    ...stored,
  }
  const multiGet = async (names: readonly DocumentName[]) => {
    asked.push(names.map(({ _id }) => _id))
    return multiGetAnswer(names, documents)
  }
  return { documents, asked, multiGet, reader: createPositionReader('p', multiGet, scheduleTimer) }
}

/** Returns the reason of a refusal as unavailable; undefined if there was none. */
export const reasonOfUnavailable = async (act: Promise<unknown>): Promise<string | undefined> =>
  act.then(
    () => undefined,
    (error: unknown) => (error instanceof Refusal && error.code === 'unavailable' ? error.reason : String(error)),
  )
