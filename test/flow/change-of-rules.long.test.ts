/**
 * A change of the rules: projectors of another version make a generation under new rules beside the live one, and a
 * swap makes it live. Parked records stay parked, whatever the new rules say. The tests depend on their order.
 */
import { beforeAll, expect, test } from 'vitest'
import { positionId } from '../../schemas/stored/documents.ts'
import { createClient, type List } from '../support/client.ts'
import { commandSettings, jsonLines, type Ran, runCommand } from '../support/commands.ts'
import {
  keyCreated,
  newKeyText,
  type Outgoing,
  payoutCalculated,
  payrollRecorded,
  periodRecorded,
  repRecorded,
} from '../support/events.ts'
import { type Rules, rebuildUnder, startProjectorOf } from '../support/other-rules-processes.ts'
import { type Api, type Projector, startApi, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope } from '../support/scope.ts'
import { allStored, createPrefix, storedById } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics, type Published, type Topics } from '../support/topics.ts'

const PARTITIONS = 3
/** The current rules and the next ones. Each refuses some payouts that the other accepts. */
const OLD: Rules = { version: 1, parks: '"id":"payout_old' }
const NEW: Rules = { version: 2, parks: '"id":"payout_new' }
const file = fileScope()
const seed = seedOfRun()
console.log(`seed ${seed}`)
const random = createRandom(seed)
const [org = '', ...organizations] = organizationsIn(random, [0, 0, 1, 2], PARTITIONS)
const text = newKeyText()
const stream = createStream(random, organizations, PARTITIONS, { reps: 2, periods: 2 })
let topics: Topics
let prefix: string
let old: Projector
let next: Projector
let api: Api

beforeAll(async () => {
  topics = await createTopics(file, { partitions: PARTITIONS })
  prefix = createPrefix(file)
  old = await startProjectorOf(file, { topics, prefix }, OLD)
  const periods = [1, 2, 3, 4].map(number => periodRecorded({ org_id: org, id: `period_${number}` }))
  await topics.publish([keyCreated({ org_id: org, text }), repRecorded({ org_id: org }), ...periods])
  await topics.publish(stream.take(300))
  await untilCaughtUp(old)
  api = await startApi(file, prefix)
})

const projection = (...args: string[]): Promise<Ran> =>
  runCommand(['projection', ...args], { ...commandSettings(topics, prefix), KAFKA_GROUP_ID: prefix })
const roles = async (): Promise<Record<string, unknown>> =>
  Object.fromEntries(jsonLines(await projection('list', '--json')).map(({ generation, roles }) => [generation, roles]))

const kinds = ['reps', 'periods', 'payouts', 'statements', 'payroll_files', 'chains'] as const
const stored = async (generation: string) =>
  Object.fromEntries(
    await Promise.all(kinds.map(async kind => [kind, await allStored(`${prefix}-${generation}-${kind}`)] as const)),
  )
/** The code of every parked record, by its position. */
const parkedIn = async (generation: string): Promise<Record<string, unknown>> =>
  Object.fromEntries((await allStored(`${prefix}-${generation}-parked`)).map(({ id, source }) => [id, source.code]))
const positionsOf = async (generation: string): Promise<number[]> =>
  Promise.all(
    Array.from({ length: PARTITIONS }, async (_, partition) => {
      const found = await storedById(`${prefix}-control`, positionId(generation, partition))
      return (found as { body: { position: number } } | undefined)?.body.position ?? 0
    }),
  )
const idOf = ({ partition, offset }: Published): string => `${topics.events}:${partition}:${offset}`
const payout = (id: string, period: number, rest: object = {}): Outgoing =>
  payoutCalculated({ org_id: org, id, period_id: `period_${period}`, ...rest })
const payment = (id: string, period: number, payout_id: string): Outgoing =>
  payrollRecorded({ org_id: org, id, period_id: `period_${period}`, payout_id })
const ids = async (list: List): Promise<string[]> =>
  (await createClient([api], text).page(list, { limit: 200 })).data.map(({ id }) => String(id))

test('a projector with another version of the rules stops and says so if no generation has its rules', async () => {
  const refused = await startProjectorOf(file, { topics, prefix, groupId: `${prefix}-other` }, NEW)
  expect((await refused.exited).code).toBe(1)
  expect(refused.log()).toContain('"code":"rules_changed"')
  expect(refused.log()).toContain('generation g1 has version 1, this program 2')
})

/** The positions of the records that only the old rules, or only the new rules, refuse. */
let refusedByOld: string
let refusedByNew: string

