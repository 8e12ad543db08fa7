/** Shows progress: a bar on a terminal, elsewhere a few lines. */
import { progressBar } from '../../services/progress-bar.ts'
import type { Say } from '../../services/service.ts'

/** @returns a function to call with the amount done of `total` */
export const showProgress = (say: Say, what: string, total: number): ((done: number) => void) => {
  const progress = progressBar(process.stdout, say)
  return done => progress({ what, done: Math.min(done, total), total })
}
