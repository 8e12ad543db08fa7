/** Elasticsearch with a tiny write queue, little indexing memory, or a small maximum request size. */
import { beforeAll, expect, test } from 'vitest'
import type { Service } from '../../services/service.ts'
import { newId, repRecorded, withData } from '../support/events.ts'
import { expectIntact, expectRecovery, type Installation, retried, startInstallation } from '../support/installation.ts'
import { startOwnServer } from '../support/own-services.ts'
import { untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'

const seed = seedOfRun()
const file = fileScope()
let kafka: Service
let queueing: Service
let small: Service

beforeAll(async () => {
  console.log(`seed ${seed}`)
  const settingsOf = (settings: Record<string, string>) => startOwnServer(file, 'elasticsearch', { settings })
  ;[kafka, queueing, small] = await Promise.all([
    startOwnServer(file, 'kafka'),
    settingsOf({ 'thread_pool.write.size': '1', 'thread_pool.write.queue_size': '1' }),
    settingsOf({ 'http.max_content_length': '1mb', 'indexing_pressure.memory.limit': '1200kb' }),
  ])
})

const start = (t: Scope, salt: number, elasticsearch: Service): Promise<Installation> =>
  startInstallation(t, {
    kafka: kafka.address,
    elasticsearch: elasticsearch.address,
    random: createRandom(seed + salt),
  })

/** Returns how many requests Elasticsearch rejected, from its statistics. */
const rejections = async ({ address }: Service, what: string, count: RegExp): Promise<number> => {
  const answer = await fetch(`${address}/_nodes/stats/${what}`)
  return Number(count.exec(await answer.text())?.[1] ?? 0)
}

test.concurrent('documents that a full queue rejects are retried without the others until all are written', async t => {
  const installation = await start(t, 1, queueing)
  const { publish } = installation
  const before = await retried(installation)
  for (let part = 0; part < 4; part++) await publish(60)
  await expectRecovery(installation)
  expect(await retried(installation)).toBeGreaterThan(before + 10)
  expect(await rejections(queueing, 'thread_pool', /"write":\{[^}]*"rejected":(\d+)/)).toBeGreaterThan(10)
  // `/readyz` and the log name the refusal, without a word of the document.
  expect(installation.projector.lines()).toContainEqual(
    expect.objectContaining({
      part: 'elasticsearch write',
      reason: expect.stringContaining('refuses documents for now: 429'),
    }),
  )
  await expectIntact(installation)
})

test.concurrent('requests that are too large are split, and requests without memory are retried', async t => {
  const installation = await start(t, 2, small)
  const { proxy, topics, publish, projector } = installation
  await proxy.inject({ kind: 'away' })
  const org_id = newId('org')
  // Each record becomes two documents. The 500 records of one step exceed the maximum request size.
  const texts = Array.from({ length: 3_000 }, (_, place) =>
    repRecorded({ org_id, id: `rep_${place}`, name: 'é'.repeat(999) }),
  )
  await topics.publish(texts)
  await publish(100)
  await proxy.heal()
  await untilCaughtUp(projector)
  const sizes = proxy.asked().flatMap(({ line, bytes }) => (line.startsWith('POST /_bulk?filter_path') ? [bytes] : []))
  expect(sizes.some(bytes => bytes > 1_048_576)).toBe(true)
  expect(await rejections(small, 'indexing_pressure', /"coordinating_rejections":(\d+)/)).toBeGreaterThan(0)
  await expectIntact(installation)
})

test.concurrent('a single record that is too large for Elasticsearch stops the projector: it is not parked', async t => {
  const installation = await start(t, 3, small)
  const { topics, projector } = installation
  const large = withData(repRecorded({ org_id: newId('org') }), { name: 7, extra: 'x'.repeat(2_000_000) })
  await topics.publish([large])
  await eventually(() => expect(projector.exit(), projector.log()).toEqual({ code: 1, signal: null }))
  expect(projector.lines().find(({ level }) => level === 60)).toMatchObject({ code: 'write_refused' })
})
