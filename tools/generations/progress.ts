/** Shows the progress of a projection: records done, their rate over the last seconds and the time left. */
import type { RebuildProgress } from '../../core/projection/index.ts'
import { createProgressLine, type ProgressOutput } from '../terminal.ts'
import { createTimeLeft } from '../time-left.ts'

export type ProgressSteps = ProgressOutput & { readonly elapsed: () => number }

/** @param maxRate the limit of records a second, if there is one */
export const reportProgress = (
  { elapsed, ...output }: ProgressSteps,
  maxRate = Number.POSITIVE_INFINITY,
): ((progress: RebuildProgress) => void) => {
  const show = createProgressLine(output, elapsed)
  const timeLeft = createTimeLeft(elapsed)
  return ({ done, total }) => {
    const { rate, seconds } = timeLeft(done, total)
    const left = seconds === undefined ? '' : `, ${seconds} s left`
    const most = Number.isFinite(maxRate) ? ` of at most ${maxRate}` : ''
    show(`${done} of ${total} records, ${rate.toFixed(0)}${most} a second${left}`)
  }
}
