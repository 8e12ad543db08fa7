/** In: nothing. Out: the form in which each kind of evidence answers `commission verify`, and what a check is given. */
import type { OpenTarget } from '../archive/open-target.ts'
import type { ProgressSteps } from '../generations/progress.ts'

export type VerifyEvidenceSteps = ProgressSteps & {
  readonly out: (text: string) => void
  readonly openTarget: OpenTarget
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly signal: AbortSignal
}

/** A manifest: the keys that signed it, of those that were given, and what it is about. */
export type Signed = {
  readonly manifest: string
  readonly signers: readonly string[]
  readonly covers: Readonly<Record<string, unknown>>
}
/**
 * `differences`: a sentence for each file that is not as it was written; it begins with the file. `unfinished`: the
 * same for each file that a run has not finished.
 */
export type Verified = {
  readonly kind: 'export' | 'copy' | 'close' | 'archive'
  readonly signed: readonly Signed[]
  /** For people: by whom it is signed, what that covers, and how much was read. */
  readonly said: readonly string[]
  readonly unfinished: readonly string[]
  readonly differences: readonly string[]
}
