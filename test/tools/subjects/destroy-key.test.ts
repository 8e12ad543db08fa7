import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createVault } from '../../../core/reading/sealed/vault.ts'
import { destroyKey, type ErasureReceipt, keyStateOf, readReceipt } from '../../../tools/subjects/destroy-key.ts'
import type { Scope } from '../../support/scope.ts'
import { createKeys } from '../../support/seal.ts'
import { startVault } from '../../support/vault.ts'

const receipt = (key_id: string, rep = 'rep_1'): ErasureReceipt => ({
  version: 1,
  erased_at: '2026-11-24T10:00:00.000Z',
  organization: 'org_a',
  rep,
  key_id,
  sealed_texts: 2,
  sealed_sha256: '0'.repeat(64),
})

test('a destroyed key is gone, and its receipt is there', async t => {
  const { directory, sources } = createKeys(t, ['k1', 'k2'])
  expect(await keyStateOf(sources, 'k1')).toBe('here')
  await destroyKey(sources, receipt('k1'))
  expect(await keyStateOf(sources, 'k1')).toBe('erased')
  expect(existsSync(join(directory, 'k1.key'))).toBe(false)
  expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(receipt('k1'))
  expect(await keyStateOf(sources, 'k2')).toBe('here')
})

test('an erasure that was killed after its receipt is finished by the next one, with the first receipt', async t => {
  const { directory, sources, put } = createKeys(t, ['k1'])
  await destroyKey(sources, receipt('k1'))
  put('k1')
  expect(await keyStateOf(sources, 'k1')).toBe('erasing')
  await destroyKey(sources, { ...receipt('k1'), erased_at: '2027-01-01T00:00:00.000Z' })
  expect(await keyStateOf(sources, 'k1')).toBe('erased')
  expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(receipt('k1'))
})

test('a receipt that is begun is that of an erasure that has not ended, and the next run completes it', async t => {
  const { directory, sources, putReceipt } = createKeys(t, [])
  putReceipt('k1', JSON.stringify({ ...receipt('k1'), state: 'begun' }))
  expect(await keyStateOf(sources, 'k1')).toBe('erasing')
  const later = { ...receipt('k1'), erased_at: '2027-01-01T00:00:00.000Z' }
  expect(await destroyKey(sources, later)).toEqual(later)
  expect(await keyStateOf(sources, 'k1')).toBe('erased')
  expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(later)
})

test('a completed receipt counts the texts that the last run found', async t => {
  const { sources, putReceipt } = createKeys(t, ['k1'])
  putReceipt('k1', JSON.stringify({ ...receipt('k1'), state: 'begun' }))
  const last = { ...receipt('k1'), sealed_texts: 3, sealed_sha256: '1'.repeat(64) }
  expect(await destroyKey(sources, last)).toEqual(last)
})

test('a receipt that was begun for another person of the same key names both once it is complete', async t => {
  const { sources, putReceipt } = createKeys(t, ['k1'])
  putReceipt('k1', JSON.stringify({ ...receipt('k1', 'rep_1'), state: 'begun' }))
  const last = { ...receipt('k1', 'rep_2'), sealed_texts: 5 }
  const both = { ...last, begun_for: { organization: 'org_a', rep: 'rep_1' } }
  expect(await destroyKey(sources, last)).toEqual(both)
  // A complete one stays.
  expect(await destroyKey(sources, receipt('k1', 'rep_1'))).toEqual(both)
})

test('of a redaction that is begun, no key is left to destroy', async t => {
  const { sources, putReceipt } = createKeys(t, [])
  const id = `redacted-${'0a'.repeat(20)}`
  putReceipt(id, JSON.stringify({ ...receipt(id), state: 'begun' }))
  expect(await keyStateOf(sources, id)).toBe('erased')
})

test('a key stays while its receipt cannot be written', async t => {
  const { directory, sources } = createKeys(t, ['k1'])
  // A directory has the name of a file that a killed run left, so that it cannot be removed.
  mkdirSync(join(directory, `k1.erased.json.${crypto.randomUUID()}.new`))
  await expect(destroyKey(sources, receipt('k1'))).rejects.toThrow()
  expect(await keyStateOf(sources, 'k1')).toBe('here')
})

test('a key without a file is missing, and a directory that is gone is an error', async t => {
  const { directory, sources } = createKeys(t, [])
  expect(await keyStateOf(sources, 'k1')).toBe('missing')
  await expect(keyStateOf({ ...sources, directory: `${directory}-gone` }, 'k1')).rejects.toThrow(/cannot be read/)
})

test('a damaged receipt is named, with what to do', async t => {
  const { directory, sources } = createKeys(t, ['k1'])
  await destroyKey(sources, receipt('k1'))
  const file = join(directory, 'k1.erased.json')
  expect(await readReceipt(file)).toEqual(receipt('k1'))
  for (const text of [
    '',
    '{"version": 1, "organ',
    'null',
    '{}',
    JSON.stringify({ ...receipt('k1'), rep: 1 }),
    JSON.stringify({ ...receipt('k1'), erased_at: null }),
    JSON.stringify(receipt('k2')),
  ]) {
    writeFileSync(file, text)
    await expect(readReceipt(file)).rejects.toThrow(`${file}: expected the receipt of an erasure, and it is damaged`)
  }
})

test('a key stays while its receipt is damaged, because nothing would prove its end', async t => {
  const { directory, sources } = createKeys(t, ['k1'])
  writeFileSync(join(directory, 'k1.erased.json'), '{"version": 1, "organ')
  await expect(destroyKey(sources, receipt('k1'))).rejects.toThrow('remove it and repeat the command')
  expect(existsSync(join(directory, 'k1.key'))).toBe(true)
  rmSync(join(directory, 'k1.erased.json'))
  expect(await destroyKey(sources, receipt('k1'))).toEqual(receipt('k1'))
})

