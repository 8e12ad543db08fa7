/** Processes that end and come back in the middle of a stream, and redelivered records: nothing changes. */
import { expect, test } from 'vitest'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { createClient } from '../support/client.ts'
import { keyCreated, newId, newKeyText, repRecorded, withData } from '../support/events.ts'
import { expectRefused, type Projector, startApi, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, type Scope } from '../support/scope.ts'
import {
  allStored,
  createPrefix,
  everythingProjected,
  indexNamed,
  overwrite,
  type Position,
  readPosition,
  storePosition,
} from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'

const PARTITIONS = 3
const seed = seedOfRun()
console.log(`seed ${seed}`)

const prepare = async (t: Scope, salt: number) => {
  const random = createRandom(seed + salt)
  const organizations = organizationsIn(random, [0, 1, 1], PARTITIONS)
  const topics = await createTopics(t, { partitions: PARTITIONS })
  const stream = createStream(random, organizations, PARTITIONS)
  return { random, organizations, topics, stream, prefix: createPrefix(t) }
}

/** The documents that an undisturbed projector makes of the same topics. */
const undisturbed = async (t: Scope, { topics }: Awaited<ReturnType<typeof prepare>>) => {
  const prefix = createPrefix(t)
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  await projector.stop()
  return everythingProjected(prefix)
}

/** A projector that does not end within 9 s ends with code 1. */
const expectCleanStop = async (projector: Projector): Promise<void> => {
  // As from a terminal: the process gets the signal directly and once more from npm.
  process.kill(projector.pid, 'SIGTERM')
  expect(await projector.stop(), projector.log()).toEqual({ code: 0, signal: null })
}

test.concurrent('a projector that is stopped and started again in the middle of a stream continues where it stopped', async t => {
  const its = await prepare(t, 1)
  const { topics, stream, prefix } = its
  for (let round = 0; round < 4; round++) {
    const projector = await startProjector(t, { topics, prefix })
    await topics.publish(stream.take(100))
    await eventually(async () =>
      expect((await projector.status()).some(({ searchable_to }) => searchable_to > 0)).toBe(true),
    )
    await expectCleanStop(projector)
    await topics.publish(stream.take(30))
  }
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectProjectedAsModelled(prefix, topics)
  expect(await everythingProjected(prefix)).toEqual(await undisturbed(t, its))
})

test.concurrent('a projector that is killed again and again in the middle of a stream loses nothing and changes nothing', async t => {
  const its = await prepare(t, 2)
  const { topics, stream, prefix, random } = its
  for (let round = 0; round < 5; round++) {
    // Kafka waits for a killed member. A new group avoids that wait.
    const projector = await startProjector(t, { topics, prefix, groupId: `${prefix}-${round}` })
    // This look comes before they are published: a projector may have nothing left to do soon after.
    const first = await sumOfPositions(prefix)
    await topics.publish(stream.take(80 + random.below(80)))
    await eventually(async () => expect(await sumOfPositions(prefix)).toBeGreaterThan(first), {
      every: 1 + random.below(20),
    })
    expect(await projector.kill()).toEqual({ code: null, signal: 'SIGKILL' })
  }
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectProjectedAsModelled(prefix, topics)
  expect(await everythingProjected(prefix)).toEqual(await undisturbed(t, its))
})

const positionsOf = (prefix: string): Promise<Position[]> =>
  Promise.all(Array.from({ length: PARTITIONS }, (_, partition) => readPosition(prefix, 'g1', partition)))

/** 0 before the first start, when there are no positions. */
const sumOfPositions = async (prefix: string): Promise<number> => {
  const positions = await positionsOf(prefix).catch(() => [])
  return positions.reduce((sum, { position }) => sum + position, 0)
}

test.concurrent('another projector of the group takes the partitions of one that was killed or frozen', async t => {
  const { topics, stream, prefix } = await prepare(t, 3)
  const [one, other] = [await startProjector(t, { topics, prefix }), await startProjector(t, { topics, prefix })]
  await topics.publish(stream.take(60))
  await untilCaughtUp(one)
  one.freeze()
  await topics.publish(stream.take(60))
  await untilCaughtUp(other)
  one.thaw()
  await topics.publish(stream.take(60))
  await untilCaughtUp(one)
  await other.kill()
  await topics.publish(stream.take(60))
  await untilCaughtUp(one)
  await expectProjectedAsModelled(prefix, topics)
  await expectCleanStop(one)
})

