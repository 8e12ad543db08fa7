/** A projector process that is frozen, killed or replaced while events arrive. */
import { describe, expect, test } from 'vitest'
import { SESSION_TIMEOUT_MS } from '../../../core/log/limits.ts'
import { generationId } from '../../../schemas/stored/documents.ts'
import { expectProjectedAsModelled } from '../../support/agreement.ts'
import { type Plan, type Point, reached, startCrashing } from '../../support/crashes.ts'
import { keyCreated, newKeyText, repRecorded, withData } from '../../support/events.ts'
import {
  expectRefused,
  type Projector,
  projectorSettings,
  startApi,
  startProcess,
  startProjector,
  untilCaughtUp,
} from '../../support/processes.ts'
import { createRandom, seedOfRun } from '../../support/random.ts'
import { eventually, type Scope } from '../../support/scope.ts'
import { createPrefix, everythingProjected, indexNamed, readPosition, store, storedById } from '../../support/stored.ts'
import { createStream, organizationsIn } from '../../support/streams.ts'
import { createTopics } from '../../support/topics.ts'
import { expectWalkedAsModelled, startWalkers } from '../../support/walkers.ts'

const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)
/** Many processes start here at the same time, on machines with few cores. */

const prepare = async (t: Scope, salt: number) => {
  const random = createRandom(seed + salt)
  const organizations = organizationsIn(random, [0, 1, 2], PARTITIONS)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const stream = createStream(random, organizations, PARTITIONS)
  return { random, organizations, topics, stream, prefix: createPrefix(t) }
}
type Prepared = Awaited<ReturnType<typeof prepare>>

/** Expects the state of the model, byte-equal to the state of an undisturbed projector on the same topics. */
const expectAsUndisturbed = async (t: Scope, { topics, prefix }: Prepared) => {
  const undisturbed = createPrefix(t)
  const projector = await startProjector(t, { topics, prefix: undisturbed })
  await untilCaughtUp(projector)
  await projector.stop()
  expect(await everythingProjected(prefix)).toEqual(await everythingProjected(undisturbed))
  return expectProjectedAsModelled(prefix, topics)
}

const expectCleanStop = async (projector: Projector): Promise<void> => {
  const began = performance.now()
  expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })
  expect(performance.now() - began).toBeLessThan(10_000)
}

const passed = (milliseconds: number): Promise<void> => {
  const until = performance.now() + milliseconds
  return eventually(() => expect(performance.now()).toBeGreaterThan(until), { within: milliseconds + 5_000 })
}

const sumOfPositions = async (prefix: string): Promise<number> => {
  const positions = Array.from({ length: PARTITIONS }, (_, partition) => readPosition(prefix, 'g1', partition))
  return (await Promise.all(positions).catch(() => [])).reduce((sum, { position }) => sum + position, 0)
}

/** Returns the members of the events group. */
const membersOf = async ({ topics, prefix }: Prepared) =>
  (await topics.admin.describeGroups([`${prefix}-g1`])).groups[0]?.members ?? []

