/** The services for two commands, with one projector. They start with two generations that were found equal. */

import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { controlIndexOf, LIVE_ID, type LiveDocument, positionId } from '../../../schemas/stored/documents.ts'
import { withPlainNames } from '../../../schemas/stored/live-names.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { Broker } from '../broker.ts'
import { Clock } from '../clock.ts'
import { Coverage } from '../coverage.ts'
import { SimulatedElasticsearch } from '../elasticsearch.ts'
import { CALM, Faults } from '../faults.ts'
import { EVENTS, type History, type Log } from '../history.ts'
import { documentsOf, UPGRADED } from '../layouts.ts'
import { Projector } from '../projector.ts'
import { PREFIX } from '../promises.ts'
import type { Index } from '../stored.ts'
import { type Running, start, type Told } from './commands.ts'
import type { PairLog } from './log.ts'

export type Live = LiveDocument['body']
export type Indices = ReadonlyMap<string, Index>

const SESSION = 3_000
/** Milliseconds in which every command must end and everything must catch up. */
export const PATIENCE = 300_000

export class World {
  readonly clock = new Clock()
  readonly engine: SimulatedElasticsearch
  /** The Kafka of projectors, and of commands unless they are given another one. */
  broker: Broker
  /** Every version of the live document, with the time of its write. */
  readonly lives: { readonly time: number; readonly live: Live }[] = []
  failure: string | undefined
  sparesFailed = 0
  readonly #faults: Faults
  readonly #coverage = new Coverage()
  readonly #projectors: Projector[] = []
  readonly #running: Running[] = []

  constructor({ log, before }: PairLog, indices: Indices, random: Random, latency = 2) {
    this.#faults = new Faults(random, { ...CALM, latency })
    this.engine = new SimulatedElasticsearch(this.clock, this.#faults, this.#coverage, {
      onStored: (index, _, { id, fields }) => {
        if (index.name === controlIndexOf(PREFIX) && id === LIVE_ID)
          this.#remember(withPlainNames((fields as LiveDocument).body))
      },
      onRefreshed: () => undefined,
    })
    for (const [name, index] of indices) this.engine.indices.set(name, index.copy())
    this.broker = new Broker(log, SESSION, this.clock, this.#coverage, () => undefined)
    for (const { name, partitions } of this.broker.topics.values()) {
      for (const [number, partition] of partitions.entries()) {
        partition.end = name === EVENTS ? (before[number] ?? 0) : partition.entries.length
      }
    }
    const live = this.live()
    if (live) this.#remember(live)
  }

  live(): Live | undefined {
    const stored = this.engine.indices.get(controlIndexOf(PREFIX))?.documents.get(LIVE_ID)
    return stored && withPlainNames((stored.fields as LiveDocument).body)
  }

  kept(): readonly string[] {
    const live = this.live()
    return live === undefined ? [] : (live.kept ?? [live.generation])
  }

