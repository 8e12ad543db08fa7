/**
 * Destroys a seal key. First the receipt, as begun, then the key: a command that is killed in between leaves a receipt,
 * which counts more than a key, and the same command removes the key. Only then the receipt is complete.
 * HAZARD: a copy of the directory still has the key. Overwriting the file does not reach copies, nor the old blocks of
 *   a disk that writes elsewhere. A backup of Vault still has the key, too. docs/privacy.md says how long copies may
 *   live.
 */
import { randomBytes } from 'node:crypto'
import { access, constants, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type KeySources, keyFileOf, readSealKey, receiptFileOf, type Vault } from '../../core/reading/index.ts'
import { CommandError } from '../failures.ts'
import { AS_USUAL, createWhole, syncDirectory, writeWhole } from '../whole-file.ts'

/** The proof that a key was destroyed. It has no personal data. */
export type ErasureReceipt = {
  readonly version: 1
  /** The key may be there, or the topics of a redaction are not compared. The API answers `erased` all the same. */
  readonly state?: 'begun'
  /** The mount of Vault that had the key, while the removal is begun. */
  readonly vault_mount?: string
  /** Which Vault, while the removal is begun: its cluster, or its address. Absent in receipts of earlier versions. */
  readonly vault?: string | undefined
  readonly erased_at: string
  readonly organization: string
  readonly rep: string
  /** Another person of the same key, for whom an earlier run began to destroy it. */
  readonly begun_for?: { readonly organization: string; readonly rep: string }
  readonly key_id: string
  /** The different sealed texts that the key sealed, and the SHA-256 over them, sorted, each with a line end. */
  readonly sealed_texts: number
  readonly sealed_sha256: string
}

/** Whether a key id is that of a redaction: no such key was ever there. */
export const isOfRedaction = (id: string): boolean => /^redacted-[0-9a-f]{40}$/.test(id)

/** `erasing`: the receipt is there, and the key too, or the removal of the key has not ended. */
export type KeyState = 'here' | 'erased' | 'erasing' | 'missing' | 'malformed'

/** @throws CommandError if the directory cannot be read, or Vault does not answer */
export const keyStateOf = async (sources: KeySources, id: string): Promise<KeyState> => {
  const { directory, vault } = sources
  const { state } = await readSealKey(directory, id)
  if (state === 'here' || state === 'malformed') return state
  if (state === 'destroyed') {
    const { state }: Partial<ErasureReceipt> = JSON.parse(await readFile(join(directory, receiptFileOf(id)), 'utf8'))
    const isBegun = state === 'begun' && !isOfRedaction(id)
    return isBegun || (await isLeft(sources, id)) ? 'erasing' : 'erased'
  }
  if (state !== 'unknown' || !(await isDirectory(directory))) {
    throw new CommandError(`SEAL_KEYS_DIR: ${directory} cannot be read`)
  }
  return vault === undefined ? 'missing' : stateInVault(vault, id)
}

const isLeft = async ({ directory, vault }: KeySources, id: string): Promise<boolean> =>
  (await exists(join(directory, keyFileOf(id)))) || (await isInVault(vault, id))

/**
 * Writes the receipt as begun, removes the key, and completes the receipt with this one: an earlier run that only began
 * may have found fewer texts, or another person of the same key. A complete one stays as it is.
 * @returns the stored receipt
 */
export const destroyKey = async (sources: KeySources, receipt: ErasureReceipt): Promise<ErasureReceipt> => {
  const { directory, vault } = sources
  const { key_id } = receipt
  const [keyFile, receiptFile] = [join(directory, keyFileOf(key_id)), join(directory, receiptFileOf(key_id))]
  await access(directory, constants.W_OK)
  // Before the receipt: without the right to do this, nothing is changed.
  const inVault = vault !== undefined && (await isInVault(vault, key_id)) ? vault : undefined
  if (inVault) await change(inVault, key_id, 'POST', '/config', { deletion_allowed: true })
  const identities = (await vault?.identities()) ?? []
  const where = inVault && { vault_mount: inVault.mount, vault: identities[0] }
  const stored = await writeReceipt(receiptFile, { ...receipt, state: 'begun', ...where })
  const { vault_mount: mount = vault?.mount, vault: identity = identities[0] } = stored
  if (mount !== vault?.mount || (identity !== undefined && !identities.includes(identity))) {
    const what = `the removal of ${key_id} from Vault, mount ${mount}, has not ended, and nobody can look there`
    const then = `as then${identity === undefined ? '' : ` (${identity})`}`
    const advice = `set SEAL_KEYS_VAULT_URL and SEAL_KEYS_VAULT_MOUNT ${then}, and run the same again`
    throw new CommandError(`${what}: ${advice}`)
  }
  if (inVault) await change(inVault, key_id, 'DELETE', '')
  await overwrite(keyFile)
  await rm(keyFile, { force: true })
  await syncDirectory(directory)
  if (await isLeft(sources, key_id)) throw new CommandError(`the key ${key_id} is there after its removal`)
  const { organization, rep } = stored
  const isOfSame = organization === receipt.organization && rep === receipt.rep
  await completeReceipt(receiptFile, isOfSame ? receipt : { ...receipt, begun_for: { organization, rep } })
  return readReceipt(receiptFile)
}

