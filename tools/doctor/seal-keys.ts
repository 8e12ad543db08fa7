/**
 * Checks of the seal keys, as the identity uses them: the API and readers open texts; an erasure also writes receipts
 * and destroys keys; a redaction writes receipts. Reads no key, and writes nothing.
 */
import { accessSync, constants, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Read, sealSettings } from '../../core/runtime/index.ts'
import type { IdentityName } from '../../schemas/access.ts'
import { type Finding, failed, ok, warning } from './finding.ts'
import { checkVault, type VaultAccess } from './vault.ts'

/** `read` opens texts, `write` writes receipts, `erase` does both and destroys keys. */
export type SealUse = 'read' | 'write' | 'erase'

const uses: Readonly<Partial<Record<IdentityName, SealUse>>> = {
  api: 'read',
  follow: 'read',
  // For `commission subjects`.
  projection: 'erase',
  // For `--redact`.
  restore: 'write',
}
export const sealUseOf = (name: IdentityName): SealUse | undefined => uses[name]

const CHECK = 'SEAL_KEYS_DIR'
/** Key files whose right to be read is looked at. */
const FILES_MAX = 1_000

/** @param mayUse `fs.accessSync`; a test has other rights */
export const checkDirectory = (directory: string, use: SealUse, mayUse = accessSync): Finding[] => {
  const may = (path: string, mode: number): boolean => {
    try {
      mayUse(path, mode)
      return true
    } catch {
      return false
    }
  }
  let names: string[]
  try {
    names = readdirSync(directory)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return [failed(CHECK, `${directory} does not exist`, 'mount the directory of the seal keys')]
    if (code === 'ENOTDIR') return [failed(CHECK, `${directory} is no directory`, 'name the directory of the keys')]
    return [failed(CHECK, `${directory} cannot be listed: ${code}`, `give this user the right to read it: chmod u+rx`)]
  }
  const findings: Finding[] = []
  if (!may(directory, constants.X_OK)) {
    findings.push(failed(CHECK, `files of ${directory} cannot be opened`, 'give this user the right to enter it: u+x'))
  }
  const files = names.filter(name => /\.(?:key|erased\.json)$/.test(name))
  const unreadable = files.slice(0, FILES_MAX).filter(name => !may(join(directory, name), constants.R_OK))
  if (unreadable.length > 0) {
    const count = unreadable.length
    const what = `${count === 1 ? '1 file cannot be read:' : `${count} files cannot be read, for example`} ${unreadable[0]}`
    findings.push(failed(CHECK, what, 'give this user the right to read them: chmod u+r'))
  }
  const isWritable = may(directory, constants.W_OK)
  if (use === 'read' && isWritable) {
    const what = 'it can be written: this program only reads it'
    findings.push(warning(CHECK, what, 'mount it read-only, or take the right to write from this user'))
  }
  if (use !== 'read' && !isWritable) {
    const what = `${directory} cannot be written: an erasure writes its receipt there`
    findings.push(failed(CHECK, what, 'give this user the right to write: chmod u+w, or mount it for writing'))
  }
  if (findings.some(({ outcome }) => outcome === 'failed')) return findings
  const keys = files.filter(name => name.endsWith('.key')).length
  return [ok(CHECK, `${keys} keys and ${files.length - keys} receipts`), ...findings]
}

export type CheckedSealKeys = {
  readonly directory: string
  readonly use: SealUse
  readonly vault: VaultAccess | undefined
}

/** @param settings those of the identity */
export const checkedSealKeysIn = (
  name: IdentityName,
  settings: Partial<Read<typeof sealSettings>>,
  readFile: (path: string) => Buffer,
): CheckedSealKeys | undefined => {
  const use = sealUseOf(name)
  const { SEAL_KEYS_DIR: directory, SEAL_KEYS_VAULT_URL: url, SEAL_KEYS_VAULT_MOUNT: mount = '' } = settings
  if (use === undefined || directory === undefined) return undefined
  if (url === undefined) return { directory, use, vault: undefined }
  const { SEAL_KEYS_VAULT_CA_FILE: file } = settings
  const ca = file === undefined ? undefined : readFile(file).toString()
  return { directory, use, vault: { url, mount, ca, token: () => settings.SEAL_KEYS_VAULT_TOKEN } }
}

export const checkSealKeys = async ({ directory, use, vault }: CheckedSealKeys): Promise<Finding[]> => [
  ...checkDirectory(directory, use),
  // A redaction writes the receipt of a key that nobody has.
  ...(vault === undefined || use === 'write' ? [] : await checkVault(vault, use)),
]