  startProjector(): void {
    const onStopped = (error: unknown): void => this.#fail(`a projector stopped: ${reasonOf(error)}`)
    const watcher = { onSend: () => undefined, onDone: () => undefined, onWritten: () => undefined }
    const services = { ...this.#services(), watcher }
    // A dropped generation may fail under a projector that was frozen; `untilCaughtUp` checks the others.
    const onSpareFailed = (): void => void this.sparesFailed++
    this.#projectors.push(new Projector('projector', RULES_VERSION, services, onStopped, onSpareFailed))
  }

  freezeProjectors(milliseconds: number): void {
    for (const { host } of this.#projectors) {
      host.freeze()
      this.clock.after(milliseconds, () => host.thaw())
    }
  }

  killProjectors(): void {
    for (const projector of this.#projectors) projector.kill()
  }

  run(told: Told, killAt?: number, broker: Broker = this.broker): Running {
    const running = start(told, { ...this.#services(), broker }, killAt)
    this.#running.push(running)
    return running
  }

  /** Lets killed commands close their files. */
  async release(): Promise<void> {
    for (const running of this.#running) running.release()
    await this.clock.runUntil(() => false, 0)
  }

  async alone(told: Told, broker: Broker = this.broker): Promise<Running> {
    const running = this.run(told, undefined, broker)
    await this.clock.runUntil(() => running.ended !== undefined || this.failure !== undefined, PATIENCE)
    return running
  }

  publishAll(): void {
    for (const partition of this.broker.topic(EVENTS).partitions) partition.end = partition.entries.length
  }

  /** A Kafka of another cluster, with topics of the same names. */
  createBroker(log: Log, clusterId: string): Broker {
    const broker = new Broker(log, SESSION, this.clock, this.#coverage, () => undefined, `other-${++this.#brokers}`)
    broker.clusterId = clusterId
    for (const { partitions } of broker.topics.values()) {
      for (const partition of partitions) partition.end = partition.entries.length
    }
    return broker
  }

  #brokers = 0

  async pass(milliseconds: number): Promise<void> {
    await this.clock.runUntil(() => this.failure !== undefined, milliseconds)
  }

  /** Whether all generations that are kept up have reached the end of the log. */
  isCaughtUp(): boolean {
    const control = this.engine.indices.get(controlIndexOf(PREFIX))
    const live = this.live()
    if (live === undefined || live.floor === null) return false
    return this.kept().every(generation =>
      this.broker.topic(EVENTS).partitions.every(({ end }, partition) => {
        const stored = control?.documents.get(positionId(generation, partition))
        return (stored?.fields.body as { position: number } | undefined)?.position === end
      }),
    )
  }

  async untilCaughtUp(): Promise<void> {
    await this.clock.runUntil(() => this.failure !== undefined || this.isCaughtUp(), PATIENCE)
    if (!this.isCaughtUp()) this.#fail(`did not catch up: ${this.kept().join(', ')}`)
  }

  #services() {
    // Only projectors of other rules use the history.
    const history = {} as History
    const { clock, broker, engine } = this
    return { clock, broker, engine, faults: this.#faults, coverage: this.#coverage, history, layouts: UPGRADED }
  }

  #remember(live: Live): void {
    this.lives.push({ time: this.clock.elapsed, live })
  }

  #fail(reason: string): void {
    this.failure ??= reason
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof StopError) return `${error.code}: ${error.message}`
  return error instanceof Error ? `defect: ${error.stack?.split('\n').slice(0, 3).join(' ')}` : 'defect'
}

/** Returns all documents of a generation as text. */
export const contentOf = ({ engine }: World, generation: string): string =>
  documentsOf(engine, PREFIX, generation)
    .map(({ kind, stored: { id, version }, source }) => `${kind} ${id} ${version} ${source}`)
    .sort()
    .join('\n')

/** Returns the documents that one projector makes of the log without commands and faults. */
export const quietContentOf = async ({ broker }: World): Promise<string> => {
  const log = Object.fromEntries(
    [...broker.topics].map(([name, { partitions }]) => [name, partitions.map(({ entries }) => entries)]),
  )
  const before = (log[EVENTS] ?? []).map(entries => entries.length)
  const quiet = new World({ log, before, organizations: [], parked: [] }, new Map(), createRandom(1))
  quiet.startProjector()
  await quiet.untilCaughtUp()
  if (quiet.failure !== undefined) throw new Error(quiet.failure)
  return contentOf(quiet, 'g1')
}

/** Creates the start states for commands: g2 beside g1 and found equal (`beside`), and g2 live (`swapped`). */
export const createBases = async (pairLog: PairLog): Promise<{ beside: Indices; swapped: Indices }> => {
  const world = new World(pairLog, new Map(), createRandom(1))
  const carryOut = async (told: Told): Promise<void> => {
    const { code, error, said } = await world.alone(told)
    if (code !== 0) throw new Error(`${told.name}: ${error instanceof Error ? error.stack : said.join(' ')}`)
  }
  world.startProjector()
  await world.untilCaughtUp()
  await carryOut({ name: 'rebuild' })
  await world.untilCaughtUp()
  await carryOut({ name: 'verify', a: 'g1', b: 'g2' })
  const beside = copyOf(world)
  await carryOut({ name: 'swap', generation: 'g2' })
  await world.untilCaughtUp()
  if (world.failure !== undefined) throw new Error(world.failure)
  return { beside, swapped: copyOf(world) }
}

const copyOf = ({ engine }: World): Indices =>
  new Map([...engine.indices].map(([name, index]) => [name, index.copy()] as const))
