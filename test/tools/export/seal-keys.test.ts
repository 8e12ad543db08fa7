import { expect, test } from 'vitest'
import { createVault } from '../../../core/reading/sealed/vault.ts'
import { openSealKeys } from '../../../tools/export/seal-keys.ts'
import { createKeys } from '../../support/seal.ts'
import { startVault } from '../../support/vault.ts'

const clock = { elapsed: () => 0, later: () => () => undefined }

test('an export says why Vault refuses a key, once for many records', async t => {
  const vault = await startVault(t, { ids: ['k1', 'k2'] })
  const { directory } = createKeys(t, [])
  const client = createVault({ url: vault.url, mount: 'transit', token: () => 'expired', ca: undefined })
  const said: string[] = []
  const read = openSealKeys({ directory, vault: client }, { ...clock, say: message => said.push(message) })()
  expect(await Promise.all([read('k1'), read('k2'), read('k1')])).toMatchObject(Array(3).fill({ state: 'unavailable' }))
  expect(said).toEqual([
    'records with sealed texts are refused: a key cannot be read (seal_keys_unavailable, GET transit/export/encryption-key/+/1: status 403)',
  ])
})

test('without SEAL_KEYS_DIR there are no keys', async () => {
  expect(await openSealKeys(undefined, { ...clock, say: () => undefined })()('k1')).toEqual({ state: 'no_store' })
})

test('each reading reads the keys itself, and holds them while it goes on', async t => {
  const { sources, putReceipt } = createKeys(t, ['k1'])
  const begin = openSealKeys(sources, { ...clock, say: () => undefined })
  const first = begin()
  expect(await first('k1')).toMatchObject({ state: 'here' })
  putReceipt('k1')
  expect(await first('k1')).toMatchObject({ state: 'here' })
  expect(await begin()('k1')).toMatchObject({ state: 'destroyed' })
})
