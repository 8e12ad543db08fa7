/**
 * The time that a long command still needs, from its rate over the last seconds. The first seconds, in which it only
 * connects, do not count. The time counts down like a clock; it goes up only after it was too short for some seconds.
 */

/** The rate is that of this time. */
const WINDOW_MS = 15_000
/** A shorter time says little about the rate. */
const WINDOW_LEAST_MS = 2_000
/** A time that goes up has been too short for this time. */
const TOO_SHORT_MS = 5_000

export type TimeLeft = {
  /** Records a second. */
  readonly rate: number
  /** Undefined: not known yet, or nothing moves. */
  readonly seconds: number | undefined
}

/** Returns a function that takes how much is done, of how much, at each moment. @param elapsed milliseconds */
export const createTimeLeft = (elapsed: () => number): ((done: number, total: number) => TimeLeft) => {
  let samples: { readonly at: number; readonly done: number }[] = []
  let began: number | undefined
  /** The moment of the end, as it was told last. */
  let endsAt: number | undefined
  let tooShortSince: number | undefined

  return (done, total) => {
    const at = elapsed()
    // Records come in batches: only the moments at which one was done say something about the rate. Until the first
    // one the command only connects.
    began ??= done
    if (done !== (samples.at(-1)?.done ?? began)) samples.push({ at, done })
    const last = samples.at(-1) ?? { at, done }
    // One sample from before the window stays: the window is never shorter than its time.
    const first = samples.findLastIndex(sample => sample.at <= last.at - WINDOW_MS)
    if (first > 0) samples = samples.slice(first)
    const oldest = samples[0] ?? last
    const isStanding = at - last.at >= WINDOW_MS
    const rate = isStanding ? 0 : ((last.done - oldest.done) * 1_000) / Math.max(1, last.at - oldest.at)
    if (done >= total) return { rate, seconds: 0 }
    if (rate <= 0 || last.at - oldest.at < WINDOW_LEAST_MS) {
      endsAt = undefined
      return { rate, seconds: undefined }
    }
    const found = last.at + ((total - done) * 1_000) / rate
    if (endsAt === undefined || found <= endsAt) {
      endsAt = found
      tooShortSince = undefined
    } else {
      tooShortSince ??= at
      if (at - tooShortSince >= TOO_SHORT_MS || endsAt <= at) {
        endsAt = found
        tooShortSince = undefined
      }
    }
    return { rate, seconds: Math.max(1, Math.ceil((endsAt - at) / 1_000)) }
  }
}
