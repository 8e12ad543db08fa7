import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { receiptFileOf } from '../../../../core/reading/sealed/key-directory.ts'
import { keySourcesOf, readFrom } from '../../../../core/reading/sealed/key-sources.ts'
import { readSettings, sealSettings } from '../../../../core/runtime/settings.ts'
import type { Scope } from '../../../support/scope.ts'
import { createKeys, sealKey } from '../../../support/seal.ts'
import { startVault } from '../../../support/vault.ts'

const sourcesOf = async (t: Scope) => {
  const [keys, vault] = [createKeys(t, ['in-directory']), await startVault(t, { ids: ['in-vault', 'in-both'] })]
  const settings = {
    SEAL_KEYS_DIR: keys.directory,
    SEAL_KEYS_VAULT_URL: vault.url,
    SEAL_KEYS_VAULT_TOKEN: 'api-token',
  }
  const sources = keySourcesOf(readSettings(sealSettings, settings))
  if (sources === undefined) throw new Error('no sources')
  return { keys, vault, read: readFrom(sources) }
}

test('a key of the directory needs no Vault; any other comes from Vault', async t => {
  const { keys, vault, read } = await sourcesOf(t)
  keys.put('in-both', sealKey('another'))
  expect(await read('in-vault')).toEqual({ state: 'here', key: sealKey('in-vault') })
  vault.trouble = 'sealed'
  expect(await read('in-directory')).toMatchObject({ state: 'here' })
  expect(await read('in-both')).toEqual({ state: 'here', key: sealKey('another') })
  expect(await read('in-vault')).toMatchObject({ state: 'unavailable', vault: expect.stringContaining('status 503') })
})

test('a receipt in the directory counts more than a key in Vault, also while Vault is away', async t => {
  const { keys, vault, read } = await sourcesOf(t)
  keys.putReceipt('in-vault')
  expect(await read('in-vault')).toEqual({ state: 'destroyed' })
  vault.trouble = 'sealed'
  expect(await read('in-vault')).toEqual({ state: 'destroyed' })
})

test('a key that Vault lost is unknown without a receipt, never destroyed', async t => {
  const { keys, vault, read } = await sourcesOf(t)
  vault.keys.clear()
  expect(await read('in-vault')).toEqual({ state: 'unknown' })
  keys.putReceipt('in-vault')
  expect(await read('in-vault')).toEqual({ state: 'destroyed' })
})

test('Vault opens nothing while the directory of the receipts is gone', async t => {
  const { keys, vault, read } = await sourcesOf(t)
  rmSync(keys.directory, { recursive: true })
  expect(await read('in-vault')).toEqual({ state: 'unavailable' })
  expect(vault.requests).toEqual([])
})

test('key files on a storage that hangs leave other files readable', async t => {
  const { directory } = createKeys(t, [])
  const read = readFrom({ directory, vault: undefined })
  // Opening a pipe without a writer hangs as a file of such a storage does.
  const pipes = Array.from({ length: 8 }, (_, index) => join(directory, receiptFileOf(`k${index}`)))
  execFileSync('mkfifo', pipes)
  const reads = pipes.map((_, index) => read(`k${index}`))
  await readFile(import.meta.filename)

  const writers = pipes.map(pipe => openSync(pipe, constants.O_RDWR))
  for (const pipe of pipes) rmSync(pipe)
  for (const writer of writers) closeSync(writer)
  expect((await Promise.all(reads)).map(({ state }) => state)).toEqual([
    ...['malformed', 'malformed'],
    ...Array.from({ length: 6 }, () => 'unknown'),
  ])
})

test('Vault needs a directory for receipts and a token, and its file of certificates must be there', () => {
  const read = (settings: Record<string, string>) => () => keySourcesOf(readSettings(sealSettings, settings))
  const url = { SEAL_KEYS_VAULT_URL: 'https://localhost:8200' }
  const directory = { SEAL_KEYS_DIR: '/tmp' }
  expect(read(url)).toThrow(/SEAL_KEYS_DIR: expected a value.*\n.*SEAL_KEYS_VAULT_TOKEN: expected a value/)
  expect(read({ ...directory, SEAL_KEYS_VAULT_TOKEN: 'x' })).toThrow(/SEAL_KEYS_VAULT_URL: expected a value/)
  const whole = { ...directory, ...url, SEAL_KEYS_VAULT_TOKEN: 'x' }
  expect(read({ ...whole, SEAL_KEYS_VAULT_CA_FILE: '/nowhere.pem' })).toThrow(/SEAL_KEYS_VAULT_CA_FILE/)
  for (const mount of ['/transit', 'transit/', 'a//b', 'a?b', '../sys', 'a/..']) {
    expect(read({ ...whole, SEAL_KEYS_VAULT_MOUNT: mount }), mount).toThrow(/SEAL_KEYS_VAULT_MOUNT/)
  }
  expect(read(directory)()).toEqual({ directory: '/tmp', vault: undefined })
  expect(read({})()).toBeUndefined()
})
