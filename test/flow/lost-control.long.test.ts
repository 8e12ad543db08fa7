/** The control index is lost after the first generation was dropped. Nothing is created again unnoticed. */
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, type Ran, runCommand } from '../support/commands.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import {
  type Api,
  expectRefused,
  type Projector,
  projectorSettings,
  startApi,
  startProcess,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { call, indexNamed, indicesOf } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
const text = newKeyText()
let topics: Topics
let prefix: string
let projector: Projector
let running: Api

beforeAll(async () => {
  const records = [keyCreated({ org_id: org, text }), repRecorded({ org_id: org, id: 'rep_1' })]
  ;({ topics, prefix, projector } = await startProjection(file, records, { partitions: 1 }))
  running = await startApi(file, prefix)
})

const projection = async (...args: string[]): Promise<Ran> => {
  const ran = await runCommand(['projection', ...args], { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
  expect(ran, ran.said).toMatchObject({ code: 0 })
  return ran
}
const reps = (api: Api): Promise<Response> => fetchInTime(api, '/reps', text)

test('a projector that finds no control index beside a later generation stops, and creates nothing', async t => {
  await projection('rebuild')
  await projection('verify', 'g1', 'g2')
  await projection('swap', 'g2')
  await eventually(async () => expect((await projector.ask('/readyz')).status).toBe(200))
  await projection('drop', 'g1')
  expect((await reps(running)).status).toBe(200)
  await projector.stop()

  const control = indexNamed(prefix, 'control')
  await call('DELETE', `/${control}`)
  const left = await indicesOf(prefix)
  for (let start = 0; start < 2; start++) {
    const refused = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
    const message = await expectRefused(refused, 'index_missing')
    expect(message).toContain(
      `${control}, but there are ${prefix}-api-keys, ${prefix}-api-keys-parked, ${prefix}-g2-chains`,
    )
    expect(message).toContain(`restore ${control} from a snapshot`)
    expect(await indicesOf(prefix)).toEqual(left)
  }
  const started = await startApi(t, prefix, { ready: false })
  for (const api of [running, started]) {
    expect((await reps(api)).status).toBe(503)
    expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(503)
  }
})

test('an alias in place of the control index is refused', async t => {
  const control = indexNamed(prefix, 'control')
  const other = `${prefix}-renamed`
  expect((await call('PUT', `/${other}`, { aliases: { [control]: {} } })).status).toBe(200)
  t.onTestFinished(async () => void (await call('DELETE', `/${other}`)))
  const refused = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
  expect(await expectRefused(refused, 'index_missing')).toContain(control)
})
