/**
 * Checkpoints: what the service has signed about all changes of an organization. In: an answer of `/checkpoint`, and
 * the public key of the service, which came on another way. Out: the checkpoint. Promises: nothing of it is used before
 * the signature is checked.
 */

/** What is signed. Amounts and the time are texts. */
export type Checkpoint = {
  readonly organization: string
  /** The version of the rules that decided the changes. Another version begins another line of checkpoints. */
  readonly line: string
  /** How many changes it covers. */
  readonly sequence: number
  /** The last of them; null if there is none. */
  readonly changeId: string | null
  /** Over all of them, in 64 hexadecimal digits. */
  readonly digest: string
  /** Over all periods. */
  readonly totals: readonly ControlTotal[]
  /** When it was signed. */
  readonly time: string
}
export type ControlTotal = {
  readonly currency: string
  readonly owed: string
  readonly paid: string
  readonly open: string
}

/**
 * Milliseconds by which a checkpoint with fewer changes may seem later than one with more. A process of the API counts
 * the changes up to 18 s before it signs them (a request for a checkpoint takes no longer), and the clocks of two
 * processes may differ by 5 s. The rest is for a process that stood still.
 */
const ORDER_MS = 60_000

/** Whether the service has signed fewer changes later. An older checkpoint has fewer, too: a cache may have kept it. */
export const hasGoneBack = (from: Checkpoint, to: Checkpoint): boolean =>
  to.sequence < from.sequence && Date.parse(to.time) - Date.parse(from.time) > ORDER_MS

/** A checkpoint is not signed by the key, or cannot be read. */
export class CheckpointInvalidError extends Error {
  override name = 'CheckpointInvalidError'
}

/** The first line of a checkpoint. Another form has another number. */
export const DIGEST_FORM = 'commission checkpoint 1'

/** The type of a signature of Ed25519 in signed notes (C2SP). */
const ED25519 = 0x01
const ID_BYTES = 4

/**
 * Reads a signed note.
 * @param publicKeys `NAME+ID+KEY`, as the operator of the service gives it: one, or several of which one has signed
 * @throws CheckpointInvalidError
 */
export const readCheckpoint = async (note: string, publicKeys: string | readonly string[]): Promise<Checkpoint> => {
  const keys = (typeof publicKeys === 'string' ? [publicKeys] : publicKeys).map(keyIn)
  const end = note.lastIndexOf('\n\n')
  if (end === -1) throw new CheckpointInvalidError('the checkpoint is no signed note')
  const text = note.slice(0, end + 1)
  const lines = note.slice(end + 2).split('\n')
  const signed = keys.flatMap(key =>
    lines.flatMap(line => signatureIn(line, key).map(signature => ({ key, signature }))),
  )
  const named = keys.map(({ name, id }) => `${name} (${hex(id)})`).join(' or ')
  if (signed.length === 0) throw new CheckpointInvalidError(`the checkpoint has no signature of the key ${named}`)
  for (const { key, signature } of signed) {
    const imported = await crypto.subtle.importKey('raw', key.bytes, 'Ed25519', false, ['verify'])
    if (await crypto.subtle.verify('Ed25519', imported, signature, new TextEncoder().encode(text)))
      return contentOf(text)
  }
  throw new CheckpointInvalidError(`the checkpoint was changed: the signature of ${named} is of another text`)
}

type Bytes = Uint8Array<ArrayBuffer>
type Key = { readonly name: string; readonly id: Bytes; readonly bytes: Bytes }

const keyIn = (text: string): Key => {
  const [, name = '', id = '', encoded = ''] = /^([^+\s]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/=]+)$/.exec(text.trim()) ?? []
  const bytes = bytesOf(encoded)
  if (bytes?.length !== 33 || bytes[0] !== ED25519) {
    throw new CheckpointInvalidError('the public key has another form: expected NAME+ID+KEY, with a key of Ed25519')
  }
  return {
    name,
    id: Uint8Array.from(id.match(/../g) ?? [], digits => Number.parseInt(digits, 16)),
    bytes: bytes.slice(1),
  }
}

/** Returns the signature of a line, if it is of this key. */
const signatureIn = (line: string, { name, id }: Key): Bytes[] => {
  const start = `\u2014 ${name} `
  const bytes = line.startsWith(start) ? bytesOf(line.slice(start.length)) : undefined
  return bytes && hex(bytes.slice(0, ID_BYTES)) === hex(id) ? [bytes.slice(ID_BYTES)] : []
}

const bytesOf = (encoded: string): Bytes | undefined => {
  try {
    return Uint8Array.from(atob(encoded), character => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

const hex = (bytes: Uint8Array): string => [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('')

/** Reads the signed text. A further kind of line is of a later version, and changes nothing of the others. */
const contentOf = (text: string): Checkpoint => {
  const [form = '', ...lines] = text.trimEnd().split('\n')
  const valueNamed = (name: string): string => {
    const [found = '', ...more] = lines.filter(line => line.startsWith(`${name} `))
    if (found === '' || more.length > 0) throw new CheckpointInvalidError(`the checkpoint has no ${name}, or several`)
    return found.slice(name.length + 1)
  }
  if (form !== DIGEST_FORM) {
    throw new CheckpointInvalidError(`the checkpoint has another form: expected "${DIGEST_FORM}", got "${form}"`)
  }
  const change = valueNamed('change')
  const time = valueNamed('time')
  if (Number.isNaN(Date.parse(time))) throw new CheckpointInvalidError('the time of the checkpoint is no instant')
  const totals = lines
    .filter(line => line.startsWith('total '))
    .map(line => {
      const [, currency = '', , owed = '', , paid = '', , open = ''] = line.split(' ')
      return { currency, owed, paid, open }
    })
  return {
    organization: valueNamed('organization'),
    line: valueNamed('line'),
    sequence: Number(valueNamed('sequence')),
    changeId: change === 'none' ? null : change,
    digest: valueNamed('digest'),
    totals,
    time,
  }
}
