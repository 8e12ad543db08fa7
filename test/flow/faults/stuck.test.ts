/** The watchdog of a real projector with a step that never returns, and situations that only look like it. */
import { beforeAll, describe, expect, test } from 'vitest'
import { RETRY_LAST_MS } from '../../../core/runtime/limits.ts'
import { type Plan, type Point, startCrashing } from '../../support/crashes.ts'
import { keyCreated, newId, repRecorded, withData } from '../../support/events.ts'
import { expectRefused, type Projector, untilCaughtUp } from '../../support/processes.ts'
import { startProxy } from '../../support/proxy.ts'
import { eventually, fileScope } from '../../support/scope.ts'
import { allStored, createPrefix, elasticsearchOf, indexNamed } from '../../support/stored.ts'
import { createTopics, LONG_TRANSACTION, type Topics } from '../../support/topics.ts'

/** Replaces the limit of a minute. Longer than any pause between two retries, in which nothing can move. */
const STUCK_MS = 2 * RETRY_LAST_MS
const file = fileScope()
const org = newId('org')
let topics: Topics

beforeAll(async () => {
  topics = await createTopics(file)
  await topics.publish([withData(repRecorded({ org_id: org }), { secret: 'CANARY' }), keyCreated({ org_id: org })])
})

const stuckAt = (point: Point, time = 1): Plan => ({ point, time, fate: 'stuck', seed: 1, stuckMs: STUCK_MS })
/** A plan with the short limit and without a blocked step. */
const never = stuckAt('before decode', Number.MAX_SAFE_INTEGER)

const passed = (milliseconds: number): Promise<void> => {
  const until = performance.now() + milliseconds
  return eventually(() => expect(performance.now()).toBeGreaterThan(until))
}
const expectAlive = async (projector: Projector): Promise<void> => {
  expect(projector.exit(), projector.log()).toBeUndefined()
  expect((await projector.ask('/livez')).status).toBe(200)
}

describe.concurrent('a projector in which nothing moves although Kafka and Elasticsearch answer', () => {
  test.for<Point>(['before decide', 'before write', 'before refresh', 'before publish'])(
    'stops with a code and a place: %s',
    async (point, t) => {
      const projector = await startCrashing(t, { topics, prefix: createPrefix(t) }, stuckAt(point))
      expect(await expectRefused(projector, 'stuck')).toContain('nothing moves')
      const [reached, stuck] = [
        projector.lines().find(({ msg }) => msg === 'the point is reached'),
        projector.lines().find(({ level }) => level === 60),
      ]
      expect(reached).toBeDefined()
      expect(stuck).toMatchObject({ partition: expect.any(Number), searchableTo: 0, phase: 'reading' })
      expect([topics.events, topics.apiKeys]).toContain(stuck?.topic)
      expect(projector.log()).not.toContain('CANARY')
    },
  )
})

describe.concurrent('the watchdog does not stop', () => {
  test('a projector that waits behind an open transaction, however long', async t => {
    const prefix = createPrefix(t)
    const own = await createTopics(t)
    const projector = await startCrashing(t, { topics: own, prefix }, never)
    await own.publish([repRecorded({ org_id: org, id: 'rep_before' })])
    const producer = own.kafka.producer({
      ...LONG_TRANSACTION,
      transactionalId: newId('transaction'),
      idempotent: true,
      maxInFlightRequests: 1,
    })
    await producer.connect()
    t.onTestFinished(() => producer.disconnect())
    const transaction = await producer.transaction()
    const { key, value, headers } = repRecorded({ org_id: org, id: 'rep_within' })
    await transaction.send({
      topic: own.events,
      messages: [{ key, value, headers: headers as Record<string, string> }],
    })
    await own.publish([repRecorded({ org_id: org, id: 'rep_behind' })])

    await passed(2 * STUCK_MS)
    await expectAlive(projector)
    await transaction.commit()
    await eventually(async () => {
      const reps = await allStored(indexNamed(prefix, 'reps'))
      expect(reps.map(({ source }) => source.seq).filter(Number.isInteger)).toHaveLength(3)
    })
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
  })

  test('a projector with waiting records whose Elasticsearch is away, nor when it comes back', async t => {
    const prefix = createPrefix(t)
    const own = await createTopics(t)
    const proxy = await startProxy(t, new URL(elasticsearchOf(prefix)).host)
    const settings = { ELASTICSEARCH_URL: `http://${proxy.address}` }
    const projector = await startCrashing(t, { topics: own, prefix, settings }, never)
    await own.publish([repRecorded({ org_id: org, id: 'rep_before' })])
    await untilCaughtUp(projector)
    await proxy.inject({ kind: 'away' })
    await own.publish([repRecorded({ org_id: org, id: 'rep_meanwhile' })])

    await passed(3 * STUCK_MS)
    await expectAlive(projector)
    expect(await projector.ask('/readyz')).toMatchObject({
      status: 503,
      text: expect.stringContaining('elasticsearch'),
    })
    await proxy.heal()
    await untilCaughtUp(projector)
    expect(await projector.stop()).toEqual({ code: 0, signal: null })
  })
})
