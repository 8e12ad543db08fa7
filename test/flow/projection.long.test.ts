/** `commission projection`, as an operator runs it, beside a projector and an API. The tests depend on their order. */
import { beforeAll, expect, test } from 'vitest'
import { checkpointNow } from '../support/checkpoints.ts'
import { createClient } from '../support/client.ts'
import { commandSettings, expectFoundEqual, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import { keyCreated, newKeyText, type Outgoing } from '../support/events.ts'
import { createModel, type Model } from '../support/model.ts'
import {
  type Api,
  type Projector,
  startApi,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../support/processes.ts'
import { startProjection } from '../support/projection.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, call, overwrite } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import type { Topics } from '../support/topics.ts'
import { expectServed, expectWalkedAsModelled, startWalkers } from '../support/walkers.ts'

const PARTITIONS = 3
const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const random = createRandom(seed)
const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
const keys = new Map(organizations.map(org => [org, newKeyText()]))
const model: Model = createModel(PARTITIONS)
const stream = createStream(random, organizations, PARTITIONS, { reps: 4, periods: 4 })
let topics: Topics
let prefix: string
let projector: Projector
let api: Api
/** An API process that gets requests at times, and none while the generations change. */
let idle: Api

const publish = async (records: readonly Outgoing[]): Promise<void> => {
  for (const record of await topics.publish(records)) model.take(record.stream, record.partition, record)
}

beforeAll(async () => {
  ;({ topics, prefix, projector } = await startProjection(file, [], { partitions: PARTITIONS }))
  await publish([...keys].map(([org_id, text]) => keyCreated({ org_id, id: 'key_walks', text })))
  await publish(stream.take(600))
  await untilCaughtUp(projector)
  api = await startApi(file, prefix)
  idle = await startApi(file, prefix)
})

/** The answers of an API process to a request of every route for records, all sent at once. */
const answersOf = async (of: Api): Promise<Record<string, { readonly status: number; readonly text: string }>> => {
  const [org = ''] = organizations
  const { everyPayout, reps, periods, payroll_files } = model.view(org)
  const [payout, rep, period, payment] = [everyPayout, reps, periods, payroll_files].map(records => records[0]?.id)
  const paths = [
    `/payouts/${payout}`,
    `/statements/${payout}`,
    `/payouts/${payout}/history`,
    `/reps/${rep}`,
    `/periods/${period}`,
    `/payroll_files/${payment}`,
    `/payouts?starting_after=${payout}`,
    `/changes?starting_after=${payout}`,
    `/changes?starting_after=${payout}&wait=1`,
    `/totals?as_of=${payout}`,
    `/reps?as_of=${payout}`,
    ...['/reps', '/periods', '/payouts', '/payroll_files', '/changes', '/totals'],
  ]
  const client = createClient([of], keys.get(org) ?? '')
  const answers = paths.map(async path => {
    const { status, text } = await client.askInTime(path)
    return [path, { status, text }] as const
  })
  return Object.fromEntries(await Promise.all(answers))
}

const settings = (): Record<string, string> => ({ ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const projection = (...args: string[]): Promise<Ran> => runCommand(['projection', ...args], settings())
const roles = async (): Promise<Record<string, unknown>> =>
  Object.fromEntries(jsonLines(await projection('list', '--json')).map(({ generation, roles }) => [generation, roles]))

const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains', 'parked']
const everything = async (generation: string) =>
  Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await allStored(`${prefix}-${generation}-${kind}`)] as const)),
  )

test('at first there is one generation; its status shows the position of each partition and the parked records', async () => {
  expect(await roles()).toEqual({ g1: ['live'] })
  const [status] = jsonLines(await projection('status', '--json'))
  const partitions = status?.partitions as { position: number; end: number; lag: number; included_up_to: string }[]
  expect(partitions).toHaveLength(PARTITIONS)
  for (const { position, end, lag, included_up_to } of partitions) {
    expect([lag, position]).toEqual([0, end])
    expect(Date.parse(included_up_to)).toBeGreaterThan(Date.now() - 60_000)
  }
  const parked = Object.values(status?.parked as Record<string, number>).reduce((sum, count) => sum + count, 0)
  expect(parked).toBe((await allStored(`${prefix}-g1-parked`)).length)
  const [org = ''] = organizations
  const [ofOne] = jsonLines(await projection('status', '--org', org, '--json'))
  expect(ofOne?.partitions).toHaveLength(1)
  expect(ofOne?.records).toMatchObject({ payouts: model.view(org).everyPayout.length })
  expect((await projection('status', '--generation', 'g9')).said).toContain('there is no generation g9')
})

