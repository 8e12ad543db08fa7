/**
 * A complete installation on a test's own services, and the checks that must hold after any fault. Its processes reach
 * Elasticsearch through a proxy, the test directly.
 */
import { expect } from 'vitest'
import { expectProjectedAsModelled } from './agreement.ts'
import { createClient, lists } from './client.ts'
import { keyCreated, newKeyText, type Outgoing } from './events.ts'
import type { Model } from './model.ts'
import { type Positions, watchPositions } from './positions.ts'
import { type Api, type Projector, startApi, startProjector, untilCaughtUp } from './processes.ts'
import { type FaultProxy, startProxy } from './proxy.ts'
import type { Random } from './random.ts'
import { eventually, type Scope } from './scope.ts'
import { createPrefix } from './stored.ts'
import { createStream, organizationsIn } from './streams.ts'
import { createTopics, type Topics } from './topics.ts'
import { expectWalkedAsModelled, startWalkers, type Walkers } from './walkers.ts'

/** Milliseconds in which everything recovers after a fault ends, as promised to operators. */
export const RECOVERY_MS = 30_000
/** The same for tests with many processes: on a busy machine each of them has little time. */
export const RECOVERY_SHARED_MS = 4 * RECOVERY_MS

export type Installation = {
  readonly topics: Topics
  readonly prefix: string
  readonly proxy: FaultProxy
  /** Settings for processes that use the proxy. */
  readonly settings: Readonly<Record<string, string>>
  readonly projector: Projector
  readonly api: Api
  readonly walkers: Walkers
  readonly positions: Positions
  readonly keys: ReadonlyMap<string, string>
  readonly next: (records: number) => Outgoing[]
  readonly publish: (records: number) => Promise<void>
}

type Options = {
  readonly kafka: string
  readonly elasticsearch: string
  /** More nodes of the same Elasticsearch, reached without the proxy. */
  readonly others?: readonly string[]
  readonly settings?: Readonly<Record<string, string>>
  /** Of the topics, as in `createTopics`. */
  readonly configuration?: Readonly<Record<string, string>>
  readonly random: Random
}

const PARTITIONS = 3

/** Starts everything, and projects some records. */
export const startInstallation = async (scope: Scope, options: Options): Promise<Installation> => {
  const { kafka, elasticsearch, others = [], configuration = {}, random } = options
  const organizations = organizationsIn(random, [0, 1, 1, 2], PARTITIONS)
  const keys = new Map(organizations.map(org => [org, newKeyText()]))
  const topics = await createTopics(scope, { partitions: PARTITIONS, kafka, configuration })
  const prefix = createPrefix(scope, [elasticsearch, ...others].join())
  const proxy = await startProxy(scope, new URL(elasticsearch).host)
  const settings = { ELASTICSEARCH_URL: [`http://${proxy.address}`, ...others].join(), ...options.settings }
  const stream = createStream(random, organizations, PARTITIONS)
  const next = (records: number): Outgoing[] => stream.take(records)
  const publish = async (records: number): Promise<void> => void (await topics.publish(next(records)))

  const projector = await startProjector(scope, { topics, prefix, settings })
  await topics.publish([...keys].map(([org, text]) => keyCreated({ org_id: org, id: 'key_client', text })))
  await publish(60)
  await untilCaughtUp(projector)
  const api = await startApi(scope, prefix, { settings })
  const positions = watchPositions(prefix, PARTITIONS, 250)
  const walkers = startWalkers({ apis: () => [api], keys, random, walkers: 1, every: 100 })
  // The walkers must also stop when a test fails early.
  scope.onTestFinished(async () => void Promise.allSettled([walkers.stop(), positions.stop()]))
  return { topics, prefix, proxy, settings, projector, api, walkers, positions, keys, next, publish }
}

/** Expects the projector to be alive and not ready, for a reason that matches `why`. */
export const expectNotReady = (projector: Projector, why: RegExp, part = /^elasticsearch/): Promise<void> =>
  eventually(async () => {
    const { status, text } = await projector.ask('/readyz')
    expect(status, projector.log()).toBe(503)
    const reasons = Object.entries(JSON.parse(text).reasons)
    expect(reasons, text).toContainEqual([expect.stringMatching(part), expect.stringMatching(why)])
    expect((await projector.ask('/livez')).status).toBe(200)
  })

/** Returns how many documents of events were retried, from the projector's metrics. */
export const retried = async ({ projector }: Pick<Installation, 'projector'>): Promise<number> => {
  const { text } = await projector.ask('/metrics')
  return Number(/^commission_documents_total\{[^}]*stream="events",outcome="retried"\} (\d+)/m.exec(text)?.[1] ?? 0)
}

/** Expects everything in Kafka to be readable within this time. Returns milliseconds. */
export const expectRecovery = async (
  { projector }: Pick<Installation, 'projector'>,
  within = RECOVERY_MS,
): Promise<number> => {
  const healed = performance.now()
  const whole = { within }
  await untilCaughtUp(projector, whole)
  await eventually(async () => expect((await projector.ask('/readyz')).status, projector.log()).toBe(200), whole)
  const took = performance.now() - healed
  expect(took).toBeLessThan(within)
  return took
}

/** Expects that nothing was lost, duplicated or partially written, and that no client ever saw anything else. */
export const expectIntact = async (installation: Installation): Promise<void> => {
  const { topics, prefix, projector, api, walkers, positions, keys } = installation
  await untilCaughtUp(projector)
  // Waits for the end of the walk under way and of one more.
  const { length } = walkers.soFar().walks
  await eventually(() => expect(walkers.soFar().walks.length).toBeGreaterThan(length + 1))
  const walked = walkers.soFar()
  expect(positions.wentBack()).toEqual([])
  expect(projector.exit(), projector.log()).toBeUndefined()
  const model = await expectProjectedAsModelled(prefix, topics)
  await expectServedAsModelled([api], keys, model)
  expectWalkedAsModelled(walked, model)
}

/** Expects every list as in the model, and payouts and statements by id: at most `most` of each organization. */
export const expectServedAsModelled = async (
  apis: readonly Api[],
  keys: ReadonlyMap<string, string>,
  model: Model,
  most = Number.POSITIVE_INFINITY,
  retryOptions = 0,
): Promise<void> => {
  for (const [org, key] of keys) {
    const client = createClient(apis, key, retryOptions)
    const view = model.view(org)
    for (const list of lists) expect(await client.all(list)).toEqual(view[list])
    for (const payout of view.everyPayout.slice(0, most))
      expect(await client.read(`/payouts/${payout.id}`)).toEqual(payout)
    for (const statement of view.statements.slice(-most)) {
      expect(await client.read(`/statements/${statement.id}`)).toEqual(statement)
    }
  }
}
