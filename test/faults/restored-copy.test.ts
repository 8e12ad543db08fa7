/** Elasticsearch is restored from a snapshot. The API must serve none of it before it is read again. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { indexOf, type PastPositionsDocument } from '../../schemas/stored/documents.ts'
import { generationIndices } from '../../schemas/stored/mappings.ts'
import { commandSettings, jsonLines, runCommand } from '../support/commands.ts'
import { dataOf, keyCreated, keyRevoked, newId, newKeyText, repRecorded } from '../support/events.ts'
import { rebuildUnder } from '../support/other-rules-processes.ts'
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
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { everythingProjected, indicesOf } from '../support/stored.ts'

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

/** Takes a snapshot, then revokes a key and records a rep. @param before what happens before the snapshot */
const start = async (
  t: Scope,
  before: (prefix: string, command: (...args: string[]) => ReturnType<typeof runCommand>) => Promise<void> = async () =>
    undefined,
) => {
  const org = newId('org')
  const [kept, revoked] = [newKeyText(), newKeyText()]
  const { topics, prefix, projector } = await startProjection(
    t,
    [
      keyCreated({ org_id: org, id: 'key_kept', text: kept }),
      keyCreated({ org_id: org, id: 'key_revoked', text: revoked }),
      repRecorded({ org_id: org, id: 'rep_1' }),
    ],
    { partitions: 1, kafka: services.kafka.address, elasticsearch: services.elasticsearch.address },
  )
  const api = await startApi(t, prefix)
  expect(await statusWith(api, revoked)).toBe(200)

  const command = (...args: string[]) =>
    runCommand(args, { ...commandSettings(topics, prefix), ELASTICSEARCH_URL: services.elasticsearch.address })
  await before(prefix, command)
  const repository = `/_snapshot/${prefix}`
  await call('PUT', repository, { type: 'fs', settings: { location: prefix } })
  const body = { indices: `${prefix}-*`, include_global_state: false }
  await call('PUT', `${repository}/copy?wait_for_completion=true`, body)

  await topics.publish([keyRevoked({ org_id: org, id: 'key_revoked' }), repRecorded({ org_id: org, id: 'rep_2' })])
  await untilCaughtUp(projector)
  await eventually(async () => expect(await statusWith(api, revoked)).toBe(401))
  const projected = await everythingProjected(prefix)
  const restore = () => call('POST', `${repository}/copy/_restore?wait_for_completion=true`, body)
  const projection = (...args: string[]) => command('projection', ...args, '--json')
  const adopt = () => projection('adopt')
  const snapshotStart = async (): Promise<string> =>
    (await ask(`${repository}/copy`)).snapshots[0]?.start_time ?? expect.fail('no start_time')
  const its = { org, topics, prefix, projector, api, kept, revoked, projected }
  return { ...its, restore, adopt, command, projection, snapshotStart }
}

const ask = async (path: string) =>
  (await fetch(`${services.elasticsearch.address}${path}`)).json() as Promise<{
    readonly snapshots: readonly { readonly start_time: string; readonly state: string }[]
    readonly hits: { readonly hits: readonly Past[] }
  }>
type Past = { readonly _id: string; readonly _source: PastPositionsDocument }