describe.concurrent('while events arrive', () => {
  test('three projectors that start and stop every few seconds for two minutes lose nothing, and walkers see no gap', async t => {
    const its = await prepare(t, 30)
    const { topics, stream, prefix, random, organizations } = its
    const keys = new Map(organizations.map(org => [org, newKeyText()]))
    await topics.publish([
      ...stream.take(30),
      ...organizations.map(org => keyCreated({ org_id: org, id: 'key_walker', text: keys.get(org) ?? '' })),
    ])
    await untilCaughtUp(await startProjector(t, { topics, prefix, groupId: `${prefix}-first` }))
    const api = await startApi(t, prefix)
    const walkers = startWalkers({ apis: () => [api], keys, random, walkers: 1 })

    const until = performance.now() + 120_000
    let starts = 0
    const instance = async (): Promise<void> => {
      while (performance.now() < until) {
        const projector = await startProjector(t, { topics, prefix })
        starts++
        await passed(1_000 + random.below(8_000))
        await expectCleanStop(projector)
      }
    }
    const publisher = async (): Promise<void> => {
      while (performance.now() < until) {
        await topics.publish(stream.take(1 + random.below(4)))
        await passed(random.below(200))
      }
    }
    await Promise.all([instance(), instance(), instance(), publisher()])
    console.log(`${starts} starts and stops, ${topics.published().length} records, ${walkers.soFar().pages} pages`)
    expect(starts).toBeGreaterThan(12)
    // Every stopped projector has left the group: the next one does not wait for it.
    expect(await membersOf(its)).toEqual([])

    const last = await startProjector(t, { topics, prefix })
    await untilCaughtUp(last)
    const walked = await walkers.stop()
    await expectCleanStop(last)
    expectWalkedAsModelled(walked, await expectAsUndisturbed(t, its))
  })

  test('a projector that is killed twenty times while it catches up gets further each time, and loses nothing', async t => {
    const its = await prepare(t, 20)
    const { topics, stream, prefix, organizations } = its
    const [org = ''] = organizations
    const padding = { extra: 'x'.repeat(30_000) }
    // Much to read and little to decide: no start may reach the end.
    const some = () => [
      ...stream.take(60),
      ...Array.from({ length: 60 }, () => withData(repRecorded({ org_id: org }), padding)),
    ]
    for (let more = 0; more < 4; more++) await topics.publish(some())
    const positions = [0]
    for (let round = 0; round < 20; round++) {
      // Kafka keeps a killed member until its session timeout: a new group does not wait for it.
      const projector = await startProjector(t, { topics, prefix, groupId: `${prefix}-${round}` })
      const before = await sumOfPositions(prefix)
      const published = topics.publish(some())
      await eventually(async () => expect(await sumOfPositions(prefix)).toBeGreaterThan(before), { every: 2 })
      expect(await projector.kill()).toEqual({ code: null, signal: 'SIGKILL' })
      await published
      positions.push(await sumOfPositions(prefix))
    }
    expect(positions).toEqual([...new Set(positions)].toSorted((a, b) => a - b))
    const last = await startProjector(t, { topics, prefix })
    await untilCaughtUp(last)
    await expectCleanStop(last)
    await expectAsUndisturbed(t, its)
  })

  test('an old and a new process with the same rules take turns; one with other rules refuses to start and disturbs nobody', async t => {
    const its = await prepare(t, 40)
    const { topics, stream, prefix } = its
    let running = await startProjector(t, { topics, prefix })
    for (let version = 0; version < 3; version++) {
      await topics.publish(stream.take(40))
      const next = await startProjector(t, { topics, prefix })
      await topics.publish(stream.take(40))
      await eventually(async () => expect((await next.ask('/readyz')).status, next.log()).toBe(200))
      await topics.publish(stream.take(40))
      await expectCleanStop(running)
      running = next
    }
    // Changes the rules version of the stored generation: for this program it now has other rules.
    const control = indexNamed(prefix, 'control')
    const generation = (await storedById(control, generationId('g1'))) ?? {}
    const body = { ...(generation.body as object), rules_version: 99 }
    await store(control, generationId('g1'), { ...generation, body })
    const other = startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix }))
    expect(await expectRefused(other, 'rules_changed')).toContain('version 99')

    await topics.publish(stream.take(40))
    await untilCaughtUp(running)
    await expectCleanStop(running)
    await expectAsUndisturbed(t, its)
  })
})

describe.concurrent('a projector that is frozen for longer than its session, while another takes over its partitions', () => {
  test.for<Point>(['before write', 'amid bulk request', 'before publish'])(
    'continues %s and changes nothing',
    async (point, t) => {
      const its = await prepare(t, point.length)
      const { topics, stream, prefix, random } = its
      const plan: Plan = { point, time: 8 + random.below(8), fate: 'frozen', seed: random.below(1_000_000) }
      const frozen = await startCrashing(t, { topics, prefix }, plan)
      const other = await startProjector(t, { topics, prefix })
      await eventually(async () => expect(await membersOf(its)).toHaveLength(2))
      const frozenSoon = reached(frozen)
      let isFrozen = false
      void frozenSoon.then(() => {
        isFrozen = true
      })
      while (!isFrozen) await topics.publish(stream.take(4))
      await frozenSoon

      await topics.publish(stream.take(60))
      await passed(SESSION_TIMEOUT_MS)
      await untilCaughtUp(other)
      await topics.publish(stream.take(60))
      await untilCaughtUp(other)
      frozen.thaw()
      await topics.publish(stream.take(60))
      await untilCaughtUp(other)
      await eventually(async () => expect((await frozen.ask('/readyz')).text).toContain('true'))
      await eventually(async () => expect(await membersOf(its)).toHaveLength(2))
      await topics.publish(stream.take(30))
      await untilCaughtUp(frozen)
      await expectCleanStop(other)
      await expectCleanStop(frozen)
      await expectAsUndisturbed(t, its)
    },
  )
})