/**
 * The API reads receipts, mostly as another user. A receipt that is there stays as it is. The run that wrote it may
 * have been killed before its name was on disk.
 * @returns the stored receipt
 * @throws CommandError if it is damaged: it would prove nothing after the key is destroyed
 */
export const writeReceipt = async (file: string, receipt: ErasureReceipt): Promise<ErasureReceipt> => {
  if (!(await exists(file))) await createWhole(file, `${JSON.stringify(receipt, null, 2)}\n`, AS_USUAL)
  const stored = await readReceipt(file)
  await syncDirectory(dirname(file))
  return stored
}

/** @throws CommandError if the file is not the receipt of its key, for example because it is damaged */
export const readReceipt = async (file: string): Promise<ErasureReceipt> => {
  const text = await readFile(file, 'utf8')
  try {
    const receipt: ErasureReceipt | null = JSON.parse(text)
    const { organization, rep, key_id, erased_at }: Partial<ErasureReceipt> = receipt ?? {}
    const isOfFile = isText(key_id) && receiptFileOf(key_id) === basename(file)
    if (receipt !== null && isOfFile && isText(organization) && isText(rep) && isText(erased_at)) return receipt
  } catch {
    // Said below.
  }
  throw new CommandError(
    `${file}: expected the receipt of an erasure, and it is damaged: restore it from a copy, or remove it and repeat the command`,
  )
}
const isText = (value: unknown): value is string => typeof value === 'string'

/** @throws CommandError if the receipt is damaged */
export const storedReceipt = ({ directory }: KeySources, id: string): Promise<ErasureReceipt> =>
  readReceipt(join(directory, receiptFileOf(id)))

/** Ends a receipt that is begun, with what the last run found. Every other one stays as it is. */
export const completeReceipt = async (file: string, found: Partial<ErasureReceipt>): Promise<void> => {
  const { state, vault_mount: _mount, vault: _vault, ...receipt } = await readReceipt(file)
  if (state !== 'begun') return
  await writeWhole(file, `${JSON.stringify({ ...receipt, ...found }, null, 2)}\n`, AS_USUAL)
  await syncDirectory(dirname(file))
}

/** @throws CommandError if Vault does not answer */
const stateInVault = async (vault: Vault, id: string): Promise<'here' | 'malformed' | 'missing'> => {
  const found = await vault.read(id)
  if (found.state === 'here' || found.state === 'malformed') return found.state
  if (found.state === 'unknown') return 'missing'
  const why = 'vault' in found ? ` (${found.vault})` : ''
  throw new CommandError(
    `SEAL_KEYS_VAULT_URL: Vault does not answer, is sealed, or the token has no right to export${why}`,
  )
}
const isInVault = async (vault: Vault | undefined, id: string): Promise<boolean> =>
  vault !== undefined && (await stateInVault(vault, id)) !== 'missing'

/** Changes a key, unless another command has deleted it meanwhile. @throws CommandError if Vault did not do it */
const change = async (
  vault: Vault,
  id: string,
  method: 'POST' | 'DELETE',
  part: string,
  body?: object,
): Promise<void> => {
  const path = `keys/${id}${part}`
  const answer = await vault.send(method, path, body)
  if (answer !== undefined && answer.status < 300) return
  if (answer !== undefined && !(await isInVault(vault, id))) return
  const why = answer === undefined ? 'gives no answer' : `answers ${answer.status} ${answer.errors.join(', ')}`.trim()
  throw new CommandError(`Vault ${why} to ${method} ${path}: the key is not destroyed. The same command continues`)
}

/** Another command may have removed the file. */
const overwrite = async (file: string): Promise<void> => {
  await using handle = await open(file, constants.O_WRONLY | constants.O_NOFOLLOW).catch(ifMissing)
  if (handle === undefined) return
  const { size } = await handle.stat()
  await handle.writeFile(randomBytes(size))
  await handle.sync()
}

const exists = async (file: string): Promise<boolean> => (await stat(file).catch(ifMissing)) !== undefined

const ifMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
}

const isDirectory = (directory: string): Promise<boolean> =>
  readdir(directory).then(
    () => true,
    () => false,
  )
