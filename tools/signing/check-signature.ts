/** Whether a manifest is signed, and by whom: compares a note with the manifest beside it and with the given keys. */

import { checkNote, parseNote, parseVerifierKey, type VerifierKey } from '../../core/runtime/index.ts'
import { CommandError } from '../failures.ts'
import { MANIFEST_FILE, NOTE_FILE } from './sign-manifest.ts'

/** A manifest or a file is not what was signed or written. */
export class EvidenceDiffers extends CommandError {
  override name = 'EvidenceDiffers'
}

/** @throws CommandError for a text that is no public key */
export const readVerifierKeys = (texts: readonly string[]): VerifierKey[] =>
  texts.map(text => {
    const key = parseVerifierKey(text)
    if (key) return key
    const expected = 'NAME+ID+KEY, as commission evidence key prints it, with the id of this key'
    const got = text.startsWith('PRIVATE+KEY+') ? 'a secret key' : `${text.length} characters of another form`
    throw new CommandError(`--key: expected ${expected}; got ${got}`)
  })

export type CheckedManifest = {
  /** The signed text; without a note the manifest itself. */
  readonly manifest: Buffer
  /** For people: by whom it is signed. */
  readonly signature: string
  /** The names and ids of the given keys that signed. */
  readonly signers: readonly string[]
}

/**
 * @param name of the folder, for messages
 * @returns the manifest that is signed, which may differ from the one beside it
 * @throws EvidenceDiffers for a wrong signature; with keys also for none, or one of other keys only
 */
export const checkSignature = (
  manifest: Buffer,
  note: Buffer | undefined,
  keys: readonly VerifierKey[],
  name: string,
): CheckedManifest => {
  const of = `${name}/${MANIFEST_FILE}`
  if (note === undefined) {
    const unsigned = `${of} is not signed`
    if (keys.length > 0) throw new EvidenceDiffers(`${unsigned}: there is no ${NOTE_FILE} beside it`)
    const means = 'these checks find what broke, not what somebody made'
    return { manifest, signature: `${unsigned}: ${means}`, signers: [] }
  }
  const parsed = parseNote(note)
  if (parsed === undefined) throw new EvidenceDiffers(`${name}/${NOTE_FILE}: expected a signed note of C2SP`)
  const by = parsed.signatures.map(({ name, id }) => `${name}+${id}`).join(', ')
  if (keys.length === 0) {
    const signature = `${of} has a signature of ${by}, which was not checked: give the public key with --key`
    return { manifest: parsed.text, signature, signers: [] }
  }
  const signed = checkNote(parsed, keys)
  if (signed.outcome === 'wrong') {
    const { key } = signed
    throw new EvidenceDiffers(`${name}/${NOTE_FILE}: the signature of ${key.name}+${key.id} is not of this text`)
  }
  if (signed.outcome === 'unknown') {
    throw new EvidenceDiffers(`${name}/${NOTE_FILE} is signed by ${by}, and by none of the given keys`)
  }
  const signers = signed.keys.map(({ name, id }) => `${name}+${id}`)
  return { manifest: parsed.text, signature: `${of} is signed by ${signers.join(', ')}`, signers }
}
