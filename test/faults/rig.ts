/**
 * A complete installation of real processes and servers with proxies between them. A seeded schedule causes faults
 * while events are published and clients walk. In the end all faults are over, and the state is compared with the
 * model.
 */
import { expect } from 'vitest'
import { freePort } from '../../services/ports.ts'
import { expectProjectedAsModelled } from '../support/agreement.ts'
import { createClient } from '../support/client.ts'
import { keyCreated, newKeyText, type Outgoing } from '../support/events.ts'
import { expectServedAsModelled, RECOVERY_SHARED_MS } from '../support/installation.ts'
import { readLog } from '../support/log.ts'
import { startOwnServer } from '../support/own-services.ts'
import { type Positions, watchPositions } from '../support/positions.ts'
import { type Api, type Projector, startApi, startProjector } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { startPublisher } from '../support/publisher.ts'
import { createRandom, type Random } from '../support/random.ts'
import { eventually, type Scope } from '../support/scope.ts'
import { createPrefix } from '../support/stored.ts'
import { createStream, organizationsIn } from '../support/streams.ts'
import { createTopics } from '../support/topics.ts'
import { expectWalkedAsModelled, startWalkers } from '../support/walkers.ts'
import { deal, processTroubles, proxyTroubles, type Slot, serviceTroubles, type Trouble } from './troubles.ts'

const PARTITIONS = 3
const SENT_A_SECOND = 100
const SENT_TOGETHER = 10
/** Then other organizations follow: the model gets slower with each record of an organization. */
const RECORDS_OF_A_CHAPTER = 2_000
/** Maximum durations of a fault: sometimes longer than the session timeout of the group. */
const HOLDS_MS = [...Array(14).fill(2_500), ...Array(5).fill(8_000), 20_000]

export type RigOptions = {
  readonly seed: number
  /** How long faults are caused. The start and the final comparison take additional time. */
  readonly seconds: number
  readonly say: (line: string) => void
}

export const runRig = async (scope: Scope, { seed, seconds, say }: RigOptions): Promise<void> => {
  // Only the schedule uses it: a seed gives the same schedule on any machine.
  const random = createRandom(seed)
  const rig = await startRig(scope, seed, seconds)
  const { topics, prefix, keys, projectors, api, publisher, positions, walkers, troubles } = rig
  const expectAllAlive = (): void => {
    for (const { current } of [...projectors, api]) expect(current().exit(), current().log()).toBeUndefined()
  }
  const began = performance.now()
  const at = (): string => `${((performance.now() - began) / 1_000).toFixed(1).padStart(6)} s`
  const recoveries: Record<string, number[]> = {}
  const took = (what: string, milliseconds: number): void => {
    recoveries[what] = [...(recoveries[what] ?? []), milliseconds]
  }

  const deck = deal(troubles, random)
  let done = 0
  while (performance.now() - began < seconds * 1_000) {
    const now: Trouble[] = [deck.next().value]
    const second = random.chance(0.3) ? deck.next().value : undefined
    if (second && second.target !== now[0]?.target) now.push(second)
    const hold = 300 + random.below(random.pick(HOLDS_MS))
    const calm = random.below(800)
    say(`${at()}  ${now.map(({ what, target }) => `${target}: ${what}`).join(', and ')}, for ${hold} ms`)

    const recovered: Promise<void>[] = []
    for (const { begin, kills, target } of now) {
      await begin()
      const killed = performance.now()
      const positionsThen = positions.latest()
      const { pages } = walkers.soFar()
      const readsOn = (): void => expect(walkers.soFar().pages).toBeGreaterThan(pages)
      const publishesOn = (): void => {
        const seen = `published: ${publisher.soFar()}; positions: ${positionsThen} when killed, ${positions.latest()} now`
        expect(
          positions.latest().every((to, of) => to > (positionsThen[of] ?? 0)),
          seen,
        ).toBe(true)
      }
      if (!kills) continue
      const goesOn = target === 'API' ? readsOn : publishesOn
      const again = eventually(goesOn, { within: hold + RECOVERY_SHARED_MS, every: 20 })
      const what = target === 'API' ? 'kill → first page' : 'kill → every partition publishes again'
      recovered.push(again.then(() => took(what, performance.now() - killed)))
    }
    for (const one of recovered) one.catch(() => undefined)
    await passed(hold)
    for (const { end } of now) await end()
    done += now.length
    const healed = performance.now()
    const ends = publisher.ends()
    await Promise.all(recovered)
    // In half of the cases the next fault begins before this one has been recovered from.
    if (random.chance(0.5)) {
      await within(positions, latest => latest.every((to, of) => to >= (ends[of] ?? 0)))
      took('heal → caught up', performance.now() - healed)
    }
    expectAllAlive()
    await passed(calm)
  }

  const healed = performance.now()
  await publisher.stop()
  await within(positions, latest => latest.every((to, of) => to >= (publisher.ends()[of] ?? 0)))
  const ready = async () => {
    expectAllAlive()
    const answers = projectors.map(async ({ current }) => (await current().ask('/readyz')).text)
    const ofApi = fetch(`${api.current().adminUrl}/readyz`).then(answer => answer.text())
    expect((await Promise.all([...answers, ofApi])).join()).not.toContain('"ready":false')
  }
  await eventually(ready, { within: RECOVERY_SHARED_MS })
  took('the end → caught up and ready', performance.now() - healed)
  const walked = await walkers.stop()
  await positions.stop()
  expect(positions.wentBack()).toEqual([])
  const log = await readLog(topics)
  const model = await expectProjectedAsModelled(prefix, { ...topics, published: () => log })
  // The last fault has just ended: 503 answers are retried, as the walkers do.
  await expectServedAsModelled([api.current()], keys, model, 50, RECOVERY_SHARED_MS)
  expectWalkedAsModelled(walked, model)

  say(`${done} faults; ${log.length} records in the log; the whole state agrees with the model`)
  say(`${walked.walks.length} walks, ${walked.pages} pages read, ${walked.unavailable} answers 503`)
  for (const [what, times] of Object.entries(recoveries)) {
    const sorted = times.toSorted((a, b) => a - b).map(time => (time / 1_000).toFixed(1))
    say(`${what}: ${sorted[sorted.length >> 1]} s in the middle, ${sorted.at(-1)} s at most, ${sorted.length} times`)
  }
}

