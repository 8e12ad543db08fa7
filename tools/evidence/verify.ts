/**
 * `commission verify`: checks an export, a close or an archive against its manifest, and the manifest against its
 * signature. In: a directory, or an archive in S3; public keys. Out: an exit code; each file that differs is named.
 * Promises: nothing is written, and neither Kafka nor Elasticsearch is asked.
 */
import { archivedStreams } from '../archive/manifest.ts'
import { ArchiveDamaged } from '../archive/segment.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { EvidenceDiffers, readVerifierKeys, type Verified, type VerifyEvidenceSteps } from './signatures.ts'
import { verifySignedArchive } from './verify-archive.ts'
import { verifyFolder } from './verify-folder.ts'

export type VerifyEvidenceOptions = {
  readonly address: string
  /** Public keys, as texts. */
  readonly keys: readonly string[]
  readonly json: boolean
}
export const verifyEvidence = async (
  { address, keys: texts, json }: VerifyEvidenceOptions,
  steps: VerifyEvidenceSteps,
): Promise<ExitCode> => {
  const keys = readVerifierKeys(texts)
  const target = await steps.openTarget(address)
  const isThere = async (path: string): Promise<boolean> => (await target.read(path)) !== undefined
  const { kind, signers, said, differences } = await (async (): Promise<Verified> => {
    const isInStore = /^s3:/i.test(address)
    if (!isInStore && ((await isThere(MANIFEST_FILE)) || (await isThere(NOTE_FILE)))) {
      return verifyFolder(address, keys, steps)
    }
    for (const stream of archivedStreams) {
      const [manifest, note] = [`${stream}/${MANIFEST_FILE}`, `${stream}/${NOTE_FILE}`]
      if ((await isThere(manifest)) || (await isThere(note))) return verifySignedArchive(target, keys, steps)
    }
    const expected = `${MANIFEST_FILE} of an export or a close, or events/${MANIFEST_FILE} of an archive`
    throw new CommandError(`${address} has no manifest: expected ${expected}`)
  })().catch((error: unknown): Verified => {
    if (!(error instanceof EvidenceDiffers || error instanceof ArchiveDamaged)) throw error
    const kind = error instanceof ArchiveDamaged ? 'archive' : 'export'
    return { kind, signers: [], said: [], differences: [error.message] }
  })
  const isWhole = differences.length === 0
  if (json) steps.out(`${JSON.stringify({ directory: address, kind, whole: isWhole, signers, differences })}\n`)
  for (const line of [...said, ...differences]) steps.say(line)
  steps.say(isWhole ? `${address} is whole` : `${address} is not as it was written`)
  return isWhole ? exitCodes.done : exitCodes.different
}
