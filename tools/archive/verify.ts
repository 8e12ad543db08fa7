/**
 * `commission archive verify` reads a whole archive again, and names the first fault. It writes nothing.
 *
 * `readSignedManifests` reads the manifests of an archive with their signatures, for all commands that rely on an
 * archive. In: an archive, and public keys. Out: the manifests, and the signed ones: a verification must find the end
 * of each signed one.
 * Promises: with keys, each manifest is signed by one of them. A note is compared without keys, too. A run that was
 * killed between a manifest and its note leaves records that are not signed: their number is said.
 */
import type { VerifierKey } from '../../core/runtime/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { type ExitCode, exitCodes } from '../failures.ts'
import { reportProgress } from '../generations/progress.ts'
import { checkSignature, readVerifierKeys } from '../signing/check-signature.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { type ArchiveManifest, archivedStreams, encodeManifest, parseManifest } from './manifest.ts'
import type { OpenTarget } from './open-target.ts'
import {
  offsetsIn,
  readManifests,
  requireOneInstallation,
  sayUnnamed,
  type VouchedManifests,
  verifyArchive,
} from './read-archive.ts'
import { ArchiveDamaged } from './segment.ts'
import type { ArchiveTarget } from './target.ts'
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
  const { manifests } = await verifyArchive(
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

type Say = (line: string) => void

/**
 * @param keys public keys, as texts
 * @throws EvidenceDiffers for a wrong signature, with keys also for a missing one; ArchiveDamaged; CommandError
 */
export const readSignedManifests = async (
  target: ArchiveTarget,
  keys: readonly string[] | undefined,
  say: Say,
): Promise<Required<VouchedManifests>> => {
  const verifiers = readVerifierKeys(keys ?? [])
  const readNote = (stream: Stream) => target.read(`${stream}/${NOTE_FILE}`)
  // Before the manifests: a run that goes on replaces a manifest before its note.
  const notes = { events: await readNote('events'), 'api-keys': await readNote('api-keys') }
  const manifests = await readManifests(target)
  const signedOf = (stream: Stream) => checkNoteOf(target, manifests[stream], notes[stream], verifiers, say)
  const signed = { events: signedOf('events'), 'api-keys': signedOf('api-keys') }
  requireOneInstallation(target, signed)
  return { manifests, signed }
}

/** Returns the signed manifest; without a note the manifest itself. */
const checkNoteOf = (
  target: ArchiveTarget,
  now: ArchiveManifest,
  note: Buffer | undefined,
  keys: readonly VerifierKey[],
  say: Say,
): ArchiveManifest => {
  const name = `${target.name}/${now.stream}`
  const { manifest, signature } = checkSignature(encodeManifest(now), note, keys, name)
  if (note === undefined) return now
  say(signature)
  const signed = parseManifest(manifest, now.stream, `${name}/${NOTE_FILE}`)
  const isSameLog = signed.cluster_id === now.cluster_id && signed.topic === now.topic
  const isAsLong = now.partitions.every(({ partition, end }) => end >= (signed.partitions[partition]?.end ?? 0))
  if (!isSameLog || !isAsLong || now.partitions.length !== signed.partitions.length) {
    throw new ArchiveDamaged(`${name}/${MANIFEST_FILE}: it does not continue what ${NOTE_FILE} says`)
  }
  const unsigned = recordsOf(now) - recordsOf(signed)
  if (unsigned > 0) say(`${name}: ${unsigned} records after the signed end are not signed`)
  return signed
}

const recordsOf = ({ partitions }: ArchiveManifest): number => partitions.reduce((sum, { records }) => sum + records, 0)