test('parked records stay parked in a generation under other rules, even if these would accept them', async () => {
  const [wrong, , , , refused] = await topics.publish([
    payout('payout_old1', 1),
    payout('payout_a1', 1),
    payment('payroll_a1', 1, 'payout_a1'),
    payout('payout_b1', 2),
    payout('payout_new1', 2, { supersedes_id: 'payout_b1' }),
  ])
  refusedByOld = idOf(wrong as Published)
  refusedByNew = idOf(refused as Published)
  await untilCaughtUp(old)
  const ran = await rebuildUnder(file, { topics, prefix }, NEW)
  expect(ran, ran.log).toMatchObject({ code: 0 })
  expect(ran.log).toContain('g2 has caught up')
  expect(await roles()).toEqual({ g1: ['live'], g2: ['kept up', 'follows g1'] })

  const before = await parkedIn('g1')
  expect(before[refusedByOld]).toBe('record_undecodable')
  expect(await parkedIn('g2')).toEqual({ ...before, [refusedByNew]: 'record_undecodable' })
  const [ours, theirs] = [await stored('g1'), await stored('g2')]
  for (const kind of ['reps', 'periods', 'payroll_files'] as const) expect(theirs[kind]).toEqual(ours[kind])
  for (const kind of ['payouts', 'statements', 'chains'] as const) {
    const others = (all: typeof ours) => all[kind]?.filter(({ id }) => !/payout_(?:b1|new1)$|period_2$/.test(id))
    expect(others(theirs)).toEqual(others(ours))
  }
  const verified = await projection('verify', 'g1', 'g2')
  expect(verified.code).toBe(1)
  expect(verified.out.toString()).toContain('payout_new1: only in g1')
})

test('the new generation is never ahead of the live one, and never far behind', async () => {
  next = await startProjectorOf(file, { topics, prefix }, NEW)
  for (let look = 0; look < 100; look++) {
    // Few for each look: a busy machine catches up with them, too.
    const published = topics.publish(stream.take(5))
    const theirs = await positionsOf('g2')
    const ours = await positionsOf('g1')
    for (const [partition, position] of theirs.entries()) expect(position).toBeLessThanOrEqual(ours[partition] ?? 0)
    await published
  }
  await untilCaughtUp(old)
  await untilCaughtUp(next)
  await eventually(async () => expect((await next.ask('/readyz')).status).toBe(200))
  expect(await positionsOf('g2')).toEqual(await positionsOf('g1'))
  expect(await parkedIn('g2')).toEqual({ ...(await parkedIn('g1')), [refusedByNew]: 'record_undecodable' })
})

test('while the live generation stands still, the new one stands still too and says why', async () => {
  await old.stop()
  const before = await positionsOf('g2')
  await topics.publish([payout('payout_old2', 3)])
  await eventually(async () => {
    const { status, text: reasons } = await next.ask('/readyz')
    expect(status).toBe(503)
    expect(reasons).toContain('waits for g1')
  })
  expect(await positionsOf('g2')).toEqual(before)
  expect(next.exit()).toBeUndefined()
})

test('once live, the new generation decides on its own, even without a projector of the old rules', async () => {
  const began = performance.now()
  const ran = await projection('swap', 'g2', '--force', 'new rules')
  expect(ran, ran.said).toMatchObject({ code: 0 })
  await eventually(async () => expect(await ids('payouts')).toContain('payout_old2'))
  console.log(`swapped and decided ${(performance.now() - began).toFixed(0)} ms after the command was given`)
  expect(await ids('payouts')).not.toContain('payout_old1')
  expect(await ids('payouts')).toContain('payout_b1')
  await untilCaughtUp(next)
  await eventually(async () => expect((await next.ask('/readyz')).status).toBe(200))
  await next.stop()
  next = await startProjectorOf(file, { topics, prefix }, NEW)
  await topics.publish([...stream.take(50), payout('payout_c1', 3, { supersedes_id: 'payout_old2' })])
  await untilCaughtUp(next)
  expect(await ids('payouts')).toContain('payout_c1')
})

test('a generation of the same rules, made beside it, has the same parked positions', async () => {
  const ran = await rebuildUnder(file, { topics, prefix }, NEW)
  expect(ran, ran.log).toMatchObject({ code: 0 })
  await untilCaughtUp(next)
  const verified = await projection('verify', 'g2', 'g3')
  expect(verified, verified.said).toMatchObject({ code: 0 })
  expect(await parkedIn('g3')).toEqual(await parkedIn('g2'))
  expect(await parkedIn('g3')).toHaveProperty([refusedByOld], 'record_undecodable')
})

test('a rollback to a generation that applies parked records needs a reason', async () => {
  old = await startProjectorOf(file, { topics, prefix }, OLD)
  const [refused] = await topics.publish([payout('payout_new2', 4)])
  await untilCaughtUp(old)
  await untilCaughtUp(next)
  const ran = await projection('rollback')
  expect(ran.code).toBe(1)
  // The old rules applied both: g1 lists them, and g2 does not.
  for (const id of [refusedByNew, idOf(refused as Published)]) expect(ran.said).toContain(id)
  expect(ran.said).toContain('2 records that g2 parked are applied in g1')
  expect(await roles()).toMatchObject({ g2: ['live'] })
  const forced = await projection('rollback', '--force', 'the new rules are wrong')
  expect(forced, forced.said).toMatchObject({ code: 0 })
  expect(await ids('payouts')).toContain('payout_new2')
})

test('a generation that follows one that is not live cannot be made live, and the followed one cannot be dropped', async () => {
  expect(await projection('drop', 'g2')).toMatchObject({ code: 1, said: expect.stringContaining('g3 takes over') })
  const swapped = await projection('swap', 'g3', '--force', 'anyway')
  expect(swapped).toMatchObject({ code: 1, said: expect.stringContaining('drop it, and make one beside g1') })
  for (const name of ['g3', 'g2']) expect(await projection('drop', name)).toMatchObject({ code: 0 })
  expect(await roles()).toEqual({ g1: ['live'] })
})
