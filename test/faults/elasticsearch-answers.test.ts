/** Faulty answers of Elasticsearch, faulty indices, and two minutes without any answer. */
import { beforeAll, expect, test } from 'vitest'
import { limitConcurrency } from '../../core/runtime/weighted-semaphore.ts'
import { foldAll } from '../support/agreement.ts'
import { newId, repRecorded, withData } from '../support/events.ts'
import {
  expectIntact,
  expectNotReady,
  expectRecovery,
  type Installation,
  RECOVERY_MS,
  startInstallation,
} from '../support/installation.ts'
import { type OwnServices, startOwnServices } from '../support/own-services.ts'
import { expectRefused, startProjector, untilCaughtUp } from '../support/processes.ts'
import type { Concerns, Fault } from '../support/proxy.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { memoryOf } from '../support/sickness.ts'
import { call, everythingProjected, indexNamed, indexWith, indicesOf, readPosition } from '../support/stored.ts'

const seed = seedOfRun()
const file = fileScope()
let services: OwnServices

beforeAll(async () => {
  console.log(`seed ${seed}`)
  // With less heap Elasticsearch refuses documents of the largest records: docs/operating.md.
  services = await startOwnServices(file, { elasticsearch: { heap: '1g' } })
})

const start = (t: Scope, salt: number): Promise<Installation> =>
  startInstallation(t, {
    kafka: services.kafka.address,
    elasticsearch: services.elasticsearch.address,
    random: createRandom(seed + salt),
  })

/** Faults that leave no trace share one installation, one test at a time. */
const inTurn = limitConcurrency(1)
let shared: Promise<Installation> | undefined
const useShared = (): Promise<Installation> => {
  shared ??= start(file, 1)
  return shared
}

const asks =
  (what: string): Concerns =>
  line =>
    line.includes(what)
const bulks = asks('POST /_bulk?filter_path')
const refreshes = asks('/_refresh')

test.concurrent('requests whose answer is lost or cut off after the effect are retried, and the retry changes nothing', () =>
  inTurn(async () => {
    const installation = await useShared()
    const { proxy, publish, projector } = installation
    const positionWrites = asks('-control/_doc/')
    const faults: Fault[] = [
      { kind: 'lost-answer' },
      { kind: 'cut-answer', bytes: 150 },
      { kind: 'cut-answer', bytes: 400 },
      { kind: 'reset' },
    ]
    for (const fault of faults) {
      for (const concerned of [bulks, positionWrites, refreshes, asks('/_mget'), asks('/_search')]) {
        await proxy.inject(fault, concerned, 4)
        await publish(15)
        await eventually(() => expect(proxy.hits()).toBeGreaterThan(0))
      }
    }
    await proxy.heal()
    await expectRecovery(installation)
    await expectIntact(installation)
    expect(projector.log()).toContain('elasticsearch write')
  }))

test.concurrent('a write that arrives after its retry was answered changes nothing', () =>
  inTurn(async () => {
    const installation = await useShared()
    const { proxy, publish, prefix } = installation
    const asked = proxy.asked().length
    await proxy.inject({ kind: 'late' }, bulks, 1)
    await publish(60)
    // Longer than the request timeout: the projector gives the request up and retries.
    await eventually(() => expect(proxy.hits()).toBe(1))
    await untilCaughtUp(installation.projector)
    await publish(60)
    await untilCaughtUp(installation.projector)
    const [late] = proxy
      .asked()
      .slice(asked)
      .filter(({ line }) => bulks(line))
    expect(late).toMatchObject({ answered: 0 })
    const before = await everythingProjected(prefix)
    await proxy.heal()
    await eventually(() => expect(late?.answered).toBeGreaterThan(0))
    expect(await everythingProjected(prefix)).toEqual(before)
    await expectIntact(installation)
  }))