/** Waits until positions are kept that no record is after, and dates all back, as if the snapshot began later. */
const agePastPositions = async (prefix: string): Promise<void> => {
  const past = await eventually(async () => {
    await call('POST', `/${prefix}-control/_refresh`)
    const { hits } = await ask(`/${prefix}-control/_search?q=kind:past`)
    expect(hits.hits.map(one => one._source.body.partitions[0]?.position)).toContain(1)
    return hits.hits
  })
  for (const { _id, _source } of past) {
    const { kind, body } = _source
    const aged = { kind, body: { ...body, time: body.time - 120_000 } }
    await call('PUT', `/${prefix}-control/_doc/${encodeURIComponent(_id)}`, aged)
  }
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
    expect(await message).toContain('npx commission projection adopt')
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

test('restored indices go back to positions from before the snapshot, and become the same as before', async t => {
  const its = await start(t, agePastPositions)
  const { topics, prefix, projector, api, kept, revoked, projected, restore, projection, snapshotStart } = its
  const answered = async () => {
    const answer = await fetch(`${api.url}/reps`, { headers: { authorization: `Bearer ${kept}` } })
    return { status: answer.status, etag: answer.headers.get('etag'), body: await answer.text() }
  }
  const before = await answered()
  expect(before.status).toBe(200)
  await projector.stop()
  const began = await snapshotStart()
  await call('DELETE', `/${(await indicesOf(prefix)).join()}`)
  await restore()
  expect(await statusWith(api, kept)).toBe(503)

  const tooEarly = await projection('rewind', '--snapshot-start', '2020-01-01T00:00:00Z')
  expect(tooEarly).toMatchObject({ code: 1 })
  expect(tooEarly.said).toContain('no positions of g1 are kept')
  const rewound = await projection('rewind', '--snapshot-start', began)
  expect(rewound, rewound.said).toMatchObject({ code: 0 })
  expect(JSON.parse(rewound.out.toString())).toEqual({
    rewound: [
      { generation: 'api-keys', positions: null },
      { generation: 'g1', positions: [1] },
    ],
  })
  expect(await statusWith(api, kept)).toBe(503)
  // The API may remember for 2 s that this key is refused.
  await eventually(async () => expect(await statusWith(api, revoked)).toBe(503))

  const next = await startProjector(t, { topics, prefix })
  await untilCaughtUp(next)
  await eventually(async () => expect(await answered()).toEqual(before))
  expect(await statusWith(api, revoked)).toBe(401)
  expect(await everythingProjected(prefix)).toEqual(projected)
  expect(next.exit()).toBeUndefined()
})

test('rewind refuses a shard that a partial snapshot lacks: Elasticsearch restores it empty, and adopt reads all again', async t => {
  const its = await start(t, agePastPositions)
  const { topics, prefix, projector, api, kept, projected, projection } = its
  await projector.stop()
  // A shard that no node has is not in the snapshot. Elasticsearch never gives up one that has documents.
  const index = indexOf(prefix, 'g1', 'payouts')
  const made = generationIndices(prefix, { generation: 'g1', layout: 3 }, { shards: 1 })[index] ?? expect.fail(index)
  await call('DELETE', `/${index}`)
  const settings = { index: { ...made.settings, 'routing.allocation.require._name': 'nowhere' } }
  await call('PUT', `/${index}?wait_for_active_shards=0`, { mappings: made.mappings, settings })
  const body = { indices: `${prefix}-*`, include_global_state: false, partial: true }
  await call('PUT', `/_snapshot/${prefix}/part?wait_for_completion=true`, body)
  const [snapshot] = (await ask(`/_snapshot/${prefix}/part`)).snapshots
  expect(snapshot).toMatchObject({ state: 'PARTIAL' })
  await call('DELETE', `/${(await indicesOf(prefix)).join()}`)
  const ignored = ['index.routing.allocation.require._name']
  const restored = { ...body, ignore_index_settings: ignored }
  await call('POST', `/_snapshot/${prefix}/part/_restore?wait_for_completion=true`, restored)

  const refused = await projection('rewind', '--snapshot-start', snapshot?.start_time ?? '')
  expect(refused).toMatchObject({ code: 1, said: expect.stringContaining(`the shard ${index}/0 began empty`) })
  expect(await projection('adopt')).toMatchObject({ code: 0 })
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await eventually(async () => expect(await statusWith(api, kept, '/reps/rep_2')).toBe(200))
  expect(await everythingProjected(prefix)).toEqual(projected)
})

test('a projector stops when its indices are restored while it runs', async t => {
  const { prefix, projector, restore, api, revoked } = await start(t)
  await call('DELETE', `/${prefix}-g1-parked,${prefix}-g1-statements`)
  await restore().catch(() => undefined)
  const repository = `/_snapshot/${prefix}/copy/_restore?wait_for_completion=true`
  await call('POST', repository, { indices: `${prefix}-g1-parked,${prefix}-g1-statements` })
  await expectRefused(projector, 'index_replaced')
  await eventually(async () => expect(await statusWith(api, revoked)).toBe(401))
})

test('a generation under other rules trusts no restored list of what the live one parked', async t => {
  const { topics, prefix, projector, projection } = await start(t)
  const next = { version: 2 }
  const made = await rebuildUnder(t, { topics, prefix }, next)
  expect(made, made.log).toMatchObject({ code: 0 })
  await projector.stop()
  const parked = `${prefix}-g1-parked`
  await call('DELETE', `/${parked}`)
  await call('POST', `/_snapshot/${prefix}/copy/_restore?wait_for_completion=true`, { indices: parked })

  const swapped = await projection('swap', 'g2', '--force', 'a test')
  expect(swapped, swapped.said).toMatchObject({ code: 1, said: expect.stringContaining('restored from a snapshot') })
  const rebuilt = await rebuildUnder(t, { topics, prefix }, next)
  expect(rebuilt.log).toContain('restored from a snapshot')
  const listed = await projection('list')
  expect(jsonLines(listed).map(({ generation, roles }) => [generation, roles])).toEqual([
    ['g1', ['live']],
    ['g2', ['kept up', 'follows g1']],
  ])
})

test('commands answer nothing from restored indices until all is read again, and show no revoked key as valid', async t => {
  const { org, topics, prefix, projector, restore, adopt, command } = await start(t, async (_, command) => {
    const rebuilt = await command('projection', 'rebuild')
    expect(rebuilt, rebuilt.said).toMatchObject({ code: 0 })
  })
  await projector.stop()
  const wanted = join(folder, 'wanted.ndjson')
  const data = dataOf(repRecorded({ org_id: org, id: 'rep_3' }))
  await writeFile(wanted, JSON.stringify({ type: 'commission.rep.recorded.v1', data }))
  await call('DELETE', `/${(await indicesOf(prefix)).join()}`)
  await restore()
  const list = ['keys', 'list', '--org', org, '--json']
  const rotate = ['keys', 'rotate', '--org', org, '--id', 'key_revoked']
  const asked = [
    list,
    rotate,
    ['keys', 'revoke', '--org', org, '--id', 'key_later'],
    ['parked', 'count'],
    ['subjects', 'list', org],
    ['subjects', 'report', org, 'rep_1'],
    ['projection', 'explain', 'payout_1', '--org', org],
    ['projection', 'explain', 'deal_1', '--org', org],
    ['projection', 'status'],
    ['projection', 'verify', 'g1', 'g2'],
    ['projection', 'swap', 'g2', '--force', 'a test'],
    ['validate', wanted, '--live'],
  ]
  for (const args of asked) {
    const ran = await command(...args)
    expect(ran, args.join(' ')).toMatchObject({ code: 1, said: expect.stringContaining('restored from a snapshot') })
    expect(ran.out.toString()).toBe('')
  }

  const adopted = await adopt()
  expect(adopted, adopted.said).toMatchObject({ code: 0 })
  const answering = asked.filter(([, name = '']) => !['status', 'swap'].includes(name))
  for (const args of answering) {
    const ran = await command(...args)
    const risk = args[0] === 'keys' ? 'a revoked key could look valid' : 'records could be missing'
    const refusal = expect.stringMatching(`reads again up to [1-9][0-9]*: ${risk}`)
    expect(ran, args.join(' ')).toMatchObject({ code: 1, said: refusal })
    expect(ran.out.toString()).toBe('')
  }
  const next = await startProjector(t, { topics, prefix })
  await untilCaughtUp(next)
  const listed = await eventually(async () => {
    const ran = await command(...list)
    expect(ran, ran.said).toMatchObject({ code: 0 })
    return jsonLines(ran)
  })
  expect(listed.map(({ id, revoked }) => [id, revoked])).toEqual([
    ['key_kept', false],
    ['key_revoked', true],
  ])
})
