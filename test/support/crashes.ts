/** Where a projector can be ended, frozen or held for ever in a test, and how one is started that will be. */
import { expect } from 'vitest'
import { type Projector, type ProjectorOptions, projectorSettings, startProcess, withAdminPort } from './processes.ts'
import { eventually, type Scope } from './scope.ts'

export const steps = ['decode', 'load', 'write', 'refresh', 'publish', 'commit'] as const

export type Point =
  | `${'before' | 'after'} ${(typeof steps)[number]}`
  /** Some of the documents of a batch are written, and others are not. */
  | 'amid write'
  /** A request to write is sent and not yet answered. */
  | 'amid bulk request'
  /** Of two batches under way in one partition the later is written, and the earlier not at all. */
  | 'a later write first'

export type Plan = {
  readonly point: Point
  /** The first, second, … time that it is reached, over all partitions. */
  readonly time: number
  readonly fate: 'killed' | 'frozen' | 'stuck'
  readonly seed: number
  /** In place of the minute after which a stuck projector ends. */
  readonly stuckMs?: number
}

export const startCrashing = async (scope: Scope, options: ProjectorOptions, plan: Plan): Promise<Projector> =>
  withAdminPort(
    startProcess(scope, 'test/support/crashing-projector.ts', projectorSettings(options), {
      parameters: [JSON.stringify(plan)],
    }),
  )

/** Waits until it has come to its point. */
export const reached = (projector: Projector): Promise<void> =>
  eventually(
    () =>
      expect(
        projector.lines().map(({ msg }) => msg),
        projector.log(),
      ).toContain('the point is reached'),
    { every: 5 },
  )
