/** `commission archive verify`: reads a whole archive again, and names the first fault. Writes nothing. */
import { type ExitCode, exitCodes } from '../failures.ts'
import { reportProgress } from '../generations/progress.ts'
import { archivedStreams } from './manifest.ts'
import type { OpenTarget } from './open-target.ts'
import { offsetsIn, sayUnnamed, verifyArchive } from './read-archive.ts'
import { readSignedManifests } from './signed-manifests.ts'
import { createThrottle, type MaxRate, type ThrottleSteps } from './throttle.ts'

export type VerifyArchiveOptions = {
  readonly address: string
  /** Public keys, as texts: one of them must have signed. */
  readonly keys?: readonly string[] | undefined
  readonly maxRate: MaxRate
  readonly json: boolean
}
export type VerifyArchiveSteps = ThrottleSteps & {
  readonly out: (text: string) => void
  readonly say: (line: string) => void
  readonly draw: ((line: string) => void) | undefined
  readonly openTarget: OpenTarget
}

/** @throws ArchiveDamaged; EvidenceDiffers */
export const verifyTarget = async (
  { address, keys, maxRate, json }: VerifyArchiveOptions,
  steps: VerifyArchiveSteps,
): Promise<ExitCode> => {
  const target = await steps.openTarget(address)
  const manifests = await verifyArchive(
    target,
    {
      report: reportProgress(steps, maxRate),
      throttle: createThrottle(maxRate, steps),
      onUnnamed: segment => steps.say(sayUnnamed(target.name, segment)),
    },
    steps.signal,
    await readSignedManifests(target, keys, steps.say),
  )
  const topics = archivedStreams.map(stream => manifests[stream])
  const records = topics.flatMap(({ partitions }) => partitions).reduce((sum, part) => sum + part.records, 0)
  const offsets = offsetsIn(manifests)
  if (json) steps.out(`${JSON.stringify({ directory: address, records, offsets, topics })}\n`)
  steps.say(`${address} is whole: ${records} records, ${offsets} offsets`)
  return exitCodes.done
}
