/** Elasticsearch is killed, frozen, or restored from an older copy: one node per test, one Kafka for all. */
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { Service, ServiceOptions } from '../../services/service.ts'
import { foldAll } from '../support/agreement.ts'
import { commandSettings, runCommand } from '../support/commands.ts'
import { expectIntact, expectNotReady, expectRecovery, startInstallation } from '../support/installation.ts'
import { keepPublishing } from '../support/load.ts'
import { startOwnServer } from '../support/own-services.ts'
import { watchPositions } from '../support/positions.ts'
import { expectRefused, projectorSettings, startProcess, startProjector, untilCaughtUp } from '../support/processes.ts'
import { createRandom, seedOfRun } from '../support/random.ts'
import { eventually, fileScope, type Scope } from '../support/scope.ts'
import { call, everythingProjected, indicesOf } from '../support/stored.ts'
import { expectWalkedAsModelled, startWalkers } from '../support/walkers.ts'

const seed = seedOfRun()
const file = fileScope()
let kafka: Service

beforeAll(async () => {
  console.log(`seed ${seed}`)
  kafka = await startOwnServer(file, 'kafka')
})

const start = async (t: Scope, salt: number, options?: ServiceOptions) => {
  const elasticsearch = await startOwnServer(t, 'elasticsearch', options)
  const random = createRandom(seed + salt)
  const installation = await startInstallation(t, {
    kafka: kafka.address,
    elasticsearch: elasticsearch.address,
    random,
  })
  return { elasticsearch, random, installation }
}

const isBulk = (line: string): boolean => line.startsWith('POST /_bulk?filter_path')

test.concurrent('a kill of Elasticsearch in the middle of a bulk request loses and duplicates nothing', async t => {
  const { elasticsearch, random, installation } = await start(t, 1)
  const { proxy, projector, walkers, topics, next } = installation
  const recoveries: number[] = []
  for (let round = 0; round < 3; round++) {
    // In small chunks: the kill can come when half of the request has arrived.
    await proxy.inject({ kind: 'slices', bytes: 2_000 }, isBulk)
    const loading = keepPublishing(t, topics, () => next(20))
    for (let bulks = 0; bulks < 1 + random.below(4); bulks++) await proxy.passes(isBulk)
    const unavailable = walkers.soFar().unavailable
    await elasticsearch.kill()
    await proxy.heal()
    await expectNotReady(projector, /does not answer/)
    await eventually(() => expect(walkers.soFar().unavailable).toBeGreaterThan(unavailable))
    await loading.stop()
    await elasticsearch.restart()
    recoveries.push(await expectRecovery(installation))
  }
  console.log(`killed: caught up after ${recoveries.map(Math.round).join(', ')} ms`)
  await expectIntact(installation)
})

const FROZEN_MS = 40_000

test.concurrent('Elasticsearch is frozen for 40 s: the first write completes after its retry', async t => {
  const { elasticsearch, installation } = await start(t, 2)
  const { proxy, projector, walkers, publish, positions, topics, next } = installation
  const before = positions.latest()
  const loading = keepPublishing(t, topics, () => next(20))
  await proxy.passes(isBulk)
  const frozen = performance.now()
  await elasticsearch.freeze()
  await loading.stop()
  await publish(100)
  // The position may still advance by the write under way.
  await expectNotReady(projector, /no answer|does not answer/)
  expect(performance.now() - frozen).toBeLessThan(15_000)
  const asked = proxy.asked().length
  await eventually(() => expect(performance.now() - frozen).toBeGreaterThan(FROZEN_MS), { every: 200 })
  // The projector retried meanwhile, although no answer came.
  expect(
    proxy
      .asked()
      .slice(asked)
      .some(({ line }) => isBulk(line) || line.startsWith('PUT')),
  ).toBe(true)
  expect(walkers.soFar().unavailable).toBeGreaterThan(10)
  await elasticsearch.thaw()
  const took = await expectRecovery(installation)
  console.log(`frozen for 40 s: caught up ${Math.round(took)} ms after`)
  expect(positions.latest().every((position, partition) => position > (before[partition] ?? 0))).toBe(true)
  await expectIntact(installation)
})

test.concurrent('indices restored from an older copy are refused until they are adopted, and then become the same as before', async t => {
  const repository = join(tmpdir(), `commission-copies-${seed}`)
  t.onTestFinished(() => rm(repository, { recursive: true, force: true }))
  const { installation } = await start(t, 3, { settings: { 'path.repo': repository } })
  const { prefix, topics, projector, settings, publish, keys, walkers, positions, api } = installation
  await publish(200)
  await untilCaughtUp(projector)
  expect(await projector.stop()).toEqual({ code: 0, signal: null })
  const done = async (method: string, path: string, body?: object) => {
    const { status, text } = await call(method, `${path}`, body)
    expect(status, text).toBeLessThan(300)
  }
  await done('PUT', `/_snapshot/${prefix}-copies`, { type: 'fs', settings: { location: repository } })
  await done('PUT', `/_snapshot/${prefix}-copies/first?wait_for_completion=true`, { indices: `${prefix}-*` })

  const later = await startProjector(t, { topics, prefix, settings })
  await publish(200)
  await untilCaughtUp(later)
  expect(await later.stop()).toEqual({ code: 0, signal: null })
  const everything = await everythingProjected(prefix)
  // From here on clients and positions see another past.
  await walkers.stop()
  await positions.stop()

  const [key] = keys.values()
  const ask = () => fetch(`${api.url}/payouts`, { headers: { authorization: `Bearer ${key}` } })
  expect((await ask()).status).toBe(200)
  await done('DELETE', `/${(await indicesOf(prefix)).join()}`)
  await done('POST', `/_snapshot/${prefix}-copies/first/_restore?wait_for_completion=true`, { indices: `${prefix}-*` })
  // The API must answer 503 to clients that have seen newer data, not the older state.
  expect((await ask()).status).toBe(503)

  await publish(50)
  await expectRefused(
    startProcess(t, 'projector/main.ts', projectorSettings({ topics, prefix, settings })),
    'index_replaced',
  )
  const adopted = await runCommand(['projection', 'adopt'], { ...commandSettings(topics, prefix), ...settings })
  expect(adopted, adopted.said).toMatchObject({ code: 0 })
  const last = await startProjector(t, { topics, prefix, settings })
  await untilCaughtUp(last)
  await eventually(async () => expect((await ask()).status).toBe(200))
  const again = await everythingProjected(prefix)
  for (const [kind, documents] of Object.entries(everything)) {
    expect(again[kind]?.length).toBeGreaterThanOrEqual(documents.length)
  }
  const random = createRandom(seed)
  const after = {
    walkers: startWalkers({ apis: () => [api], keys, random, walkers: 1 }),
    positions: watchPositions(prefix, topics.partitions, 250),
  }
  t.onTestFinished(async () => void Promise.allSettled([after.walkers.stop(), after.positions.stop()]))
  await expectIntact({ ...installation, ...after, projector: last })
  expectWalkedAsModelled(await walkers.stop(), foldAll(topics).model)
  expect(positions.wentBack()).toEqual([])
})