test('a rebuild that was killed continues where it stopped, and ends with the same documents', async () => {
  const slow = startProcess(file, 'tools/main.ts', settings(), {
    parameters: ['projection', 'rebuild', '--max-rate', '10'],
  })
  const positions = async () =>
    (
      await Promise.all([0, 1, 2].map(partition => call('GET', `/${prefix}-control/_doc/position:g2:${partition}`)))
    ).map(({ text }) => (JSON.parse(text) as { _source?: { body: { position: number } } })._source?.body.position ?? 0)
  await eventually(async () => expect(Math.max(...(await positions())), slow.log()).toBeGreaterThan(20))
  await slow.kill()
  expect(await roles()).toEqual({ g1: ['live'], g2: ['building'] })
  expect((await projection('swap', 'g2')).said).toContain('still being made')

  await publish(stream.take(100))
  const ran = await projection('rebuild', '--json')
  expect(ran, ran.said).toMatchObject({ code: 0, said: expect.stringContaining('continuing with g2') })
  expect(jsonLines(ran)).toEqual([{ generation: 'g2', live: 'g1' }])
  await eventually(() =>
    expect(projector.lines()).toContainEqual(
      expect.objectContaining({ generation: 'g2', msg: 'started to project the generation' }),
    ),
  )
  await publish(stream.take(100))
  await untilCaughtUp(projector)
  expect(await roles()).toEqual({ g1: ['live'], g2: ['kept up'] })
  expect(await everything('g2')).toEqual(await everything('g1'))
})

test('a generation is not made live until it was found equal; verify finds a wrong document by id and field', async () => {
  expect(await projection('swap', 'g2')).toMatchObject({ code: 1, said: expect.stringContaining('verify g1 g2') })
  const [payout] = await allStored(`${prefix}-g2-payouts`)
  const { id = '', version = 0, source = {} } = payout ?? {}
  const wrong = { ...source, body: { ...(source.body as object), net_amount: '0.01' } }
  const put = (document: Record<string, unknown>) =>
    overwrite(`${prefix}-g2-payouts`, { id, version, source: document })
  await put(wrong)
  const found = await projection('verify', 'g1', 'g2')
  expect(found.code).toBe(1)
  expect(found.out.toString()).toContain(`payouts ${id}: body.net_amount is`)
  expect(await projection('swap', 'g2')).toMatchObject({ code: 1 })
  await put(source)
  const equal = await projection('verify', 'g1', 'g2', '--json')
  expect(equal, equal.said).toMatchObject({ code: 0, said: expect.stringContaining('equal: ') })
  expectFoundEqual(jsonLines(equal), organizations)
})

test('an API process answers every route, before it gets no more requests', async () => {
  for (const [path, { status }] of Object.entries(await answersOf(idle))) expect([path, status]).toEqual([path, 200])
})

test('walkers do not notice a swap and a rollback during recalculations', async t => {
  const walkers = startWalkers({ apis: () => [api], keys, random: createRandom(seed + 1), walkers: 6, every: 5 })
  let publishing = true
  // Ten records for ten pages: a walk ends only if it reads faster than its list grows.
  const published = (async () => {
    while (publishing) {
      const { pages } = walkers.soFar()
      await publish(stream.take(10))
      await eventually(() => expect(publishing && walkers.soFar().pages < pages + 10).toBe(false))
    }
  })()
  t.onTestFinished(() => {
    publishing = false
    return published
  })
  const walksSince = async (count: number) => {
    const from = walkers.soFar().walks.length
    await eventually(() => expect(walkers.soFar().walks.length).toBeGreaterThan(from + count))
  }
  await walksSince(3)
  for (const [command, live] of [
    ['swap g2', 'g2'],
    ['rollback', 'g1'],
    ['swap g2 --force again', 'g2'],
  ] as const) {
    const ran = await projection(...command.split(' '))
    expect(ran, ran.said).toMatchObject({ code: 0 })
    expect((await roles())[live]).toContain('live')
    await walksSince(3)
  }
  publishing = false
  await published
  await untilCaughtUp(projector)
  const walked = await walkers.stop()
  expectWalkedAsModelled(walked, model)
  await expectServed(walked, api, idle)
  expect(await everything('g2')).toEqual(await everything('g1'))
})

test('a checkpoint is the same in both generations: a rebuild, a swap and a rollback change no digest', async t => {
  const checkpoints = () => Promise.all([...keys.values()].map(key => checkpointNow(t, prefix, key)))
  const before = await checkpoints()
  expect(before.map(lines => lines.find(line => line.startsWith('sequence ')))).not.toContain('sequence 0')
  for (const [command, live] of [
    ['rollback', 'g1'],
    ['swap g2 --force again', 'g2'],
  ] as const) {
    const ran = await projection(...command.split(' '))
    expect(ran, ran.said).toMatchObject({ code: 0 })
    expect((await roles())[live]).toContain('live')
    expect(await checkpoints()).toEqual(before)
  }
})

test('a live generation cannot be dropped; a dropped one is gone, and everything keeps running', async () => {
  expect(await projection('drop', 'g2')).toMatchObject({ code: 1, said: expect.stringContaining('g2 is live') })
  const ran = await projection('drop', 'g1')
  expect(ran, ran.said).toMatchObject({ code: 0 })
  expect(await roles()).toEqual({ g2: ['live'] })
  for (const kind of kinds) expect((await call('HEAD', `/${prefix}-g1-${kind}`)).status).toBe(404)
  // The idle process still knows g1 only.
  const answers = await answersOf(idle)
  for (const [path, { status }] of Object.entries(answers)) expect([path, status]).toEqual([path, 200])
  expect(answers).toEqual(await answersOf(api))
  await publish(stream.take(50))
  await untilCaughtUp(projector)
  expect(projector.exit()).toBeUndefined()
  expect((await projection('rollback')).said).toContain('nothing to go back to')
  const next = await startProjector(file, { topics, prefix })
  await untilCaughtUp(next)
})
