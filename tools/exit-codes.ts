/** The exit codes of all commands. */
import { UNHANDLED_EXIT_CODE } from '../core/runtime/index.ts'

export const exitCodes = {
  done: 0,
  /** Not done: a service does not answer, a setting is wrong, or verify found a difference. */
  failed: 1,
  usage: 2,
  /**
   * Done, but some records are not, or would not be, applied, or were not looked at; rules check found a problem; or
   * texts of a person whose keys are destroyed stay readable.
   */
  notAll: 3,
  /** Compared: the two sides differ. */
  different: 3,
  /** An error that nothing caught: a defect. */
  unhandled: UNHANDLED_EXIT_CODE,
  /** Stopped with Ctrl-C before it was done, as a shell says it. */
  interrupted: 130,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]
