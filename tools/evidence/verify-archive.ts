/**
 * Compares an archive with its signed manifests. The archive may grow meanwhile: each note has a whole manifest, so the
 * log is read up to the end that is signed. In the end each manifest must be the signed one.
 */
import { type ArchiveManifest, archivedStreams, parseManifest } from '../archive/manifest.ts'
import { type Manifests, offsetsIn, readManifests, verifyArchive } from '../archive/read-archive.ts'
import type { ArchiveTarget } from '../archive/target.ts'
import { reportProgress } from '../generations/progress.ts'
import { NOTE_POLL_MS, NOTE_POLLS } from '../limits.ts'
import { parseNote, type VerifierKey } from '../signing/note.ts'
import { MANIFEST_FILE, NOTE_FILE } from '../signing/sign-manifest.ts'
import { type CheckedManifest, checkSignature, type Verified, type VerifyEvidenceSteps } from './signatures.ts'

/** @throws ArchiveDamaged for the first fault; EvidenceDiffers for a wrong or missing signature */
export const verifySignedArchive = async (
  target: ArchiveTarget,
  keys: readonly VerifierKey[],
  steps: VerifyEvidenceSteps,
): Promise<Verified> => {
  await readManifests(target)
  const checked = await checkManifests(target, keys)
  const manifests = { events: checked.events.parsed, 'api-keys': checked['api-keys'].parsed }
  const said = archivedStreams.map(stream => checked[stream].signature)
  await verifyArchive(target, { report: reportProgress(steps), say: steps.say }, steps.signal, manifests)
  const differences = [...(await unsignedIn(target, steps)), ...(await unnamedIn(target, manifests))]
  const records = archivedStreams
    .flatMap(stream => manifests[stream].partitions)
    .reduce((sum, part) => sum + part.records, 0)
  const signers = checked.events.signers.filter(signer => checked['api-keys'].signers.includes(signer))
  said.push(`${records} records and ${offsetsIn(manifests)} offsets are compared`)
  return { kind: 'archive', signers, said, differences }
}

type Checked = CheckedManifest & { readonly parsed: ArchiveManifest }

const checkManifests = async (target: ArchiveTarget, keys: readonly VerifierKey[]) => {
  const check = async (stream: (typeof archivedStreams)[number]): Promise<Checked> => {
    const name = `${target.name}/${stream}`
    const note = await target.read(`${stream}/${NOTE_FILE}`)
    const found = (await target.read(`${stream}/${MANIFEST_FILE}`)) ?? Buffer.alloc(0)
    const checked = checkSignature(found, note, keys, name)
    const file = `${name}/${note === undefined ? MANIFEST_FILE : NOTE_FILE}`
    return { ...checked, parsed: parseManifest(checked.manifest, stream, file) }
  }
  return { events: await check('events'), 'api-keys': await check('api-keys') }
}

/** Of a signed archive, the manifests that are not the signed ones. A run that goes on signs each within a moment. */
const unsignedIn = async (target: ArchiveTarget, { sleep, signal }: VerifyEvidenceSteps): Promise<string[]> => {
  const differences: string[] = []
  for (const stream of archivedStreams) {
    const isSigned = async (): Promise<boolean> => {
      const note = await target.read(`${stream}/${NOTE_FILE}`)
      const manifest = await target.read(`${stream}/${MANIFEST_FILE}`)
      return note === undefined || (manifest !== undefined && parseNote(note)?.text.equals(manifest) === true)
    }
    let signed = await isSigned()
    for (let poll = 0; !signed && poll < NOTE_POLLS; poll++) {
      await sleep(NOTE_POLL_MS)
      signal.throwIfAborted()
      signed = await isSigned()
    }
    if (signed) continue
    const how = 'it is not the signed one: archive --sign signs what it adds, somebody else did not'
    differences.push(`${target.name}/${stream}/${MANIFEST_FILE}: ${how}`)
  }
  return differences
}

/** Files that no archive has. A segment that was added meanwhile has a name like all others. */
const unnamedIn = async (target: ArchiveTarget, manifests: Manifests): Promise<string[]> => {
  const unnamed: string[] = []
  const isSegment = (name: string): boolean => /^\d{20}\.zst$/.test(name)
  for (const stream of archivedStreams) {
    const { partitions } = manifests[stream]
    const isPartition = (name: string): boolean => partitions.some(({ partition }) => name === String(partition))
    // A store lists all names below a folder, a file system those in it.
    for (const name of await target.list(stream)) {
      const [folder = '', segment] = name.split('/')
      const isOurs = segment === undefined ? isPartition(folder) : isPartition(folder) && isSegment(segment)
      if (!isOurs && name !== MANIFEST_FILE && name !== NOTE_FILE) unnamed.push(`${stream}/${name}`)
    }
    for (const { partition } of partitions) {
      const names = await target.list(`${stream}/${partition}`)
      unnamed.push(...names.filter(name => !isSegment(name)).map(name => `${stream}/${partition}/${name}`))
    }
  }
  return [...new Set(unnamed)].map(path => `${target.name}/${path}: no archive has such a file`)
}