test.concurrent('a projector under load stops within 10 seconds with exit code 0, and the next one continues', async t => {
  const { topics, prefix } = await prepare(t, 4)
  const org = newId('org')
  let sent = 0
  const some = () =>
    Array.from({ length: 300 }, () =>
      withData(repRecorded({ org_id: org, id: `rep_${++sent}` }), { extra: 'x'.repeat(2_000) }),
    )
  const projector = await startProjector(t, { topics, prefix })
  let loading = true
  let most = Number.POSITIVE_INFINITY
  const load = async (): Promise<void> => {
    while (loading && sent < most) await topics.publish(some())
  }
  const loaded = load()
  await eventually(async () => expect(await sumOfPositions(prefix)).toBeGreaterThan(1_000))
  // Load continues during the stop, but not more than a busy machine can read again in this test.
  most = sent + 20_000
  await expectCleanStop(projector)
  loading = false
  await loaded
  expect(await sumOfPositions(prefix)).toBeLessThan(sent)

  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectProjectedAsModelled(prefix, topics)
})

test.concurrent('a whole topic that is delivered again changes no byte and stops nothing; meanwhile nobody is served old data', async t => {
  const its = await prepare(t, 5)
  const { topics, stream, prefix, organizations } = its
  const key = newKeyText()
  await topics.publish([
    ...stream.take(300),
    keyCreated({ org_id: organizations[0] ?? '', id: 'key_client', text: key }),
  ])
  const first = await startProjector(t, { topics, prefix })
  await untilCaughtUp(first)
  const client = createClient([await startApi(t, prefix)], key)
  const present = await client.askInTime('/payouts')
  expect(present.status, present.text).toBe(200)
  await expectCleanStop(first)
  const before = await everythingProjected(prefix)

  await rewindAll(prefix)
  // The stored documents are ahead of the position. A decision about an earlier record must not see later states.
  const second = await startProjector(t, { topics, prefix })
  const answers: { readonly status: number; readonly text: string }[] = []
  await eventually(async () => {
    answers.push(await client.ask('/payouts'))
    expect((await second.status()).map(({ lag }) => lag)).toEqual([0, 0, 0, 0])
  })
  const ofThePast = answers.filter(({ status, text }) => status !== 503 && text !== present.text)
  expect(ofThePast).toEqual([])
  await expectCleanStop(second)
  expect(await everythingProjected(prefix)).toEqual(before)

  await rewindAll(prefix)
  const third = await startProjector(t, { topics, prefix })
  await topics.publish(stream.take(50))
  await untilCaughtUp(third)
  await expectCleanStop(third)
  await expectProjectedAsModelled(prefix, topics)
  expect(await everythingProjected(prefix)).toEqual(await undisturbed(t, its))
})

const rewindAll = async (prefix: string): Promise<void> => {
  for (let partition = 0; partition < PARTITIONS; partition++) await rewind(prefix, 'g1', partition)
  await rewind(prefix, 'api-keys', 0)
}

const rewind = async (prefix: string, generation: string, partition: number): Promise<void> => {
  const { serve_from } = await readPosition(prefix, generation, partition)
  await storePosition(prefix, generation, partition, { position: 0, last: null, at: 0, time: 0, serve_from })
}

test.concurrent('a document that somebody changed is detected when its record is delivered again, and stops the projector', async t => {
  const { topics, stream, prefix } = await prepare(t, 7)
  await topics.publish(stream.take(20))
  const projector = await startProjector(t, { topics, prefix })
  await untilCaughtUp(projector)
  await expectCleanStop(projector)

  const index = indexNamed(prefix, 'reps')
  const changed = (await allStored(index)).find(({ source }) => source.seq === 0)
  const { id = '', version = 0, source = {} } = changed ?? {}
  const body = { ...(source.body as object), name: 'CANARY' }
  expect((await overwrite(index, { id, version, source: { ...source, body } })).status).toBe(200)
  await rewindAll(prefix)

  const next = await startProjector(t, { topics, prefix })
  await expectRefused(next, 'content_differs')
  expect(next.log()).not.toContain('CANARY')
})

test.concurrent('positions restored from an earlier copy are caught up', async t => {
  const its = await prepare(t, 6)
  const { topics, stream, prefix } = its
  const projector = await startProjector(t, { topics, prefix })
  await topics.publish(stream.take(100))
  await untilCaughtUp(projector)
  await expectCleanStop(projector)
  const earlier = await positionsOf(prefix)

  const next = await startProjector(t, { topics, prefix })
  await topics.publish(stream.take(150))
  await untilCaughtUp(next)
  await expectCleanStop(next)
  for (const [partition, position] of earlier.entries()) await storePosition(prefix, 'g1', partition, position)
  await untilCaughtUp(await startProjector(t, { topics, prefix }))
  await expectProjectedAsModelled(prefix, topics)
  expect(await everythingProjected(prefix)).toEqual(await undisturbed(t, its))
})