describe('with Vault', () => {
  const withVault = async (t: Scope, token = 'eraser-token') => {
    const { directory, putReceipt } = createKeys(t, [])
    const vault = await startVault(t, { ids: ['k1', 'k2'] })
    const client = createVault({ url: vault.url, mount: 'transit', token: () => token, ca: undefined })
    return { directory, putReceipt, vault, sources: { directory, vault: client } }
  }

  test('a destroyed key is gone from Vault, after its receipt was written', async t => {
    const { directory, vault, sources } = await withVault(t)
    expect(await keyStateOf(sources, 'k1')).toBe('here')
    await destroyKey(sources, receipt('k1'))
    expect(await keyStateOf(sources, 'k1')).toBe('erased')
    expect([...vault.keys.keys()]).toEqual(['k2'])
    expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(receipt('k1'))
    expect(await keyStateOf(sources, 'k9')).toBe('missing')
  })

  test('an erasure that was killed after its receipt is finished by the next one', async t => {
    const { vault, sources, putReceipt } = await withVault(t)
    putReceipt('k1', JSON.stringify(receipt('k1')))
    expect(await keyStateOf(sources, 'k1')).toBe('erasing')
    await destroyKey(sources, receipt('k1'))
    expect(await keyStateOf(sources, 'k1')).toBe('erased')
    expect(vault.keys.has('k1')).toBe(false)
  })

  test('an erasure that Vault did not end stays so without Vault, and at another mount, until Vault has ended it', async t => {
    const { directory, vault, sources } = await withVault(t)
    const failing = {
      ...sources.vault,
      send: async (...request: Parameters<typeof sources.vault.send>) =>
        request[0] === 'DELETE' ? undefined : sources.vault.send(...request),
    }
    await expect(destroyKey({ directory, vault: failing }, receipt('k1'))).rejects.toThrow(/the key is not destroyed/)
    const stored = () => JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))
    const begun = { ...receipt('k1'), state: 'begun', vault_mount: 'transit', vault: 'cluster c1' }
    const elsewhere = { ...sources.vault, mount: 'other', read: async () => ({ state: 'unknown' }) as const }
    for (const other of [undefined, elsewhere]) {
      expect(await keyStateOf({ directory, vault: other }, 'k1')).toBe('erasing')
      await expect(destroyKey({ directory, vault: other }, receipt('k1'))).rejects.toThrow(
        'the removal of k1 from Vault, mount transit, has not ended',
      )
      expect([stored(), vault.keys.has('k1')]).toEqual([begun, true])
    }
    expect(await destroyKey(sources, receipt('k1'))).toEqual(receipt('k1'))
    expect([stored(), vault.keys.has('k1')]).toEqual([receipt('k1'), false])
    expect(await keyStateOf({ directory, vault: undefined }, 'k1')).toBe('erased')
  })

  test('an erasure that one Vault did not end is not completed by another Vault with the same mount', async t => {
    const { directory, vault, sources, putReceipt } = await withVault(t)
    const begun = { ...receipt('k1'), state: 'begun', vault_mount: 'transit' }
    const another = await startVault(t)
    const clientOf = (url: string) => createVault({ url, mount: 'transit', token: () => 'eraser-token', ca: undefined })
    const begunAt = async (cluster: string | undefined, stored: string) => {
      putReceipt('k1', JSON.stringify({ ...begun, vault: stored }))
      another.cluster = cluster
      return destroyKey({ directory, vault: clientOf(another.url) }, receipt('k1'))
    }
    for (const cluster of ['c2', undefined]) {
      for (const stored of ['cluster c1', vault.url]) {
        await expect(begunAt(cluster, stored)).rejects.toThrow(
          `the removal of k1 from Vault, mount transit, has not ended, and nobody can look there: set SEAL_KEYS_VAULT_URL and SEAL_KEYS_VAULT_MOUNT as then (${stored})`,
        )
        expect(await keyStateOf(sources, 'k1')).toBe('erasing')
      }
    }
    // Another address of the same cluster, the same address while the cluster is not told, and an earlier version.
    expect(await begunAt('c1', 'cluster c1')).toEqual(receipt('k1'))
    expect(await begunAt('c1', another.url)).toEqual(receipt('k1'))
    putReceipt('k1', JSON.stringify(begun))
    expect(await destroyKey({ directory, vault: clientOf(another.url) }, receipt('k1'))).toEqual(receipt('k1'))
  })

  test('without the right to delete, there is no receipt and the key stays', async t => {
    const { directory, vault, sources } = await withVault(t, 'api-token')
    await expect(destroyKey(sources, receipt('k1'))).rejects.toThrow(/403 permission denied/)
    expect(vault.keys.has('k1')).toBe(true)
    expect(existsSync(join(directory, 'k1.erased.json'))).toBe(false)
  })

  test('a Vault that does not answer is an error, and never a missing key', async t => {
    const { vault, sources, putReceipt } = await withVault(t)
    vault.trouble = 'sealed'
    await expect(keyStateOf(sources, 'k1')).rejects.toThrow(
      /Vault does not answer.*GET transit\/export\/encryption-key\/\+\/1: status 503/,
    )
    putReceipt('k1', JSON.stringify(receipt('k1')))
    await expect(keyStateOf(sources, 'k1')).rejects.toThrow(/Vault does not answer/)
  })
})
