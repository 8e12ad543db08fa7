/** `commission keys`, as an operator runs it, beside a projector and two APIs. The tests depend on their order. */
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { createFolder } from '../support/audit.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { newId, repRecorded } from '../support/events.ts'
import { readFromKafka } from '../support/in-kafka.ts'
import { fetchInTime } from '../support/in-time.ts'
import { type Api, type Projector, startApi } from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, indexNamed } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
let topics: Topics
let prefix: string
let projector: Projector
let apis: Api[]
let audits: string[]
let made: { id: string; key: string }

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(file, [repRecorded({ org_id: org, id: 'rep_1' })], {
    settings: { LOG_LEVEL: 'trace' },
  }))
  const folder = createFolder(file)
  audits = [1, 2].map(at => join(folder, `${at}.ndjson`))
  apis = await Promise.all(audits.map(path => startApi(file, prefix, { settings: { AUDIT_LOG: path } })))
})

const keys = (...args: string[]): Promise<Ran> => runCommand(['keys', ...args], commandSettings(topics, prefix))
const ask = async (api: Api, key: string) =>
  fetchInTime(api, '/reps', key).then(async answer => ({
    status: answer.status,
    text: await answer.text(),
  }))

const madeListed = () => ({
  id: made.id,
  org_id: org,
  name: 'Payroll export',
  permissions: ['read'],
  expires_at: null,
  allowed_networks: null,
})

test('a new key works at once on every API, and its text is only on standard output', async () => {
  const ran = await keys('create', '--org', org, '--name', 'Payroll export')
  expect(ran).toMatchObject({ code: 0, said: expect.stringContaining('only time') })
  const key = ran.out.toString().trimEnd()
  expect(key).toMatch(/^ck_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/)
  for (const api of apis)
    expect(await ask(api, key)).toMatchObject({ status: 200, text: expect.stringContaining('rep_1') })

  const id = /key_[0-9A-Za-z]+/.exec(ran.said)?.[0] ?? ''
  made = { id, key }
  const stored = JSON.stringify(await allStored(indexNamed(prefix, 'api-keys')))
  expect(stored).toContain(id)
  const { value } = await readFromKafka({ kafka: topics.kafka, events: topics.apiKeys }, 0, 0)
  expect(JSON.parse(String(value))).toMatchObject({
    id,
    name: 'Payroll export',
    last4: key.slice(-4),
    permissions: ['read'],
  })
  expect(String(value)).not.toContain(key)
  for (const text of [stored, ran.said, projector.log(), ...apis.map(api => api.log())]) expect(text).not.toContain(key)
})

test('with --json the key is a field; a key without the read permission is known but may not read', async () => {
  const ran = await keys('create', '--org', org, '--name', '', '--no-read', '--json')
  const [answer] = jsonLines(ran)
  expect(answer).toMatchObject({ org_id: org, name: '', permissions: [] })
  for (const api of apis) expect((await ask(api, String(answer?.key))).status).toBe(403)
})

test('the list shows the permissions of each key, and nothing of other organizations', async () => {
  const listed = jsonLines(await keys('list', '--org', org, '--json'))
  expect(listed).toHaveLength(2)
  expect(listed).toContainEqual({ ...madeListed(), revoked: false })
  const asText = await keys('list', '--org', org)
  expect(asText.out.toString()).toMatch(new RegExp(`^${made.id} +may read +Payroll export$`, 'm'))
  expect(await keys('list', '--org', newId('org'))).toMatchObject({
    code: 0,
    said: expect.stringContaining('0 keys of '),
  })
})

test('the list shows when each key was last used, from the audit logs of all APIs', async () => {
  const before = new Date().toISOString()
  const [api] = apis
  if (api) expect((await ask(api, made.key)).status).toBe(200)
  const listed = jsonLines(await keys('list', '--org', org, '--audit', ...audits, '--json'))
  const used = listed.find(({ id }) => id === made.id)
  expect(used).toEqual({ ...madeListed(), revoked: false, last_used_at: expect.any(String) })
  expect(String(used?.last_used_at) >= before).toBe(true)
  const never = jsonLines(await keys('create', '--org', org, '--name', 'Never used', '--json'))
  const asText = (await keys('list', '--org', org, '--audit', ...audits)).out.toString()
  expect(asText).toMatch(new RegExp(`^${made.id} +may read +${used?.last_used_at} +Payroll export$`, 'm'))
  expect(asText).toMatch(new RegExp(`^${never[0]?.id} +may read +no use in the audit log +Never used$`, 'm'))
  expect(await keys('list', '--org', org, '--audit', join(createFolder(file), 'missing'))).toMatchObject({ code: 1 })
})

test('every API refuses a revoked key soon, with the answer for an unknown key', async () => {
  const asked = await Promise.all(apis.map(api => ask(api, made.key)))
  expect(asked.map(({ status }) => status)).toEqual([200, 200])
  const revoke = () => keys('revoke', '--org', org, '--id', made.id, '--json')
  expect(jsonLines(await revoke())).toEqual([{ id: made.id, org_id: org, was_revoked: false }])
  const never = await Promise.all(apis.map(api => ask(api, `ck_${'0'.repeat(43)}`)))
  // A busy machine may need longer.
  await eventually(async () => expect(await Promise.all(apis.map(api => ask(api, made.key)))).toEqual(never), {
    within: 30_000,
  })
  const again = await revoke()
  expect(again).toMatchObject({ code: 0, said: expect.stringContaining('before') })
  expect(jsonLines(again)).toEqual([{ id: made.id, org_id: org, was_revoked: true }])
  expect(jsonLines(await keys('list', '--org', org, '--json'))).toContainEqual({ ...madeListed(), revoked: true })
})

