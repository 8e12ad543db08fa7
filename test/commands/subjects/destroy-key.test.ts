import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { destroyKey, type ErasureReceipt, keyStateOf } from '../../../commands/subjects/destroy-key.ts'
import { createKeys } from '../../support/seal.ts'

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
  const { directory } = createKeys(t, ['k1', 'k2'])
  expect(await keyStateOf(directory, 'k1')).toBe('here')
  await destroyKey(directory, receipt('k1'))
  expect(await keyStateOf(directory, 'k1')).toBe('erased')
  expect(existsSync(join(directory, 'k1.key'))).toBe(false)
  expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(receipt('k1'))
  expect(await keyStateOf(directory, 'k2')).toBe('here')
})

test('an erasure that was killed after its receipt is finished by the next one, with the first receipt', async t => {
  const { directory, put } = createKeys(t, ['k1'])
  await destroyKey(directory, receipt('k1'))
  put('k1')
  expect(await keyStateOf(directory, 'k1')).toBe('erasing')
  await destroyKey(directory, { ...receipt('k1'), erased_at: '2027-01-01T00:00:00.000Z' })
  expect(await keyStateOf(directory, 'k1')).toBe('erased')
  expect(JSON.parse(readFileSync(join(directory, 'k1.erased.json'), 'utf8'))).toEqual(receipt('k1'))
})

test('a key stays while its receipt cannot be written', async t => {
  const { directory } = createKeys(t, ['k1'])
  // A directory stands where the new file is written.
  mkdirSync(join(directory, 'k1.erased.json.new'))
  await expect(destroyKey(directory, receipt('k1'))).rejects.toThrow()
  expect(await keyStateOf(directory, 'k1')).toBe('here')
})

test('a key without a file is missing, and a directory that is gone is an error', async t => {
  const { directory } = createKeys(t, [])
  expect(await keyStateOf(directory, 'k1')).toBe('missing')
  await expect(keyStateOf(`${directory}-gone`, 'k1')).rejects.toThrow(/cannot be read/)
})
