/** Shows the progress of a projection: redraws one line of a terminal, or prints a line from time to time. */
import type { RebuildProgress } from '../../projector/rebuild.ts'
import { REBUILD_TOLD_MS } from '../limits.ts'

export type ProgressSteps = {
  readonly elapsed: () => number
  readonly say: (line: string) => void
  /** Redraws the line; undefined without a terminal. */
  readonly draw: ((line: string) => void) | undefined
}

export const tellProgress = ({ elapsed, say, draw }: ProgressSteps): ((progress: RebuildProgress) => void) => {
  const began = elapsed()
  let first: number | undefined
  let told = began
  return ({ done, total }) => {
    first ??= done
    const rate = ((done - first) * 1_000) / Math.max(1, elapsed() - began)
    const left = rate > 0 ? `, ${Math.ceil((total - done) / rate)} s left` : ''
    const line = `${done} of ${total} records, ${rate.toFixed(0)} a second${left}`
    if (draw) draw(line)
    else if (elapsed() - told >= REBUILD_TOLD_MS) {
      told = elapsed()
      say(line)
    }
  }
}
