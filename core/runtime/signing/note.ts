/**
 * Signed notes, as C2SP specifies them: a text, an empty line, and lines with signatures of Ed25519. Other tools read
 * and write them, too. In: bytes and keys. Out: notes, or who signed one. Promises: a name and a public key have one
 * id; a note with a wrong signature of a known key is refused whole.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject, sign, verify } from 'node:crypto'

/** `id`: 8 hexadecimal digits. */
type KeyName = { readonly name: string; readonly id: string }
export type VerifierKey = KeyName & { readonly publicKey: KeyObject; readonly bytes: Buffer }
export type SigningKey = KeyName & { readonly verifier: VerifierKey; readonly privateKey: KeyObject }
type Signature = KeyName & { readonly bytes: Buffer }
export type Note = { readonly text: Buffer; readonly signatures: readonly Signature[] }

/** The type of a signature, as the specification numbers it. */
const ED25519 = 0x01
const KEY_BYTES = 32
const ID_BYTES = 4
/** The bytes before the key in its usual encodings (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')
const PRIVATE = 'PRIVATE+KEY+'
const SIGNATURES_MAX = 100
/** An em dash and a space. */
const SIGNED_BY = '\u2014 '

/** Without spaces, plus signs and control characters. */
export const isSignerName = (name: string): boolean => name !== '' && name.isWellFormed() && !/[\s+\p{Cc}]/u.test(name)

const idOf = (name: string, publicKey: Buffer): string =>
  hash('sha256', Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), publicKey])).slice(0, 2 * ID_BYTES)

const verifierOf = (name: string, bytes: Buffer): VerifierKey => {
  const key = Buffer.concat([PUBLIC_PREFIX, bytes])
  return { name, id: idOf(name, bytes), bytes, publicKey: createPublicKey({ key, format: 'der', type: 'spki' }) }
}

const signerOf = (name: string, privateKey: KeyObject): SigningKey => {
  const encoded = createPublicKey(privateKey).export({ format: 'der', type: 'spki' })
  const verifier = verifierOf(name, encoded.subarray(PUBLIC_PREFIX.length))
  return { name, id: verifier.id, verifier, privateKey }
}

export const createSigningKey = (name: string): SigningKey => signerOf(name, generateKeyPairSync('ed25519').privateKey)

export const textOfVerifierKey = ({ name, id, bytes }: VerifierKey): string => textOfKey(name, id, bytes)

/** The secret text of a key. */
export const textOfSigningKey = ({ name, id, privateKey }: SigningKey): string =>
  `${PRIVATE}${textOfKey(name, id, privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(PRIVATE_PREFIX.length))}`

const textOfKey = (name: string, id: string, bytes: Buffer): string =>
  `${name}+${id}+${Buffer.concat([Buffer.of(ED25519), bytes]).toString('base64')}`

/** Undefined for a text of another form, or with an id of another key. */
export const parseVerifierKey = (text: string): VerifierKey | undefined => {
  const parts = partsOf(text)
  const key = parts && verifierOf(parts.name, parts.bytes)
  return key?.id === parts?.id ? key : undefined
}

/** Undefined for a text of another form, or with an id of another key. */
export const parseSigningKey = (text: string): SigningKey | undefined => {
  const parts = text.startsWith(PRIVATE) ? partsOf(text.slice(PRIVATE.length)) : undefined
  if (parts === undefined) return undefined
  const encoded = Buffer.concat([PRIVATE_PREFIX, parts.bytes])
  const key = signerOf(parts.name, createPrivateKey({ key: encoded, format: 'der', type: 'pkcs8' }))
  return key.id === parts.id ? key : undefined
}

const partsOf = (text: string): (KeyName & { readonly bytes: Buffer }) | undefined => {
  const [, name = '', id = '', encoded = ''] = /^([^+]*)\+([0-9a-f]{8})\+([0-9A-Za-z+/=]+)$/.exec(text) ?? []
  const bytes = bytesOf(encoded)
  if (!isSignerName(name) || bytes?.length !== 1 + KEY_BYTES || bytes[0] !== ED25519) return undefined
  return { name, id, bytes: bytes.subarray(1) }
}

/** Undefined unless it is the text that these bytes have in base64. */
const bytesOf = (encoded: string): Buffer | undefined => {
  const bytes = Buffer.from(encoded, 'base64')
  return bytes.toString('base64') === encoded ? bytes : undefined
}

/** Whether a text can be the text of a note: whole lines of UTF-8 without other control characters, none empty. */
const isNoteText = (text: Buffer): boolean => {
  const decoded = text.toString('utf8')
  const isUtf8 = Buffer.from(decoded).equals(text)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note must not have them
  return isUtf8 && decoded.endsWith('\n') && !/[\x00-\x09\x0b-\x1f]/.test(decoded)
}

/** @throws Error for a text that a note cannot have: a defect */
export const signNote = (text: Buffer, { name, id, privateKey }: SigningKey): Buffer => {
  if (!isNoteText(text) || text.includes('\n\n')) throw new Error('a text that no note can have')
  const signature = Buffer.concat([Buffer.from(id, 'hex'), sign(null, text, privateKey)])
  return Buffer.concat([text, Buffer.from(`\n${SIGNED_BY}${name} ${signature.toString('base64')}\n`)])
}

/** Undefined for bytes that are no note. */
export const parseNote = (bytes: Buffer): Note | undefined => {
  const end = bytes.lastIndexOf('\n\n')
  if (end === -1 || !isNoteText(bytes)) return undefined
  const lines = bytes.toString('utf8', end + 2).split('\n')
  if (lines.pop() !== '' || lines.length === 0 || lines.length > SIGNATURES_MAX) return undefined
  const signatures = lines.map(signatureIn).filter(signature => signature !== undefined)
  return signatures.length === lines.length ? { text: bytes.subarray(0, end + 1), signatures } : undefined
}

const signatureIn = (line: string): Signature | undefined => {
  const [name = '', encoded = '', ...more] = line.slice(SIGNED_BY.length).split(' ')
  const bytes = bytesOf(encoded)
  const isWhole = line.startsWith(SIGNED_BY) && more.length === 0 && isSignerName(name)
  if (!isWhole || bytes === undefined || bytes.length <= ID_BYTES) return undefined
  return { name, id: bytes.toString('hex', 0, ID_BYTES), bytes: bytes.subarray(ID_BYTES) }
}

/** `unknown`: none of its signatures is of one of the keys. `wrong`: one is of this key, and is not of this text. */
export type SignedBy =
  | { readonly outcome: 'signed'; readonly keys: readonly VerifierKey[] }
  | { readonly outcome: 'wrong'; readonly key: VerifierKey }
  | { readonly outcome: 'unknown' }

export const checkNote = ({ text, signatures }: Note, keys: readonly VerifierKey[]): SignedBy => {
  const found: VerifierKey[] = []
  for (const key of keys) {
    const signature = signatures.find(({ name, id }) => name === key.name && id === key.id)
    if (signature === undefined) continue
    if (!verify(null, text, key.publicKey, signature.bytes)) return { outcome: 'wrong', key }
    found.push(key)
  }
  return found.length > 0 ? { outcome: 'signed', keys: found } : { outcome: 'unknown' }
}
