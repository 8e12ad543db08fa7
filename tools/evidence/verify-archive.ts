/**
 * Compares an archive with its signed manifests. The archive may grow meanwhile: each note has a whole manifest, so the
 * log is read up to the end that is signed. In the end each manifest must be the signed one, and each stored segment
 * must be named by it.
 */
import type { VerifierKey } from '../../core/runtime/index.ts'
import type { Stream } from '../../schemas/events.ts'
import { type ArchiveManifest, archivedStreams, parseManifest, readManifest } from '../archive/manifest.ts'
import {
  type Manifests,
  offsetsIn,
  readManifests,
  requireOneInstallation,
  verifyArchive,
} from '../archive/read-archive.ts'
import { ArchiveDamaged } from '../archive/segment.ts'
import type { ArchiveTarget } from '../archive/target.ts'
import { reportProgress } from '../generations/progress.ts'
import { NOTE_POLL_MS, NOTE_POLLS } from '../limits.ts'
import { checkSignature } from '../signing/check-signature.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { archiveCovers } from './covers.ts'
import { finishedPath, isLockOfRun, type StoredEntry, sayUnfinished, wrongKind } from './stored-files.ts'
import type { Signed, Verified, VerifyEvidenceSteps } from './verified.ts'

/**
 * Of a damaged log the first fault is named. The signature is told all the same.
 * @throws ArchiveDamaged for a damaged manifest and for streams of two installations; EvidenceDiffers for a wrong or
 *   missing signature
 */
export const verifySignedArchive = async (
  target: ArchiveTarget,
  entries: readonly StoredEntry[],
  keys: readonly VerifierKey[],
  steps: VerifyEvidenceSteps,
): Promise<Verified> => {
  const kind = 'archive'
  // Before anything is read: a link can lead to any file of this machine.
  const wrong = entries.flatMap(entry => {
    const expected = kindAt(entry.path)
    const what = expected && wrongKind(entry, expected)
    return what === undefined ? [] : [`${target.name}/${entry.path}: ${what}`]
  })
  if (wrong.length > 0) return { kind, signed: [], said: [], unfinished: [], differences: wrong }
  await readManifests(target)
  const checked = await checkManifests(target, keys)
  const manifests = { events: checked.events.parsed, 'api-keys': checked['api-keys'].parsed }
  // Each stream is signed alone, and a key may have signed the archives of several installations.
  requireOneInstallation(target, manifests)
  const unnamed: Unnamed[] = []
  const onUnnamed = (segment: Unnamed): void => void unnamed.push(segment)
  const reading = verifyArchive(target, { report: reportProgress(steps), onUnnamed }, steps.signal, { manifests })
  const damage = await reading.then(
    () => [],
    (error: unknown) => {
      if (error instanceof ArchiveDamaged) return [error.message]
      throw error
    },
  )
  const extra = addedIn(target, entries, manifests)
  const differences = [
    ...damage,
    ...(await stillUnnamed(target, unnamed, steps)),
    ...(await unsignedIn(target, keys, checked, steps)),
    ...extra.differences,
  ]
  const said = archivedStreams.flatMap(stream => [checked[stream].signature, checked[stream].covers.said])
  if (damage.length === 0) said.push(`${offsetsIn(manifests)} offsets are compared`)
  const signed = archivedStreams.map((stream): Signed => {
    const { signers, covers } = checked[stream]
    return { manifest: `${stream}/${MANIFEST_FILE}`, signers, covers: covers.fields }
  })
  return { kind, signed, said, unfinished: extra.unfinished, differences }
}

type Checked = Awaited<ReturnType<typeof checkManifest>>

const checkManifest = async (target: ArchiveTarget, stream: Stream, keys: readonly VerifierKey[]) => {
  const name = `${target.name}/${stream}`
  const note = await target.read(`${stream}/${NOTE_FILE}`)
  const found = (await target.read(`${stream}/${MANIFEST_FILE}`)) ?? Buffer.alloc(0)
  const checked = checkSignature(found, note, keys, name)
  const file = `${name}/${note === undefined ? MANIFEST_FILE : NOTE_FILE}`
  const parsed = parseManifest(checked.manifest, stream, file)
  return { ...checked, found, isSigned: note !== undefined, parsed, covers: archiveCovers(parsed, file) }
}

