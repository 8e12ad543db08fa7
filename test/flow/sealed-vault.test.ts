/** The API with keys in Vault, and a person who is forgotten there. Vault is a double: see `support/vault.ts`. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SEAL_KEYS_OF_ORGANIZATION } from '../../core/reading/sealed/limits.ts'
import { createClient } from '../support/client.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText, repRecorded } from '../support/events.ts'
import { startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually } from '../support/scope.ts'
import { createKeys, seal } from '../support/seal.ts'
import { createPrefix, everythingProjected } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'
import { startVault } from '../support/vault.ts'

const org = 'org_a'

test('the API opens texts with keys of Vault, refuses while Vault is away, and forgets a person whose key is deleted there', async t => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const vault = await startVault(t, { ids: ['k1', 'k2'] })
  const keys = createKeys(t, [])
  const secrets = createKeys(t, [])
  const tokenFile = join(secrets.directory, 'token')
  writeFileSync(tokenFile, 'expired\n')
  const settings = { SEAL_KEYS_DIR: keys.directory, SEAL_KEYS_VAULT_URL: vault.url }
  const [text, textOfMany] = [newKeyText(), newKeyText()]
  const many = Array.from({ length: 40 }, (_, n) => `many-${n}`)
  for (const id of many) vault.put(id)
  const name = (rep: string, plain: string, keyId: string) =>
    repRecorded({ org_id: org, id: rep, name: seal(plain, { org, record: rep, field: 'name', keyId }) })
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([
    keyCreated({ org_id: org, text }),
    name('rep_1', 'Canary One', 'k1'),
    name('rep_2', 'Canary Two', 'k2'),
    repRecorded({ org_id: org, id: 'rep_3', name: 'Canary Three' }),
    keyCreated({ org_id: 'org_many', text: textOfMany }),
    ...many.map((keyId, n) => {
      const record = `rep_${n}`
      const sealed = seal('Canary Many', { org: 'org_many', record, field: 'name', keyId })
      return repRecorded({ org_id: 'org_many', id: record, name: sealed })
    }),
  ])
  await untilCaughtUp(projector)
  // Vault may be away at the start.
  await vault.stop()
  const api = await startApi(t, prefix, { settings: { ...settings, SEAL_KEYS_VAULT_TOKEN_FILE: tokenFile } })
  const client = createClient([api], text)
  const status = async (path: string) => (await client.ask(path)).status
  // Here and below, an answer may first be too late: the API gives Vault two seconds.
  await eventually(async () => expect([await status('/reps/rep_1'), await status('/reps/rep_3')]).toEqual([503, 200]))
  await vault.start()
  // Another program renews the token in its file.
  await eventually(async () => {
    expect(await status('/reps/rep_1')).toBe(503)
    expect(vault.requests.length).toBeGreaterThan(0)
  })
  const vaultSaid = { because: 'seal_keys_unavailable', vault: 'GET transit/export/encryption-key/+/1: status 403' }
  await eventually(async () => expect(api.lines()).toContainEqual(expect.objectContaining(vaultSaid)))
  writeFileSync(tokenFile, 'api-token\n')
  const nameOf = async (rep: string) => JSON.parse((await client.askInTime(`/reps/${rep}`)).text).data?.name
  await eventually(async () => expect(await nameOf('rep_1')).toBe('Canary One'))
  await eventually(async () => {
    const { data } = JSON.parse((await client.askInTime('/reps')).text)
    expect(data?.map((rep: { name: string }) => rep.name)).toEqual(['Canary One', 'Canary Two', 'Canary Three'])
  })

  // A key is asked for once in 2 s, whatever the number of requests.
  const before = vault.requests.length
  const began = performance.now()
  await Promise.all(Array.from({ length: 50 }, () => client.ask('/reps')))
  const times = 2 + Math.floor((performance.now() - began) / 2_000)
  expect(vault.requests.length - before).toBeLessThanOrEqual(2 * times)

  // The keys of a page are read a few at once, so that those of other organizations need not wait.
  const clientOfMany = createClient([api], textOfMany)
  vault.trouble = 'silent'
  vault.underWay.most = 0
  await eventually(async () => {
    expect((await clientOfMany.ask('/reps')).status).toBe(503)
    expect(vault.underWay.most).toBe(SEAL_KEYS_OF_ORGANIZATION.permits)
  })
  vault.trouble = undefined
  await eventually(async () => {
    const { data } = JSON.parse((await clientOfMany.ask('/reps')).text)
    expect(data?.map((rep: { name: string }) => rep.name)).toEqual(many.map(() => 'Canary Many'))
  })

  const stored = await everythingProjected(prefix)
  const subjects = (token: string, ...args: string[]) =>
    runCommand(['subjects', ...args], {
      ...commandSettings(topics, prefix),
      ...settings,
      SEAL_KEYS_VAULT_TOKEN: token,
    })
  const erase = ['erase', org, 'rep_1', '--confirm', 'rep_1', '--json']
  const refused = await subjects('api-token', ...erase)
  expect([refused.code, refused.said]).toEqual([1, expect.stringContaining('403 permission denied')])
  expect(existsSync(join(keys.directory, 'k1.erased.json'))).toBe(false)
  await eventually(async () => expect(await nameOf('rep_1')).toBe('Canary One'))

  const erased = await subjects('eraser-token', ...erase)
  expect([erased.code, jsonLines(erased)], erased.said).toEqual([0, [expect.objectContaining({ key_id: 'k1' })]])
  expect([...vault.keys.keys()]).toEqual(['k2', ...many])
  await eventually(async () =>
    expect(JSON.parse((await client.askInTime('/reps/rep_1')).text).data).toMatchObject({ name: '', erased: true }),
  )
  await eventually(async () => expect(await nameOf('rep_2')).toBe('Canary Two'))
  expect(await everythingProjected(prefix)).toEqual(stored)
  // A person who was forgotten stays so while Vault is away; the others are refused, never shown as forgotten.
  await vault.stop()
  await eventually(async () => expect(await status('/reps/rep_2')).toBe(503))
  await eventually(async () => expect(await status('/reps/rep_1')).toBe(200))
  await vault.start()
  await eventually(async () => expect(await nameOf('rep_2')).toBe('Canary Two'))
  const listed = await subjects('api-token', 'list', org, '--json')
  expect(jsonLines(listed).map(({ keys }) => keys)).toEqual([{ k1: 'erased' }, { k2: 'here' }, {}])
  const log = api.log()
  for (const hidden of ['api-token', 'Canary', vault.url]) expect(log).not.toContain(hidden)
})
