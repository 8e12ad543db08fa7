/** Starts a projector or a rebuild with another version of the rules. */
import {
  type Exit,
  type Projector,
  type ProjectorOptions,
  projectorSettings,
  type RunningProcess,
  startProcess,
  withAdminPort,
} from './processes.ts'
import type { Scope } from './scope.ts'

export type OtherRules = {
  readonly runs: 'projector' | 'rebuild'
  readonly version: number
  /** Parks records whose value matches this expression as `record_undecodable`. */
  readonly parks?: string
  /** 1: a first generation is made as programs before layout 2 made it. */
  readonly layout?: 1
  readonly maxRate?: number
}
export type Rules = Omit<OtherRules, 'runs' | 'maxRate'>

const start = (scope: Scope, options: ProjectorOptions, rules: OtherRules): RunningProcess =>
  startProcess(scope, 'test/support/other-rules.ts', projectorSettings(options), {
    parameters: [JSON.stringify(rules)],
  })

/** Starts a projector with these rules and waits for its admin port. */
export const startProjectorOf = (scope: Scope, options: ProjectorOptions, rules: Rules): Promise<Projector> =>
  withAdminPort(start(scope, options, { runs: 'projector', ...rules }))

export const startRebuildOf = (
  scope: Scope,
  options: ProjectorOptions,
  rules: Omit<OtherRules, 'runs'>,
): RunningProcess => start(scope, options, { runs: 'rebuild', ...rules })

/** Runs a rebuild to its end. */
export const rebuildUnder = async (
  scope: Scope,
  options: ProjectorOptions,
  rules: Rules,
): Promise<Exit & { log: string }> => {
  const running = startRebuildOf(scope, options, rules)
  return { ...(await running.exited), log: running.log() }
}