test('a key can read a part of the API until its expiry; rotate makes the next one beside it', async () => {
  const expires_at = '2999-01-01T00:00:00Z'
  const limits = ['--permission', 'reps:read', '--permission', 'totals:read', '--expires-at', expires_at]
  const [first] = jsonLines(await keys('create', '--org', org, '--name', 'Board', ...limits, '--json'))
  const id = String(first?.id)
  expect(first).toMatchObject({ permissions: ['reps:read', 'totals:read'], expires_at })
  const refused = await keys('rotate', '--org', org, '--id', id)
  expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('say when the next key does') })

  const rotated = await keys('rotate', '--org', org, '--id', id, '--expires-at', '2999-06-01T00:00:00Z', '--json')
  const [next] = jsonLines(rotated)
  expect(next).toMatchObject({ name: 'Board', permissions: ['reps:read', 'totals:read'], replaces: id })
  expect(rotated.said).toContain(`npx commission keys revoke --org ${org} --id ${id}`)
  for (const api of apis) {
    for (const key of [first, next]) expect((await ask(api, String(key?.key))).status).toBe(200)
    const payouts = await fetchInTime(api, '/payouts', String(next?.key))
    expect([payouts.status, await payouts.text()]).toEqual([403, expect.stringContaining('payouts:read')])
  }
  const listed = (await keys('list', '--org', org)).out.toString()
  expect(listed).toMatch(new RegExp(`^${id} +may reps:read, totals:read until ${expires_at} +Board$`, 'm'))
  const past = await keys('create', '--org', org, '--name', 'x', '--expires-at', '2020-01-01T00:00:00Z')
  expect(past).toMatchObject({ code: 1, said: expect.stringContaining('--expires-at: expected an instant after') })
})

test('a key works from its networks only, on every API, and elsewhere is as an unknown one; rotate keeps them', async () => {
  const here = ['--network', '127.0.0.0/8', '--network', '::1/128']
  const [inside] = jsonLines(await keys('create', '--org', org, '--name', 'Office', ...here, '--json'))
  const networks = ['127.0.0.0/8', '::1/128']
  expect(inside).toMatchObject({ allowed_networks: networks, permissions: ['read'] })
  const away = ['--network', '203.0.113.0/24', '--name', 'Branch']
  const [outside] = jsonLines(await keys('rotate', '--org', org, '--id', String(inside?.id), ...away, '--json'))
  const [next] = jsonLines(await keys('rotate', '--org', org, '--id', String(inside?.id), '--json'))
  expect([outside?.allowed_networks, next?.allowed_networks]).toEqual([['203.0.113.0/24'], networks])
  for (const api of apis) {
    for (const key of [inside, next]) expect((await ask(api, String(key?.key))).status).toBe(200)
    const never = await ask(api, `ck_${'0'.repeat(43)}`)
    expect([await ask(api, String(outside?.key)), never.status]).toEqual([never, 401])
  }
  const listed = (await keys('list', '--org', org)).out.toString()
  expect(listed).toMatch(new RegExp(`^${inside?.id} +may read from 127.0.0.0/8, ::1/128 +Office$`, 'm'))
  expect(listed).toMatch(new RegExp(`^${outside?.id} +may read from 203.0.113.0/24 +Branch$`, 'm'))
})

test('an unknown key, a wrong topic or an empty projection is refused, and nothing is published', async () => {
  const before = await topics.admin.fetchTopicOffsets(topics.apiKeys)
  const settings = commandSettings(topics, prefix)
  const [unknown, elsewhere, nothing] = await Promise.all([
    keys('revoke', '--org', org, '--id', 'key_9'),
    runCommand(['keys', 'create', '--org', org, '--name', 'x'], {
      ...settings,
      KAFKA_API_KEYS_TOPIC: topics.events,
      KAFKA_EVENTS_TOPIC: topics.apiKeys,
    }),
    runCommand(['keys', 'create', '--org', org, '--name', 'x'], {
      ...settings,
      ELASTICSEARCH_INDEX_PREFIX: `${prefix}x`,
    }),
  ])
  expect(unknown).toMatchObject({ code: 1, said: expect.stringContaining('has no key key_9') })
  expect(elsewhere).toMatchObject({ code: 1, said: expect.stringContaining('not the one') })
  expect(nothing).toMatchObject({ code: 1, said: expect.stringContaining(`${prefix}x-control`) })
  for (const { out } of [unknown, elsewhere, nothing]) expect(out.toString()).toBe('')
  expect(await topics.admin.fetchTopicOffsets(topics.apiKeys)).toEqual(before)
})

test('a key that the projector has not read yet is not created twice: the command shows its text and what to do', async () => {
  await projector.stop()
  const ran = await keys('create', '--org', org, '--name', 'Late', '--wait', '1')
  expect([ran.code, ran.said]).toEqual([1, expect.stringContaining('do not make another one')])
  expect(ran.out.toString()).toMatch(/^ck_/)
})
