/** Points at which a test can kill, freeze or block a projector, and the start of such a projector. */
import { expect } from 'vitest'
import { type Projector, type ProjectorOptions, projectorSettings, startProcess, withAdminPort } from './processes.ts'
import { eventually, type Scope } from './scope.ts'

export const steps = ['decode', 'decide', 'write', 'refresh', 'publish', 'commit'] as const

export type Point =
  | `${'before' | 'after'} ${(typeof steps)[number]}`
  /** Only some documents of a batch are written. */
  | 'amid write'
  /** A bulk request is sent and not yet answered. */
  | 'amid bulk request'
  /** Of two batches under way in one partition only the later one is written. */
  | 'a later write first'

export type Plan = {
  readonly point: Point
  /** Acts when the point is reached for the nth time, over all partitions. */
  readonly time: number
  readonly fate: 'killed' | 'frozen' | 'stuck'
  readonly seed: number
  /** Replaces the minute after which a stuck projector ends. */
  readonly stuckMs?: number
}

export const startCrashing = async (scope: Scope, options: ProjectorOptions, plan: Plan): Promise<Projector> =>
  withAdminPort(
    startProcess(scope, 'test/support/crashing-projector.ts', projectorSettings(options), {
      parameters: [JSON.stringify(plan)],
    }),
  )

export const reached = (projector: Projector): Promise<void> =>
  eventually(
    () =>
      expect(
        projector.lines().map(({ msg }) => msg),
        projector.log(),
      ).toContain('the point is reached'),
    { every: 5 },
  )
