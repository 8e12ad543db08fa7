import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEAL_VAULT_CONNECTIONS } from '../../../../core/reading/sealed/limits.ts'
import { createVault, type VaultOptions } from '../../../../core/reading/sealed/vault.ts'
import { eventually, type Scope } from '../../../support/scope.ts'
import { sealKey } from '../../../support/seal.ts'
import { startVault, type VaultDouble } from '../../../support/vault.ts'

const readerOf = (vault: VaultDouble, options: Partial<VaultOptions> = {}) =>
  createVault({ url: vault.url, mount: 'transit', token: () => 'api-token', ca: undefined, ...options })

test('the key is version 1 of the transit key with this id, also after a rotation', async t => {
  const vault = await startVault(t, { ids: ['k1'] })
  vault.put('rotated', { versions: [sealKey('rotated'), sealKey('second')] })
  const { read } = readerOf(vault)
  expect(await read('k1')).toEqual({ state: 'here', key: sealKey('k1') })
  expect(await read('rotated')).toEqual({ state: 'here', key: sealKey('rotated') })
  expect(vault.requests).toContain('GET /v1/transit/export/encryption-key/k1/1')
})

test('the secrets engine may be at another path, and the address may have a path', async t => {
  const vault = await startVault(t, { ids: ['k1'], mount: 'team/people' })
  expect(await readerOf(vault, { mount: 'team/people' }).read('k1')).toMatchObject({ state: 'here' })
  expect(await readerOf(vault, { mount: 'team/people', url: `${vault.url}/` }).read('k1')).toMatchObject({
    state: 'here',
  })
})

test('a Vault is identified by its cluster, and by its address if it tells no cluster', async t => {
  const vault = await startVault(t)
  const address = `${vault.url}/of/team`
  const identitiesAt = (url: string) =>
    readerOf(vault, { url, mount: 'team/people', token: () => undefined }).identities()
  expect(await identitiesAt(vault.url)).toEqual(['cluster c1', vault.url])
  vault.cluster = undefined
  expect(await identitiesAt(vault.url)).toEqual([vault.url])
  // A proxy may have Vault below a path; the setting may have a password, which nothing else may show.
  expect(await identitiesAt(`${address.replace('//', '//name:password@')}/`)).toEqual([address])
  await vault.stop()
  expect(await identitiesAt(vault.url)).toEqual([vault.url])
})

test('a key that is not there is unknown; a secrets engine that is not there is unavailable', async t => {
  const vault = await startVault(t, { ids: ['k1'] })
  expect(await readerOf(vault).read('other')).toEqual({ state: 'unknown' })
  expect(await readerOf(vault, { mount: 'elsewhere' }).read('k1')).toEqual({
    state: 'unavailable',
    vault: 'GET elsewhere/export/encryption-key/+/1: status 404',
  })
  // Vault allows no such name.
  expect(await readerOf(vault).read('k1-')).not.toMatchObject({ state: 'here' })
})

test('a key that may not be exported, or of another length, is malformed', async t => {
  const vault = await startVault(t)
  vault.put('fixed', { exportable: false })
  vault.put('short', { versions: [Buffer.alloc(16)] })
  vault.put('long', { versions: [Buffer.alloc(64)] })
  expect(await readerOf(vault).read('fixed')).toEqual({ state: 'malformed', vault: `${EXPORT}: status 400` })
  for (const id of ['short', 'long']) {
    expect(await readerOf(vault).read(id)).toEqual({ state: 'malformed', vault: `${EXPORT}: no key of 32 bytes` })
  }
})

/** How the reason of a refusal begins. It names no key. */
const EXPORT = 'GET transit/export/encryption-key/+/1'

test.each([
  ['sealed', 'status 503'],
  ['redirects', 'no JSON'],
  ['not JSON', 'no JSON'],
  ['endless', 'no whole answer'],
  ['silent', 'no answer in time'],
] as const)(
  'a Vault that is or does %j is unavailable, within the time limit, and the reason is: %s',
  async (trouble, reason) => {
    const ended: (() => Promise<unknown>)[] = []
    const scope: Scope = { onTestFinished: run => void ended.push(async () => run()) }
    const vault = await startVault(scope, { ids: ['k1'] })
    vault.trouble = trouble
    const found = await readerOf(vault, { timeMax: trouble === 'silent' ? 300 : 60_000 }).read('k1')
    expect(found).toEqual({ state: 'unavailable', vault: `${EXPORT}: ${reason}` })
    // A redirect would carry the token to another address.
    expect(vault.requests).toEqual(['GET /v1/transit/export/encryption-key/k1/1'])
    for (const end of ended) await end()
  },
)

test('the time for an answer begins when the request has a connection', async t => {
  const ids = Array.from({ length: SEAL_VAULT_CONNECTIONS }, (_, index) => `k${index}`)
  const vault = await startVault(t, { ids: [...ids, 'last'] })
  vault.trouble = 'silent'
  const { read } = readerOf(vault, { timeMax: 3_000 })
  const first = ids.map(id => read(id))
  const last = read('last')
  await eventually(() => expect(vault.requests).toHaveLength(SEAL_VAULT_CONNECTIONS))
  vault.trouble = undefined
  for (const key of await Promise.all(first)) {
    expect(key).toEqual({ state: 'unavailable', vault: `${EXPORT}: no answer in time` })
  }
  expect(await last).toMatchObject({ state: 'here' })
})

test('a token that has no right, or a Vault that is gone, is unavailable; the next token is used at once', async t => {
  const vault = await startVault(t, { ids: ['k1'] })
  let token = 'expired'
  const { read } = readerOf(vault, { token: () => token })
  const refused = await read('k1')
  expect(refused).toEqual({ state: 'unavailable', vault: `${EXPORT}: status 403` })
  token = 'api-token'
  expect(await read('k1')).toMatchObject({ state: 'here' })
  await vault.stop()
  expect(await read('k1')).toEqual({ state: 'unavailable', vault: expect.stringMatching(/: ECONN(?:REFUSED|RESET)$/) })
  await vault.start()
  expect(await read('k1')).toMatchObject({ state: 'here' })
})

test('a page of many keys makes a bounded number of requests at a time', async t => {
  const ids = Array.from({ length: 200 }, (_, index) => `k${index}`)
  const vault = await startVault(t, { ids })
  const { read } = readerOf(vault)
  const keys = await Promise.all(ids.map(id => read(id)))
  expect(keys.every(({ state }) => state === 'here')).toBe(true)
  expect(vault.underWay.most).toBeLessThanOrEqual(SEAL_VAULT_CONNECTIONS)
})

test('over TLS only a Vault with a certificate of the given authority is believed', async t => {
  const vault = await startVault(t, { ids: ['k1'], tls: true })
  const ca = readFileSync(join(import.meta.dirname, '../../../support/tls/cert.pem'), 'utf8')
  const foreign = await readerOf(vault).read('k1')
  expect(foreign).toEqual({ state: 'unavailable', vault: `${EXPORT}: DEPTH_ZERO_SELF_SIGNED_CERT` })
  expect(await readerOf(vault, { ca }).read('k1')).toMatchObject({ state: 'here' })
})
