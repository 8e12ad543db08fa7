/** Says how far a projection is: over and over in one place of a terminal, or a line now and then. */
import type { RebuildProgress } from '../../projector/rebuild.ts'
import { REBUILD_TOLD_MS } from '../limits.ts'

export type ProgressSteps = {
  readonly elapsed: () => number
  readonly say: (line: string) => void
  /** Shows it, over and over in one place; undefined where nobody looks at a terminal. */
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
