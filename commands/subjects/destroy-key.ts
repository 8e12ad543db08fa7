/**
 * Destroys a seal key. First the receipt, then the key: a command that is killed in between leaves a receipt, which
 * counts more than a key, and the same command removes the key.
 * HAZARD: a copy of the directory still has the key. Overwriting the file does not reach copies, nor the old blocks of
 *   a disk that writes elsewhere. docs/privacy.md says how long copies may live.
 */
import { randomBytes } from 'node:crypto'
import { access, constants, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { keyFileOf, readSealKey, receiptFileOf } from '../api.ts'
import { CommandError } from '../failures.ts'
import { writeWhole } from '../whole-file.ts'

/** The proof that a key was destroyed. It has no personal data. */
export type ErasureReceipt = {
  readonly version: 1
  readonly erased_at: string
  readonly organization: string
  readonly rep: string
  readonly key_id: string
  /** The different sealed texts that the key sealed, and the SHA-256 over them, sorted, each with a line end. */
  readonly sealed_texts: number
  readonly sealed_sha256: string
}

/** `erasing`: the receipt is there, and the key too. */
export type KeyState = 'here' | 'erased' | 'erasing' | 'missing' | 'malformed'

/** @throws CommandError if the directory cannot be read */
export const keyStateOf = async (directory: string, id: string): Promise<KeyState> => {
  const { state } = await readSealKey(directory, id)
  if (state === 'destroyed') return (await exists(join(directory, keyFileOf(id)))) ? 'erasing' : 'erased'
  if (state === 'here' || state === 'malformed') return state
  if (state === 'unknown' && (await isDirectory(directory))) return 'missing'
  throw new CommandError(`SEAL_KEYS_DIR: ${directory} cannot be read`)
}

/** Writes the receipt, then removes the key. A receipt that is there stays as it is. */
export const destroyKey = async (directory: string, receipt: ErasureReceipt): Promise<void> => {
  const { key_id } = receipt
  const [keyFile, receiptFile] = [join(directory, keyFileOf(key_id)), join(directory, receiptFileOf(key_id))]
  await access(directory, constants.W_OK)
  if (!(await exists(receiptFile))) {
    await writeWhole(receiptFile, `${JSON.stringify(receipt, null, 2)}\n`)
    await syncDirectory(directory)
  }
  if (await exists(keyFile)) await overwrite(keyFile)
  await rm(keyFile, { force: true })
  await syncDirectory(directory)
  const state = await keyStateOf(directory, key_id)
  if (state !== 'erased') throw new CommandError(`the key ${key_id} is ${state} after its removal`)
}

const overwrite = async (file: string): Promise<void> => {
  await using handle = await open(file, constants.O_WRONLY | constants.O_NOFOLLOW)
  const { size } = await handle.stat()
  await handle.write(randomBytes(size))
  await handle.sync()
}

/** The name of a file is on disk only after its directory was written. */
const syncDirectory = async (directory: string): Promise<void> => {
  await using handle = await open(directory, 'r')
  await handle.sync()
}

const exists = async (file: string): Promise<boolean> =>
  stat(file).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )

const isDirectory = (directory: string): Promise<boolean> =>
  readdir(directory).then(
    () => true,
    () => false,
  )
