import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readSealKey } from '../../../../core/reading/sealed/key-directory.ts'
import { createKeys, sealKey } from '../../../support/seal.ts'

const key = sealKey('k')

test.each([
  ['32 bytes', key],
  ['base64', key.toString('base64')],
  ['base64 with a line end', `${key.toString('base64')}\n`],
  ['base64url', key.toString('base64url')],
])('a key is read as %s', async (_, content) => {
  const keys = createKeys({ onTestFinished: () => undefined }, [])
  keys.put('k', content)
  expect(await readSealKey(keys.directory, 'k')).toEqual({ state: 'here', key })
  rmSync(keys.directory, { recursive: true })
})

test('a key without a file is unknown, never destroyed', async t => {
  const keys = createKeys(t, ['k'])
  expect(await readSealKey(keys.directory, 'other')).toEqual({ state: 'unknown' })
  expect(await readSealKey(`${keys.directory}-gone`, 'k')).toEqual({ state: 'unknown' })
})

test('a file of another length is malformed', async t => {
  const keys = createKeys(t, [])
  for (const content of ['', 'short', key.subarray(1), Buffer.concat([key, key]), `${key.toString('base64')}AAAA`]) {
    keys.put('k', content)
    expect(await readSealKey(keys.directory, 'k')).toEqual({ state: 'malformed' })
  }
})

test('only a whole receipt of this key says that it was destroyed', async t => {
  const keys = createKeys(t, [])
  for (const receipt of ['', '{', '{}', '{"key_id":"k"}', '{"key_id":"other","erased_at":"2026-01-01T00:00:00Z"}']) {
    keys.putReceipt('k', receipt)
    expect(await readSealKey(keys.directory, 'k'), receipt).toEqual({ state: 'malformed' })
  }
  keys.putReceipt('k')
  expect(await readSealKey(keys.directory, 'k')).toEqual({ state: 'destroyed' })
})

test('a receipt counts more than a key file that is left, or came back', async t => {
  const keys = createKeys(t, ['k'])
  keys.putReceipt('k')
  expect(await readSealKey(keys.directory, 'k')).toEqual({ state: 'destroyed' })
})
