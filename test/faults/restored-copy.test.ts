/** Elasticsearch is restored from a snapshot. The API must serve none of it before it is read again. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, runCommand } from '../support/commands.ts'
import { keyCreated, keyRevoked, newId, newKeyText, repRecorded } from '../support/events.ts'
import { type OwnServices, startOwnServices } from '../support/own-services.ts'
import {
  type Api,
  expectRefused,
  projectorSettings,
  startApi,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { createPrefix, everythingProjected, indicesOf } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const file = fileScope()
let services: OwnServices
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'commission-snapshots-'))
  file.onTestFinished(() => rm(folder, { recursive: true, force: true }))
  services = await startOwnServices(file, { elasticsearch: { settings: { 'path.repo': folder } } })
})

const call = async (method: string, path: string, body?: object): Promise<void> => {
  const answer = await fetch(`${services.elasticsearch.address}${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  expect(answer.status, await answer.text()).toBe(200)
}

const statusWith = async ({ url }: Api, key: string, path = '/reps'): Promise<number> =>
  (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })).status

/** Takes a snapshot, then revokes a key and records a rep. */
const start = async (t: Scope) => {
  const org = newId('org')
  const [kept, revoked] = [newKeyText(), newKeyText()]
  const topics = await createTopics(t, { partitions: 1, kafka: services.kafka.address })
  const prefix = createPrefix(t, services.elasticsearch.address)
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish([
    keyCreated({ org_id: org, id: 'key_kept', text: kept }),
    keyCreated({ org_id: org, id: 'key_revoked', text: revoked }),
    repRecorded({ org_id: org, id: 'rep_1' }),
  ])
  await untilCaughtUp(projector)
  const api = await startApi(t, prefix)
  expect(await statusWith(api, revoked)).toBe(200)

  const repository = `/_snapshot/${prefix}`
  await call('PUT', repository, { type: 'fs', settings: { location: prefix } })
  const body = { indices: `${prefix}-*`, include_global_state: false }
  await call('PUT', `${repository}/copy?wait_for_completion=true`, body)

  await topics.publish([keyRevoked({ org_id: org, id: 'key_revoked' }), repRecorded({ org_id: org, id: 'rep_2' })])
  await untilCaughtUp(projector)
  await eventually(async () => expect(await statusWith(api, revoked)).toBe(401))
  const projected = await everythingProjected(prefix)
  const restore = () => call('POST', `${repository}/copy/_restore?wait_for_completion=true`, body)
  const adopt = () =>
    runCommand(['projection', 'adopt', '--json'], {
      ...commandSettings(topics, prefix),
      ELASTICSEARCH_URL: services.elasticsearch.address,
    })
  return { topics, prefix, projector, api, kept, revoked, projected, restore, adopt }
}

test.for(['deleted', 'closed'] as const)(
  'indices that were %s and restored accept no revoked key and serve no short list until they are read again',
  async (how, t) => {
    const { topics, prefix, projector, api, kept, revoked, projected, restore, adopt } = await start(t)
    await projector.stop()
    const names = (await indicesOf(prefix)).join()
    if (how === 'deleted') await call('DELETE', `/${names}`)
    else await call('POST', `/${names}/_close`)
    await restore()

    const started = await startApi(t, prefix, { ready: false })
    const refused = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
    const message = expectRefused(refused, 'index_replaced')
    // Until a projector has checked the indices, and for longer than any cache lasts.
    const until = Date.now() + 6_000
    while (Date.now() < until) {
      for (const one of [api, started])
        for (const key of [kept, revoked, newKeyText()]) expect(await statusWith(one, key)).toBe(503)
    }
    expect(await message).toContain('npm run projection -- adopt')
    expect(await (await fetch(`${started.adminUrl}/readyz`)).text()).toContain('indices_replaced')

    const adopted = await adopt()
    expect(adopted, adopted.said).toMatchObject({ code: 0 })
    expect(JSON.parse(adopted.out.toString())).toEqual({ adopted: ['api-keys', 'g1'] })
    for (const one of [api, started]) for (const key of [kept, revoked]) expect(await statusWith(one, key)).toBe(503)

    const next = await startProjector(t, { topics, prefix })
    await untilCaughtUp(next)
    for (const one of [api, started]) {
      await eventually(async () => expect(await statusWith(one, kept, '/reps/rep_2')).toBe(200))
      expect(await statusWith(one, revoked)).toBe(401)
    }
    expect(await everythingProjected(prefix)).toEqual(projected)
    expect(JSON.parse((await adopt()).out.toString())).toEqual({ adopted: [] })
    expect(next.exit()).toBeUndefined()
  },
)

test('a projector stops when its indices are restored while it runs', async t => {
  const { prefix, projector, restore, api, revoked } = await start(t)
  await call('DELETE', `/${prefix}-g1-parked,${prefix}-g1-statements`)
  await restore().catch(() => undefined)
  const repository = `/_snapshot/${prefix}/copy/_restore?wait_for_completion=true`
  await call('POST', repository, { indices: `${prefix}-g1-parked,${prefix}-g1-statements` })
  await expectRefused(projector, 'index_replaced')
  await eventually(async () => expect(await statusWith(api, revoked)).toBe(401))
})
