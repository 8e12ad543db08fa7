/** A spare generation is damaged. The live one continues, also after each start, and the damage is reported. */
import { beforeAll, expect, test } from 'vitest'
import { commandSettings, type Ran, runCommand } from '../support/commands.ts'
import { keyCreated, newId, newKeyText, repRecorded } from '../support/events.ts'
import {
  type Api,
  expectRefused,
  type Projector,
  startApi,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { call, deleteStored, indexNamed, overwrite, store, storedById } from '../support/stored.ts'
import type { Topics } from '../support/topics.ts'

const file = fileScope()
const org = newId('org')
const text = newKeyText()
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
let published = 0

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(file, [keyCreated({ org_id: org, text })], { partitions: 1 }))
  await publish()
  await untilCaughtUp(projector)
  api = await startApi(file, prefix)
  await projection('rebuild')
  await projection('verify', 'g1', 'g2')
  await eventually(async () => expect((await projector.ask('/status')).text).toContain('"g2"'))
})

const projection = async (...args: string[]): Promise<Ran> => {
  const ran = await runCommand(['projection', ...args], { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
  expect(ran, ran.said).toMatchObject({ code: 0 })
  return ran
}
const publish = async (): Promise<void> => {
  await topics.publish([repRecorded({ org_id: org, id: `rep_${++published}` })])
}
/** Publishes a new record and waits until readers see it. */
const expectFresh = async (): Promise<void> => {
  await publish()
  await eventually(async () => {
    const answer = await fetch(`${api.url}/reps/rep_${published}`, { headers: { authorization: `Bearer ${text}` } })
    expect(answer.status, projector.log()).toBe(200)
  })
}
const expectFailed = async (code: string): Promise<void> => {
  await eventually(async () => {
    const ready = await projector.ask('/readyz')
    expect(JSON.parse(ready.text), projector.log()).toEqual({ ready: true, reasons: {}, failed: { g2: code } })
    expect(ready.status).toBe(200)
    expect(JSON.parse((await projector.ask('/status')).text)).toMatchObject({ failed: { g2: code } })
    const { text: metrics } = await projector.ask('/metrics')
    expect(metrics).toContain(`commission_generation_failed{generation="g2",code="${code}"} 1`)
  })
  const line = { level: 50, generation: 'g2', code }
  await eventually(() => expect(projector.lines()).toContainEqual(expect.objectContaining(line)))
}
const restart = async (scope: Scope): Promise<void> => {
  await projector.stop()
  projector = await startProjector(scope, { topics, prefix })
}

test('a spare generation with wrong documents stops alone, is retried, and continues once it is repaired', async () => {
  // The next version of the document, as another program would write it.
  await projector.stop()
  const next = published + 1
  const id = `${org}:rep_${next}`
  const other = { org_id: org, body_bytes: 2, body: { versions: [{ seq: published, hash: 'other' }] } }
  const offset = published
  expect((await overwrite(`${prefix}-g2-reps`, { id, version: offset, source: other })).status).toBe(201)
  projector = await startProjector(file, { topics, prefix })
  await expectFresh()
  await expectFailed('content_differs')
  await expectFresh()

  await deleteStored(`${prefix}-g2-reps`, id)
  const isKeptUp = async (): Promise<void> => {
    const { text } = await projector.ask('/status')
    expect(text).not.toContain('failed')
    expect(JSON.parse(text).partitions.filter(({ generation }: { generation: string }) => generation === 'g2')).toEqual(
      [expect.objectContaining({ lag: 0 })],
    )
  }
  await eventually(isKeptUp)
})

test('a spare generation that lost an index stops alone, at every start', async () => {
  await call('DELETE', `/${prefix}-g2-payouts`)
  await restart(file)
  await expectFailed('index_missing')
  await expectFresh()
  expect(projector.exit()).toBeUndefined()
})

test('a spare generation that lost its positions or its identity stops alone', async t => {
  const control = indexNamed(prefix, 'control')
  for (const id of ['position:g2:0', 'generation:g2']) {
    const document = await storedById(control, id)
    await call('DELETE', `/${control}/_doc/${encodeURIComponent(id)}`)
    t.onTestFinished(() => store(control, id, document ?? {}))
    await restart(file)
    await expectFailed('index_missing')
    await expectFresh()
  }
})

test('a failed generation that is made live stops the projector', async () => {
  const control = indexNamed(prefix, 'control')
  const live = (await storedById(control, 'live')) as { body: object }
  await store(control, 'live', { ...live, body: { ...live.body, generation: 'g2', previous: 'g1', floor: [0] } })
  expect(await expectRefused(projector, 'index_missing')).toContain('g2-payouts')
})
