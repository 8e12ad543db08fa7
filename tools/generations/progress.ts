/** Shows the progress of a projection: records done, their rate and the time left. */
import type { RebuildProgress } from '../../core/projection/index.ts'
import { createProgressLine, type ProgressOutput } from '../terminal.ts'

export type ProgressSteps = ProgressOutput & { readonly elapsed: () => number }

/** @param maxRate the limit of records a second, if there is one */
export const reportProgress = (
  { elapsed, ...output }: ProgressSteps,
  maxRate = Number.POSITIVE_INFINITY,
): ((progress: RebuildProgress) => void) => {
  const began = elapsed()
  const show = createProgressLine(output, elapsed)
  let first: number | undefined
  return ({ done, total }) => {
    first ??= done
    const rate = ((done - first) * 1_000) / Math.max(1, elapsed() - began)
    const left = rate > 0 ? `, ${Math.ceil((total - done) / rate)} s left` : ''
    const most = Number.isFinite(maxRate) ? ` of at most ${maxRate}` : ''
    show(`${done} of ${total} records, ${rate.toFixed(0)}${most} a second${left}`)
  }
}
