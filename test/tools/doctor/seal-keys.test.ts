/** The checks of the directory of seal keys. */
import { constants, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkDirectory, checkedSealKeysIn, checkSealKeys } from '../../../tools/doctor/seal-keys.ts'
import { createKeys } from '../../support/seal.ts'
import { startVault } from '../../support/vault.ts'

/** The user of the tests may do everything: this refuses an access instead. */
const without =
  (mode: number, end = '') =>
  (path: unknown, asked?: number): void => {
    if (asked === mode && String(path).endsWith(end)) throw new Error('EACCES')
  }
const wrong = (...asked: Parameters<typeof checkDirectory>) =>
  checkDirectory(...asked)
    .filter(({ outcome }) => outcome !== 'ok')
    .map(({ outcome, detail, mend }) => `${outcome}: ${detail}; ${mend}`)

test('a directory that is read-only for readers is in order, and its files are counted', t => {
  const { directory, putReceipt } = createKeys(t, ['k1', 'k2'])
  putReceipt('k3')
  expect(checkDirectory(directory, 'read', without(constants.W_OK))).toEqual([
    { check: 'SEAL_KEYS_DIR', outcome: 'ok', detail: '2 keys and 1 receipts' },
  ])
})

test('a reader that may write is warned, and an erasure that may not is refused', t => {
  const { directory } = createKeys(t, [])
  expect(wrong(directory, 'read')).toEqual([expect.stringMatching(/^warning: it can be written: .*read-only/)])
  expect(wrong(directory, 'erase')).toEqual([])
  for (const use of ['erase', 'write'] as const) {
    expect(wrong(directory, use, without(constants.W_OK))).toEqual([
      expect.stringMatching(/^failed: .* cannot be written: .*chmod u\+w/),
    ])
  }
})

test('a directory that is gone, that is a file, or whose files cannot be read is named', t => {
  const { directory } = createKeys(t, ['k1', 'k2'])
  expect(wrong(`${directory}-gone`, 'read')).toEqual([expect.stringContaining('does not exist; mount')])
  writeFileSync(join(directory, 'file'), '')
  expect(wrong(join(directory, 'file'), 'read')).toEqual([expect.stringContaining('is no directory')])
  expect(wrong(directory, 'erase', without(constants.R_OK, 'k2.key'))).toEqual([
    expect.stringMatching(/^failed: 1 file cannot be read: k2.key; .*chmod u\+r/),
  ])
  expect(wrong(directory, 'erase', without(constants.X_OK))).toEqual([
    expect.stringMatching(/cannot be opened; .*u\+x/),
  ])
})

test('the doctor looks at Vault for those that read or destroy keys, and not for a redaction', async t => {
  const { directory } = createKeys(t, [])
  const { url } = await startVault(t)
  const token = 'eraser-token'
  const settings = { SEAL_KEYS_DIR: directory, SEAL_KEYS_VAULT_URL: url, SEAL_KEYS_VAULT_MOUNT: 'transit' }
  const checks = async (name: Parameters<typeof checkedSealKeysIn>[0]) => {
    const given = checkedSealKeysIn(name, { ...settings, SEAL_KEYS_VAULT_TOKEN: token }, () => Buffer.alloc(0))
    return given && (await checkSealKeys(given)).map(({ check }) => check)
  }
  expect(await checks('projection')).toContain('Vault: delete on transit/keys/+')
  expect(await checks('api')).toContain('Vault: read on transit/export/encryption-key/+/1')
  expect(await checks('api')).not.toContain('Vault: delete on transit/keys/+')
  expect(await checks('restore')).toEqual(['SEAL_KEYS_DIR'])
  expect(await checks('projector')).toBeUndefined()
  expect(checkedSealKeysIn('api', {}, () => Buffer.alloc(0))).toBeUndefined()
  rmSync(directory, { recursive: true })
  expect(await checks('follow')).toContain('Vault')
})