const httpAnswer = (status: number, body: object): Fault => {
  const text = JSON.stringify(body)
  const head = `HTTP/1.1 ${status} X\r\nX-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\n`
  return { kind: 'other-answer', answer: `${head}content-length: ${text.length}\r\n\r\n${text}` }
}

test.concurrent('a failed refresh is retried, and nothing is published before it succeeds', () =>
  inTurn(async () => {
    const installation = await useShared()
    const { proxy, publish, projector, prefix, topics } = installation
    for (const answer of [
      httpAnswer(503, { error: { type: 'unavailable_shards_exception' } }),
      httpAnswer(200, { _shards: { total: 1, successful: 0, failed: 1 } }),
      // Elasticsearch does not count an unassigned shard as failed.
      httpAnswer(200, { _shards: { total: 1, successful: 0, failed: 0 } }),
    ]) {
      const before = new Set(topics.published())
      await proxy.inject(answer, refreshes)
      await publish(60)
      await expectNotReady(projector, /Elasticsearch answers/, /^elasticsearch refresh$/)
      await eventually(() => expect(proxy.hits()).toBeGreaterThan(5))
      const applied = [...foldAll(topics).outcomes].flatMap(([record, { outcome }]) =>
        outcome === 'applied' && record.stream === 'events' && !before.has(record) ? [record] : [],
      )
      expect(applied.length).toBeGreaterThan(10)
      for (const { partition, offset } of applied) {
        expect((await readPosition(prefix, 'g1', partition)).position).toBeLessThanOrEqual(offset)
      }
      await proxy.heal()
      await expectRecovery(installation)
    }
    // The projector does not wait for a replica that is not assigned.
    const settings = { auto_expand_replicas: false, number_of_replicas: 1 }
    expect((await call('PUT', `/${indexNamed(prefix, 'payouts')}/_settings`, { index: settings })).status).toBe(200)
    await publish(60)
    await expectRecovery(installation)
    await expectIntact(installation)
  }))

test.concurrent('the projector waits while an index is read-only, and continues when it is writable', () =>
  inTurn(async () => {
    const installation = await useShared()
    const { publish, projector, prefix } = installation
    for (const [kind, block] of [
      ['payouts', 'write'],
      ['reps', 'read_only_allow_delete'],
      ['control', 'read_only'],
    ] as const) {
      const set = (value: boolean | null) =>
        call('PUT', `/${indexWith(indexNamed(prefix, kind))}/_settings`, { [`index.blocks.${block}`]: value })
      expect((await set(true)).status).toBe(200)
      await publish(80)
      await expectNotReady(
        projector,
        new RegExp(`cluster_block_exception, index ${indexWith(indexNamed(prefix, kind))}$`),
      )
      expect((await set(null)).status).toBe(200)
      await expectRecovery(installation)
    }
    await expectIntact(installation)
  }))

test.concurrent('an index that is deleted stops the projector, and is never created automatically', async t => {
  const { prefix, publish, projector, topics, walkers, settings } = await start(t, 4)
  const index = indexNamed(prefix, 'payouts')
  expect((await call('DELETE', `/${index}`)).status).toBe(200)
  await publish(60)
  await expectRefused(projector, 'index_missing')
  await eventually(() => expect(walkers.soFar().unavailable).toBeGreaterThan(20))
  await expectRefused(await startProjector(t, { topics, prefix, settings }), 'index_missing')
  expect(await indicesOf(prefix)).not.toContain(index)
})