const passed = (milliseconds: number): Promise<void> => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Waits for a condition on the positions. */
const within = (positions: Positions, hold: (latest: readonly number[]) => boolean): Promise<void> =>
  eventually(() => expect(positions.latest()).toSatisfy(hold), { within: RECOVERY_SHARED_MS, every: 20 })

const startRig = async (scope: Scope, seed: number, seconds: number) => {
  const random = createRandom(seed + 1)
  // Kafka advertises the address of the proxy.
  const port = await freePort()
  const advertised = { 'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}` }
  const [kafka, elasticsearch] = await Promise.all([
    startOwnServer(scope, 'kafka', { settings: advertised }),
    startOwnServer(scope, 'elasticsearch'),
  ])
  const { host } = new URL(elasticsearch.address)
  const [toKafka, projectorsToElasticsearch, apiToElasticsearch] = await Promise.all([
    startProxy(scope, kafka.address, { port }),
    startProxy(scope, host),
    startProxy(scope, host),
  ])
  const chapters = Array.from({ length: Math.ceil((seconds * SENT_A_SECOND) / RECORDS_OF_A_CHAPTER) + 1 }, () =>
    organizationsIn(random, [0, 1, 1, 2], PARTITIONS),
  )
  const keys = new Map(chapters.flat().map(org => [org, newKeyText()]))
  const topics = await createTopics(scope, { partitions: PARTITIONS, kafka: toKafka.address })
  const prefix = createPrefix(scope, elasticsearch.address)

  const startOne = (): Promise<Projector> => {
    const settings = { ELASTICSEARCH_URL: `http://${projectorsToElasticsearch.address}` }
    return startProjector(scope, { topics, prefix, settings })
  }
  const projectors = [await createSlot(startOne), await createSlot(startOne)]
  await topics.publish([...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })))
  const publisher = await startPublisher(
    scope,
    topics,
    partsOf(createRandom(seed + 2), chapters),
    (1_000 * SENT_TOGETHER) / SENT_A_SECOND,
  )
  const api = await createSlot((): Promise<Api> => {
    const settings = { ELASTICSEARCH_URL: `http://${apiToElasticsearch.address}` }
    return startApi(scope, prefix, { settings, ready: false })
  })
  // A new key is unknown until its event is projected.
  for (const key of keys.values()) {
    const client = createClient([api.current()], key)
    await eventually(async () => expect((await client.ask('/reps')).status).toBe(200))
  }
  const positions = watchPositions(prefix, PARTITIONS, 20)
  const walkers = startWalkers({
    apis: () => [api.current()],
    keys,
    random: createRandom(seed + 3),
    walkers: 3,
    every: 20,
  })
  scope.onTestFinished(async () => void Promise.allSettled([publisher.stop(), walkers.stop(), positions.stop()]))

  const troubles = [
    ...proxyTroubles('projectors to Elasticsearch', projectorsToElasticsearch, random),
    ...proxyTroubles('API to Elasticsearch', apiToElasticsearch, random),
    ...proxyTroubles('everything to Kafka', toKafka, random),
    ...projectors.flatMap((slot, place) => processTroubles(`projector ${place + 1}`, slot)),
    ...processTroubles('API', api),
    ...serviceTroubles(kafka),
    ...serviceTroubles(elasticsearch),
  ]
  return { topics, prefix, keys, projectors, api, publisher, positions, walkers, troubles }
}

const createSlot = async <Running extends Projector | Api>(start: () => Promise<Running>): Promise<Slot<Running>> => {
  let running = await start()
  return {
    current: () => running,
    restart: async () => {
      running = await start()
    },
  }
}

function* partsOf(random: Random, chapters: readonly (readonly string[])[]): Generator<readonly Outgoing[]> {
  for (const organizations of chapters) {
    const stream = createStream(random, organizations, PARTITIONS)
    for (let sent = 0; sent < RECORDS_OF_A_CHAPTER; sent += SENT_TOGETHER) yield stream.take(SENT_TOGETHER)
  }
}
