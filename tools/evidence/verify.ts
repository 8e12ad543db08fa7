/**
 * `commission verify`: checks an export, a copy that grows, a close or an archive against its manifests, and these
 * against their signatures. In: a directory, or an archive in S3; public keys. Out: an exit code; each file that
 * differs is named. Promises: nothing is written, and neither Kafka nor Elasticsearch is asked.
 */
import { archivedStreams } from '../archive/manifest.ts'
import { ArchiveDamaged } from '../archive/segment.ts'
import { CommandError, type ExitCode, exitCodes } from '../failures.ts'
import { EvidenceDiffers, readVerifierKeys } from '../signing/check-signature.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { entriesIn, entriesOfStore } from './stored-files.ts'
import type { Verified, VerifyEvidenceSteps } from './verified.ts'
import { verifySignedArchive } from './verify-archive.ts'
import { isCopy, verifyCopy } from './verify-copy.ts'
import { CONTROL_FILE, verifyFolder } from './verify-folder.ts'

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
  const isInStore = /^s3:/i.test(address)
  const entries = await (isInStore ? entriesOfStore(target) : entriesIn(address, true))
  const isThere = (path: string): boolean => entries.some(entry => entry.path === path)
  const isFolder = !isInStore && (isThere(MANIFEST_FILE) || isThere(NOTE_FILE))
  const isArchive = archivedStreams.some(
    stream => isThere(`${stream}/${MANIFEST_FILE}`) || isThere(`${stream}/${NOTE_FILE}`),
  )
  const isGrowing = !isInStore && !isFolder && !isArchive && isCopy(entries)
  if (!isFolder && !isArchive && !isGrowing) {
    const expected = `${MANIFEST_FILE} of an export or a close, parts of a copy, or events/${MANIFEST_FILE} of an archive`
    throw new CommandError(`${address} has no manifest: expected ${expected}`)
  }
  const top = entries.filter(({ path }) => !path.includes('/'))
  const verifying = isFolder
    ? verifyFolder(address, top, keys, steps)
    : isGrowing
      ? verifyCopy(address, entries, keys, steps)
      : verifySignedArchive(target, entries, keys, steps)
  const { kind, signed, said, unfinished, differences } = await verifying.catch((error: unknown): Verified => {
    if (!(error instanceof EvidenceDiffers || error instanceof ArchiveDamaged)) throw readable(error)
    const kind = isFolder ? (isThere(CONTROL_FILE) ? 'close' : 'export') : 'archive'
    return { kind, signed: [], said: [], unfinished: [], differences: [error.message] }
  })
  const isWhole = differences.length === 0
  const told = { directory: address, kind, whole: isWhole, signed, unfinished, differences }
  if (json) steps.out(`${JSON.stringify(told)}\n`)
  for (const line of [...said, ...unfinished, ...differences]) steps.say(line)
  steps.say(isWhole ? `${address} is whole` : `${address} is not as it was written`)
  return isWhole ? exitCodes.done : exitCodes.different
}

/** An error of the file system, in words. */
const readable = (error: unknown): unknown => {
  const { code, path }: { code?: unknown; path?: unknown } = Object(error)
  return typeof code === 'string' && typeof path === 'string'
    ? new CommandError(`${path}: cannot be read (${code})`)
    : error
}