test.concurrent('a mapping that rejects a document stops the projector, and the log has nothing of the document', async t => {
  const { prefix, projector, topics, settings } = await start(t, 5)
  const positions = () =>
    Promise.all(Array.from({ length: topics.partitions }, (_, partition) => readPosition(prefix, 'g1', partition)))
  await untilCaughtUp(projector)
  const before = await positions()
  const index = indexWith(indexNamed(prefix, 'reps'))
  // This mapping rejects every organization, and its error would quote the id.
  const mappings = {
    dynamic: 'strict',
    properties: { org_id: { type: 'date' }, body: { type: 'object', enabled: false } },
  }
  expect((await call('DELETE', `/${index}`)).status).toBe(200)
  expect((await call('PUT', `/${index}`, { mappings })).status).toBe(200)
  await topics.publish([withData(repRecorded({ org_id: newId('org') }), { name: 'CANARY' })])
  await eventually(() => expect(projector.exit(), projector.log()).toEqual({ code: 1, signal: null }))
  // Another code if the projector checks the index ids before it writes.
  expect(projector.lines().find(({ level }) => level === 60)?.code).toMatch(/^(?:write_refused|index_replaced)$/)
  expect(projector.log()).not.toMatch(/CANARY|failed to parse/)
  const at = (all: Awaited<ReturnType<typeof positions>>) => all.map(({ position }) => position)
  expect(at(await positions())).toEqual(at(before))
  await expectRefused(await startProjector(t, { topics, prefix, settings }), 'index_unsuitable')
})

const AWAY_MS = 120_000
/** Maximum resident memory: each of three partitions holds some of the largest records and their documents. */
const RESIDENT_MIB_MAX = 700
const LARGEST_BYTES = 8 * 1024 * 1024
const LARGEST = 13

test.concurrent('two minutes without Elasticsearch: the projector is alive, not ready and bounded in memory; then it recovers, with bulk requests far below 100 MB', async t => {
  const installation = await start(t, 7)
  const { proxy, topics, projector, api, walkers, publish, positions } = installation
  await proxy.inject({ kind: 'away' })
  const began = performance.now()
  await expectNotReady(projector, /does not answer/)
  const { pages, unavailable } = walkers.soFar()
  const before = positions.latest()

  await publish(150)
  for (let record = 0; record < LARGEST; record++) {
    await topics.publish([{ ...repRecorded({ org_id: newId('org') }), value: Buffer.alloc(LARGEST_BYTES - 10, 'x') }])
  }
  await publish(50)
  let most = 0
  const look = async (): Promise<void> => {
    most = Math.max(most, await memoryOf(projector.pid))
    expect((await projector.ask('/livez')).status).toBe(200)
  }
  await eventually(
    async () => {
      await look()
      expect((await projector.ask('/readyz')).status).toBe(503)
      expect(performance.now() - began).toBeGreaterThan(AWAY_MS)
    },
    { within: 2 * AWAY_MS, every: 1_000 },
  )
  expect((await fetch(`${api.adminUrl}/livez`)).status).toBe(200)
  expect((await fetch(`${api.adminUrl}/readyz`)).status).toBe(503)
  expect(walkers.soFar().pages).toBe(pages)
  expect(walkers.soFar().unavailable).toBeGreaterThan(unavailable + 100)

  await proxy.heal()
  const healed = performance.now()
  const goesOn = (): void => expect(positions.latest().every((to, of) => to > (before[of] ?? 0))).toBe(true)
  await eventually(goesOn, { within: RECOVERY_MS })
  const wentOn = performance.now() - healed
  await eventually(async () => {
    await look()
    expect(
      (await projector.status()).map(({ lag }) => lag),
      projector.log(),
    ).toEqual([0, 0, 0, 0])
  })
  const took = performance.now() - healed
  expect(most).toBeLessThan(RESIDENT_MIB_MAX)
  console.log(
    `away for two minutes, ${LARGEST} records of 8 MiB waiting: ${most} MiB at most, ` +
      `continued ${Math.round(wentOn)} ms and caught up ${Math.round(took)} ms after`,
  )
  const sizes = proxy.asked().flatMap(({ line, bytes }) => (bulks(line) ? [bytes] : []))
  expect(sizes.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(LARGEST * LARGEST_BYTES)
  expect(Math.max(...sizes)).toBeLessThan(25_000_000)
  await expectIntact(installation)
})
