/** The checks of Vault, against its double. Each thing that is wrong is named, with how to mend it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkVault, type VaultAccess } from '../../../tools/doctor/vault.ts'
import { startVault, type VaultDouble } from '../../support/vault.ts'

const accessOf = ({ url }: Pick<VaultDouble, 'url'>, token = 'eraser-token', mount = 'transit'): VaultAccess => ({
  url,
  mount,
  token: () => token,
  ca: undefined,
})
const wrong = async (access: VaultAccess, use: 'read' | 'erase' = 'erase') =>
  (await checkVault(access, use))
    .filter(({ outcome }) => outcome !== 'ok')
    .map(({ outcome, check, detail, mend }) => `${outcome}: ${check}: ${detail}: ${mend}`)

test('a Vault in order has no fault, and the checks leave no trace in it', async t => {
  const vault = await startVault(t, { ids: ['k1'] })
  const findings = await checkVault(accessOf(vault), 'erase')
  expect(findings.map(({ outcome, check }) => `${outcome} ${check}`)).toEqual([
    'ok Vault',
    'ok Vault: token',
    'ok Vault: read on transit/export/encryption-key/+/1',
    'ok Vault: update on transit/keys/+/config',
    'ok Vault: delete on transit/keys/+',
  ])
  expect([...vault.keys]).toEqual([['k1', expect.objectContaining({ deletionAllowed: false })]])
  // No request names a key that exists, or changes one.
  expect(vault.requests.map(request => request.replace(/doctor-[0-9a-f-]+/, 'NAME'))).toEqual([
    'GET /v1/sys/health',
    'GET /v1/auth/token/lookup-self',
    'GET /v1/transit/export/encryption-key/NAME/1',
    'POST /v1/sys/capabilities-self',
  ])
})

test('the API needs no right to erase, and none is looked for', async t => {
  const vault = await startVault(t)
  expect(await wrong(accessOf(vault, 'api-token'), 'read')).toEqual([])
  expect(vault.requests.some(request => request.includes('capabilities'))).toBe(false)
})

test('a token that may not erase is named for an erasure, with the lines of the policy', async t => {
  const vault = await startVault(t)
  const line = (path: string, capability: string): string =>
    `this line in the policy of the token: path "${path}" { capabilities = ["${capability}"] }`
  expect(await wrong(accessOf(vault, 'api-token'))).toEqual([
    `failed: Vault: update on transit/keys/+/config: Vault refuses it: nobody can be erased: ${line('transit/keys/+/config', 'update')}`,
    `failed: Vault: delete on transit/keys/+: Vault refuses it: nobody can be erased: ${line('transit/keys/+', 'delete')}`,
  ])
})

test('a token that Vault does not accept is named, and the export that it refuses', async t => {
  const vault = await startVault(t)
  const [token, exported, ...others] = await wrong(accessOf(vault, 'old-token'))
  expect(token).toMatch(/^failed: Vault: token: Vault refuses it.*SEAL_KEYS_VAULT_TOKEN_FILE/)
  expect(exported).toMatch(/^failed: Vault: read on transit\/export.*: path "transit\/export\/encryption-key\/\+\/1"/)
  expect(others).toEqual([])
})

test.for([
  [3_600, 'warning: Vault: token: it ends in 3600 s'],
  [0, 'warning: Vault: token: it never ends'],
] as const)('a token with %s seconds left is a warning', async ([ttl, expected], t) => {
  const vault = await startVault(t)
  vault.ttl = ttl
  const [found, ...others] = await wrong(accessOf(vault))
  expect(found).toContain(expected)
  expect(others).toEqual([])
})

test('a Vault that is sealed fails alone, and a standby is in order', async t => {
  const vault = await startVault(t)
  vault.trouble = 'sealed'
  expect(await wrong(accessOf(vault))).toEqual([
    'failed: Vault: it is sealed: records with sealed texts are refused: vault operator unseal',
  ])
  vault.trouble = 'standby'
  expect(await wrong(accessOf(vault))).toEqual([])
  expect((await checkVault(accessOf(vault), 'read'))[0]?.detail).toContain('standby')
})

test('a secrets engine that is not there is told apart from a missing right', async t => {
  const vault = await startVault(t)
  const [found, ...others] = await wrong(accessOf(vault, 'eraser-token', 'elsewhere'))
  expect(found).toMatch(/there is no secrets engine at elsewhere: look at SEAL_KEYS_VAULT_MOUNT/)
  expect(others).toEqual([])
})

describe('a Vault that gives no answer is named with the reason', () => {
  test('nobody listens', async t => {
    const vault = await startVault(t)
    await vault.stop()
    expect(await wrong(accessOf(vault))).toEqual([
      `failed: Vault: ${vault.url} gives no answer: ECONNREFUSED: look at SEAL_KEYS_VAULT_URL, and at the network between this machine and Vault`,
    ])
  })

  test('a name and a password in the address are not shown', async t => {
    const vault = await startVault(t)
    await vault.stop()
    const url = vault.url.replace('://', '://me:hunter2@')
    const [found] = await wrong({ ...accessOf(vault), url })
    expect(found).toContain(`${vault.url} gives no answer`)
    expect(found).not.toContain('hunter2')
  })

  test('it is silent, or a proxy answers', async t => {
    const vault = await startVault(t)
    vault.trouble = 'silent'
    expect(await wrong(accessOf(vault))).toEqual([expect.stringContaining('it was silent for too long')])
    vault.trouble = 'not JSON'
    expect(await wrong(accessOf(vault))).toEqual([expect.stringContaining('no JSON, as from a proxy')])
  })

  test('its certificate is not trusted', async t => {
    const vault = await startVault(t, { tls: true })
    expect(await wrong(accessOf(vault))).toEqual([expect.stringMatching(/CERT.*SEAL_KEYS_VAULT_CA_FILE/)])
    const ca = readFileSync(join(import.meta.dirname, '../../support/tls/cert.pem'), 'utf8')
    expect(await wrong({ ...accessOf(vault), ca })).toEqual([])
  })
})
