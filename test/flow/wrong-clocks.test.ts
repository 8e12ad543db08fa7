/** A clock that jumps, and a published time that lies in the future. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keyCreated, newId, repRecorded } from '../support/events.ts'
import { fetchInTime } from '../support/in-time.ts'
import { type Projector, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix, readPosition, storePosition } from '../support/stored.ts'
import { createTopics } from '../support/topics.ts'

const HOUR = 3_600_000

const setUp = async (t: Scope) => {
  const topics = await createTopics(t, { partitions: 1 })
  const prefix = createPrefix(t)
  const org = newId('org')
  const text = `key-of-${org}`
  await topics.publish([repRecorded({ org_id: org }), keyCreated({ org_id: org, text })])
  return { topics, prefix, text, timeNow: async () => (await readPosition(prefix, 'g1', 0)).time }
}

const clocksOf = async (projector: Projector) => JSON.parse((await projector.ask('/status')).text).clocks

test('a clock that jumps ahead and back never makes a published time lie in the future, and the time keeps advancing', async t => {
  const { topics, prefix, timeNow } = await setUp(t)
  const folder = await mkdtemp(join(tmpdir(), 'wrong-clock-'))
  t.onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'milliseconds')
  /** The process reads the file at any time, and an empty one is the right clock. */
  const jump = async (milliseconds: number) => {
    await writeFile(`${file}.next`, String(milliseconds))
    await rename(`${file}.next`, file)
  }
  await jump(0)
  const settings = {
    WRONG_CLOCK_FILE: file,
    NODE_OPTIONS: `--import=${join(import.meta.dirname, '..', 'support', 'wrong-clock.ts')}`,
  }
  const projector = await startProjector(t, { topics, prefix, settings })
  await untilCaughtUp(projector)
  const moves = async () => {
    const before = await timeNow()
    await eventually(async () => expect(await timeNow()).toBeGreaterThan(before))
    expect(await timeNow()).toBeLessThanOrEqual(Date.now())
  }
  await moves()

  await jump(HOUR)
  await moves()
  await moves()
  expect(await clocksOf(projector)).toMatchObject({ agree: false })
  const { text: metrics } = await projector.ask('/metrics')
  expect(metrics).toMatch(/^commission_clock_ahead_seconds\{clock="elasticsearch"\} -3[56]\d\d/m)
  const said = (code: string) => projector.lines().filter(line => line.code === code).length
  const expectSaid = (disagree: number, agree: number) =>
    eventually(() => expect([said('clocks_disagree'), said('clocks_agree')]).toEqual([disagree, agree]))
  await expectSaid(1, 0)

  await jump(-HOUR)
  await eventually(async () => expect((await clocksOf(projector)).elasticsearch_ahead_ms).toBeGreaterThan(HOUR / 2))
  const publish = async () => {
    await topics.publish([repRecorded({ org_id: newId('org') })])
    await untilCaughtUp(projector)
  }
  // Behind this record, no write of an earlier time is under way.
  await publish()
  const stood = await timeNow()
  // The time stands still. Everything else continues.
  await publish()
  expect(await timeNow()).toBe(stood)

  await jump(0)
  await moves()
  await expectSaid(1, 1)
  expect((await readPosition(prefix, 'g1', 0)).taken_back).toBeUndefined()
})

test('a published time in the future is taken back without a rebuild, and an API that has shown it follows', async t => {
  const { topics, prefix, text } = await setUp(t)
  const first = await startProjector(t, { topics, prefix })
  await untilCaughtUp(first)
  await first.stop()
  const ahead = Date.now() + HOUR
  await storePosition(prefix, 'g1', 0, { ...(await readPosition(prefix, 'g1', 0)), time: ahead })

  const api = await startApi(t, prefix)
  const ask = (path: string) => fetchInTime(api, path, text)
  const timeOf = async () => Date.parse((await ask('/reps')).headers.get('projection-time') ?? '')
  expect(await timeOf()).toBe(ahead)
  const future = await ask(`/reps?as_of=${new Date(ahead - HOUR / 2).toISOString()}`)
  expect([future.status, await future.json()]).toMatchObject([400, { error: { code: 'invalid_request' } }])

  await startProjector(t, { topics, prefix })
  await eventually(async () => expect(await timeOf()).toBeLessThanOrEqual(Date.now()))
  expect((await readPosition(prefix, 'g1', 0)).taken_back).toBe(1)
  const before = await timeOf()
  await eventually(async () => expect(await timeOf()).toBeGreaterThan(before))
  expect((await ask(`/reps?as_of=${new Date(before - 60_000).toISOString()}`)).status).toBe(200)
})
