/**
 * In: the directory of keys and receipts, and Vault if it is set. Out: the store of keys.
 * Promises: a receipt in the directory takes precedence over any key. The order is receipt, key file, Vault. Vault is
 *   asked only while the directory can be read, because a receipt may be in it.
 */

import { readFileSync } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import { limitConcurrency, type Read, SettingsError, type sealSettings } from '../../runtime/index.ts'
import { readSealKey } from './key-directory.ts'
import type { ReadSealKey } from './key-store.ts'
import { SEAL_FILES_AT_ONCE } from './limits.ts'
import { createVault, type Vault } from './vault.ts'

/** Where the keys are, and their receipts. */
export type KeySources = { readonly directory: string; readonly vault: Vault | undefined }

/** @throws SettingsError if the file of certificates cannot be read */
export const keySourcesOf = (settings: Read<typeof sealSettings>): KeySources | undefined => {
  const { SEAL_KEYS_DIR: directory, SEAL_KEYS_VAULT_URL: url, SEAL_KEYS_VAULT_MOUNT: mount } = settings
  if (directory === undefined) return undefined
  if (url === undefined) return { directory, vault: undefined }
  const ca = readCa(settings.SEAL_KEYS_VAULT_CA_FILE)
  return { directory, vault: createVault({ url, mount, ca, token: () => settings.SEAL_KEYS_VAULT_TOKEN }) }
}

const readCa = (file: string | undefined): string | undefined => {
  if (file === undefined) return undefined
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new SettingsError([{ name: 'SEAL_KEYS_VAULT_CA_FILE', expected: 'a file that can be read', got: file }])
  }
}

export const readFrom = ({ directory, vault }: KeySources): ReadSealKey => {
  // HAZARD: each read keeps a thread of the process, for ever if the storage hangs. The log, the audit log and names of
  // hosts need these threads, too.
  const inTurn = limitConcurrency(SEAL_FILES_AT_ONCE)
  const readFile = (id: string) => inTurn(() => readSealKey(directory, id))
  return async id => {
    const inDirectory = await readFile(id)
    if (inDirectory.state !== 'unknown' || vault === undefined) return inDirectory
    if (!(await inTurn(() => canRead(directory)))) return { state: 'unavailable' }
    const inVault = await vault.read(id)
    // An erasure may have replaced the key by a receipt in between.
    return inVault.state === 'unknown' ? readFile(id) : inVault
  }
}

const canRead = (directory: string): Promise<boolean> =>
  access(directory, constants.R_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