const checkManifests = async (target: ArchiveTarget, keys: readonly VerifierKey[]) => ({
  events: await checkManifest(target, 'events', keys),
  'api-keys': await checkManifest(target, 'api-keys', keys),
})

type Unnamed = { readonly stream: Stream; readonly partition: number; readonly from: number; readonly path: string }

/** True as soon as it is so: a run that goes on writes a segment, its manifest and its note within a moment. */
const isSoon = async (
  isSo: () => Promise<boolean>,
  { sleep, signal }: Pick<VerifyEvidenceSteps, 'sleep' | 'signal'>,
): Promise<boolean> => {
  for (let poll = 0; poll < NOTE_POLLS; poll++) {
    if (await isSo()) return true
    await sleep(NOTE_POLL_MS)
    signal.throwIfAborted()
  }
  return await isSo()
}

/** The segments that no manifest names, also after a moment. */
const stillUnnamed = async (
  target: ArchiveTarget,
  unnamed: readonly Unnamed[],
  steps: VerifyEvidenceSteps,
): Promise<string[]> => {
  const differences: string[] = []
  for (const { stream, partition, from, path } of unnamed) {
    const isNamed = async (): Promise<boolean> =>
      ((await readManifest(target, stream))?.partitions[partition]?.end ?? 0) > from
    if (await isSoon(isNamed, steps)) continue
    const next = 'archive --sign compares it with Kafka, and signs it'
    differences.push(
      `${target.name}/${path}: the manifest does not name it: a run was killed, or it was added. ${next}`,
    )
  }
  return differences
}

/** The manifests that are not the signed ones in the end, each with a note that is signed like the first one. */
const unsignedIn = async (
  target: ArchiveTarget,
  keys: readonly VerifierKey[],
  first: Readonly<Record<Stream, Checked>>,
  steps: VerifyEvidenceSteps,
): Promise<string[]> => {
  const differences: string[] = []
  for (const stream of archivedStreams) {
    const isSigned = async (): Promise<boolean> => {
      const now = await checkManifest(target, stream, keys)
      return now.manifest.equals(now.found) && now.isSigned === first[stream].isSigned
    }
    if (await isSoon(isSigned, steps)) continue
    const how = 'it is not the signed one: archive --sign signs what it adds, somebody else did not'
    differences.push(`${target.name}/${stream}/${MANIFEST_FILE}: ${how}`)
  }
  return differences
}

/** The kind of what an archive has at a path; undefined if no archive has anything there. */
const kindAt = (path: string): 'file' | 'folder' | undefined => {
  if (path === STORE_LOCK || /^(?:events|api-keys)\/(?:manifest\.(?:json|note)|\d+\/\d{20}\.zst)$/.test(path)) {
    return 'file'
  }
  return /^(?:events|api-keys)(?:\/\d+)?$/.test(path) ? 'folder' : undefined
}

/** Who writes into an archive in a store. It is never removed. */
const STORE_LOCK = 'archive.lock'

/** Files that no archive has. A segment that was added meanwhile has a name like all others. */
const addedIn = (
  { name }: ArchiveTarget,
  entries: readonly StoredEntry[],
  manifests: Manifests,
): Pick<Verified, 'unfinished' | 'differences'> => {
  const isOfPartition = (path: string): boolean => {
    const [stream = '', partition] = path.split('/')
    const { partitions }: Pick<ArchiveManifest, 'partitions'> =
      stream === 'events' ? manifests.events : manifests['api-keys']
    const isNumber = partition !== undefined && /^\d+$/.test(partition)
    return !isNumber || partitions.some(one => String(one.partition) === partition)
  }
  const [unfinished, differences]: [string[], string[]] = [[], []]
  const added: string[] = []
  for (const entry of entries) {
    const { path, kind } = entry
    if (added.some(folder => path.startsWith(`${folder}/`))) continue
    if (kindAt(path) !== undefined && isOfPartition(path)) continue
    const becomes = kind === 'file' ? finishedPath(path) : undefined
    if (isLockOfRun(entry) || (becomes !== undefined && kindAt(becomes) === 'file' && isOfPartition(becomes))) {
      unfinished.push(sayUnfinished(`${name}/${path}`))
      continue
    }
    added.push(path)
    differences.push(`${name}/${path}: no archive has such a ${kind}`)
  }
  return { unfinished, differences }
}
