/** The commands that work on archives, topics, seal keys, and on indices that were restored. */
import { type ReplaySteps, replay } from '../../../tools/analysis/replay.ts'
import { sourceInArchive } from '../../../tools/analysis/replay-source.ts'
import { adoptSource } from '../../../tools/archive/adopt-source.ts'
import { type ArchiveSteps, archive } from '../../../tools/archive/archive.ts'
import type { RedactOptions } from '../../../tools/archive/redaction/redact-log.ts'
import { restore } from '../../../tools/archive/restore.ts'
import { verifyTarget } from '../../../tools/archive/verify.ts'
import type { KafkaContext } from '../../../tools/context.ts'
import type { ExitCode } from '../../../tools/failures.ts'
import { adopt } from '../../../tools/generations/adopt.ts'
import { rewind } from '../../../tools/generations/rewind.ts'
import { upgradeKeys } from '../../../tools/generations/upgrade-keys.ts'
import { rotateKey } from '../../../tools/keys/rotate.ts'
import { eraseSubject } from '../../../tools/subjects/subjects.ts'

export type SourceTold =
  | { readonly name: 'adopt' | 'upgrade-keys' }
  | { readonly name: 'rewind'; readonly snapshotStart: number }
  | { readonly name: 'archive-verify' | 'adopt-archive'; readonly directory: string }
  /** `sign`: the file of a key. */
  | { readonly name: 'archive'; readonly directory: string; readonly sign?: string }
  | {
      readonly name: 'restore' | 'redact'
      readonly directory: string
      readonly keys: string
      readonly redact?: RedactOptions
    }
  | { readonly name: 'replay-archive'; readonly directory: string; readonly sandbox: string }
  | { readonly name: 'erase'; readonly org: string; readonly rep: string; readonly keys: string }
  | { readonly name: 'rotate'; readonly org: string; readonly id: string }

export const sourceNames = [
  'adopt',
  'rewind',
  'upgrade-keys',
  'adopt-archive',
  'archive',
  'archive-verify',
  'restore',
  'redact',
  'replay-archive',
  'erase',
  'rotate',
] as const satisfies SourceTold['name'][]
export const isOnSource = (told: { readonly name: string }): told is SourceTold =>
  sourceNames.some(name => name === told.name)

type Steps = KafkaContext & ArchiveSteps & ReplaySteps & { readonly groupId: string }

export const carryOutOnSource = async (told: SourceTold, steps: Steps): Promise<ExitCode> => {
  const json = true
  const unlimited = { maxRate: Number.POSITIVE_INFINITY, json }
  switch (told.name) {
    case 'adopt':
      return adopt({ json }, steps, steps.groupId)
    case 'rewind':
      return rewind({ snapshotStart: told.snapshotStart, json }, steps, steps.groupId)
    case 'upgrade-keys':
      return upgradeKeys({ from: undefined, json }, steps, steps.groupId)
    case 'archive':
      return archive({ to: [told.directory], sign: told.sign, follow: false, ...unlimited }, steps)
    case 'archive-verify':
      return verifyTarget({ address: told.directory, ...unlimited }, steps)
    case 'adopt-archive':
      return adoptSource({ archive: told.directory, json }, steps, steps.groupId)
    case 'restore':
    case 'redact': {
      const { directory: from, redact, keys } = told
      return restore({ from, redact, ...unlimited }, { ...steps, keysDirectory: () => keys })
    }
    case 'replay-archive': {
      const nothing = { until: undefined, org: undefined, rules: undefined }
      const from = { name: told.sandbox, fromArchive: told.directory, maxRate: Number.POSITIVE_INFINITY }
      const source = sourceInArchive(told.directory, { ...steps, keysDirectory: () => undefined })
      return replay({ ...nothing, ...from, json }, steps, source)
    }
    case 'erase': {
      const { org, rep, keys: directory } = told
      const keys = { directory, vault: undefined }
      return eraseSubject({ org, rep, confirm: rep, shared: false, json }, { ...steps, keys })
    }
    case 'rotate': {
      const { org, id } = told
      return rotateKey({ org, id, name: undefined, expiresAt: null, networks: undefined, waitSeconds: 60, json }, steps)
    }
  }
}
