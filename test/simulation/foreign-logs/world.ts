/**
 * The services of a run, the projectors under a service manager, and the log that they read. Every second the answers
 * of `/readyz` are compared with the truth.
 */

import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  type GenerationDocument,
  generationId,
  LIVE_ID,
  type LiveDocument,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { withPlainNames } from '../../../schemas/stored/live-names.ts'
import type { Outgoing } from '../../support/events.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { isBalance, wrongBalance } from '../balances.ts'
import { Broker } from '../broker.ts'
import { Clock, type SimulatedProcess } from '../clock.ts'
import { Coverage } from '../coverage.ts'
import { SimulatedElasticsearch } from '../elasticsearch.ts'
import { CALM, Faults } from '../faults.ts'
import { API_KEYS, EVENTS, type History } from '../history.ts'
import { formOf, type Layouts, UPGRADED } from '../layouts.ts'
import { type Running, start, type Told } from '../pairs/commands.ts'
import { Projector } from '../projector.ts'
import { PREFIX } from '../promises.ts'
import { Index } from '../stored.ts'
import { type Entries, emptyEntries, entryOf, placeOf, RealLog } from './real-log.ts'

const SESSION = 3_000
/** Virtual milliseconds in which a command ends and everything catches up. */
export const PATIENCE = 300_000
/** Virtual milliseconds in which a projector that says ready must see that its topic is another one. */
const NOTICES = 15_000

export type Stop = { readonly code: string; readonly detail: string }

export class World {
  readonly clock = new Clock()
  readonly faults: Faults
  readonly engine: SimulatedElasticsearch
  broker: Broker
  /** The log of the publishers. The last one is that of now; the others were lost. */
  readonly logs: RealLog[]
  readonly stops: Stop[] = []
  /** The events of the run, each with its time: for a failure. */
  readonly trace: string[] = []
  /** Called before each request of a projector. */
  onRequest: (host: SimulatedProcess) => void = () => undefined
  /** Milliseconds until a projector that ended is started again. */
  restartAfter = Number.POSITIVE_INFINITY
  wasIdle = false
  /** Whether the operator has told everybody to stop publishing, and makes the topics anew. */
  isBeingRestored = false
  failure: string | undefined
  readonly #coverage = new Coverage()
  readonly #running: Running[] = []
  #projectors: Projector[] = []
  #names = 0
  readonly #layouts: Layouts
  #foreignSince: number | undefined
  /** Since when each projector says that it is ready. */
  readonly #readySince = new Map<Projector, number>()

  constructor(random: Random, latency: number, entries: Entries = emptyEntries, layouts: Layouts = UPGRADED) {
    this.#layouts = layouts
    this.faults = new Faults(random, { ...CALM, latency })
    const observer = { onStored: () => undefined, onRefreshed: () => undefined }
    this.engine = new SimulatedElasticsearch(this.clock, this.faults, this.#coverage, observer)
    this.broker = this.createBroker(entries)
    this.logs = [new RealLog(entries)]
    this.#lookAtReadiness()
  }

  createBroker(entries: Entries, clusterId = 'simulated'): Broker {
    const ids = clusterId === 'simulated' ? 'first' : clusterId
    const broker = new Broker(entries, SESSION, this.clock, this.#coverage, () => undefined, ids)
    broker.clusterId = clusterId
    for (const { partitions } of broker.topics.values()) for (const one of partitions) one.end = one.entries.length
    return broker
  }

  get log(): RealLog {
    const log = this.logs.at(-1)
    if (log === undefined) throw new Error('there is no log')
    return log
  }

  say(what: string): void {
    // The name of the directory is another one in each run.
    const told = what.replace(/\/\S*foreign-log-\w+/g, '…')
    this.trace.push(`${(this.clock.elapsed / 1000).toFixed(3)} s ${told}`)
  }

  fail(reason: string): void {
    if (this.failure === undefined) this.say(`FAILED: ${reason}`)
    this.failure ??= reason
  }

  /** A publisher of an organization, or a stranger whose records are in no log of theirs. */
  publish(record: Outgoing, isStrange = false): void {
    const { topic, partition } = placeOf(record)
    if (!this.broker.topics.has(topic)) return
    const to = this.broker.topic(topic).partitions[partition]
    to?.append(offset => {
      const entry = entryOf(record, offset, this.clock.now())
      if (!isStrange) this.log.add(topic, partition, entry)
      return entry
    })
  }

  /** The topics have another content than the log of the publishers from now on; or, without a time, the same. */
  setForeign(isForeign: boolean): void {
    this.#foreignSince = isForeign ? this.clock.elapsed : undefined
  }

  startProjector(): void {
    const name = `projector-${++this.#names}`
    const watcher = { onSend: () => undefined, onDone: () => undefined, onWritten: () => undefined }
    // Only projectors of other rules use the history.
    const services = { ...this.services(), watcher, history: {} as History }
    let hasEnded = false
    const projector = new Projector(
      name,
      RULES_VERSION,
      services,
      error => {
        if (hasEnded) return
        hasEnded = true
        this.#onStopped(name, error)
        projector.end()
        this.clock.after(100, () => this.#startAgain(projector))
      },
      (details, message) => this.say(`${name}: ${message} ${JSON.stringify(details)}`),
    )
    projector.host.onRequest = () => this.onRequest(projector.host)
    this.#projectors.push(projector)
  }

  /** The service manager starts a projector again that has stopped, or was killed. */
  #startAgain(projector: Projector): void {
    this.#projectors = this.#projectors.filter(one => one !== projector)
    if (!Number.isFinite(this.restartAfter)) return
    this.clock.after(this.restartAfter, () => Number.isFinite(this.restartAfter) && this.startProjector())
  }

  #onStopped(name: string, error: unknown): void {
    const code = error instanceof StopError ? error.code : 'no code'
    const detail = error instanceof StopError ? `${error.message} ${JSON.stringify(error.where)}` : stackOf(error)
    // A projector that is started again and again says the same.
    if (this.stops.at(-1)?.detail !== detail) this.say(`${name} stopped: ${detail}`)
    this.stops.push({ code, detail })
    if (!NAMED.has(code)) this.fail(`a projector stopped with ${code}: ${detail}`)
  }

  projectors(): readonly Projector[] {
    return this.#projectors
  }

  kill(host: SimulatedProcess): void {
    const projector = this.#projectors.find(one => one.host === host)
    if (projector === undefined) return
    this.say(`${projector.host.name} is killed`)
    projector.kill()
    this.#startAgain(projector)
  }

  /** Stops all projectors, and waits until nothing that they sent is under way. */
  async stopProjectors(): Promise<void> {
    this.restartAfter = Number.POSITIVE_INFINITY
    for (const projector of this.#projectors) projector.stop()
    await this.pass(20_000)
    this.#projectors = []
    this.say('all projectors are stopped')
  }

  killAll(): void {
    this.restartAfter = Number.POSITIVE_INFINITY
    for (const { host } of this.#projectors) host.kill()
  }

  services() {
    // Only projectors of other rules use the history.
    const history = {} as History
    const { clock, broker, engine, faults } = this
    return { clock, broker, engine, faults, coverage: this.#coverage, history, layouts: this.#layouts }
  }

  /** Runs a command to its end. */
  async command(told: Told, killAt?: number): Promise<Running> {
    const running = start(told, this.services(), killAt)
    this.#running.push(running)
    const isOver = (): boolean => running.ended !== undefined || running.host.isDead || this.failure !== undefined
    await this.clock.runUntil(isOver, PATIENCE)
    this.say(`${told.name}: ${outcomeOf(running)}`)
    return running
  }

  /** Lets killed commands close their files. */
  async release(): Promise<void> {
    for (const running of this.#running) running.release()
    await this.clock.runUntil(() => false, 0)
  }

  async pass(milliseconds: number): Promise<void> {
    // The clock moves only to an event.
    this.clock.after(milliseconds, () => undefined)
    await this.clock.runUntil(() => this.failure !== undefined, milliseconds)
  }

  live(): LiveDocument['body'] | undefined {
    const stored = this.engine.indices.get(controlIndexOf(PREFIX))?.documents.get(LIVE_ID)
    return stored && withPlainNames((stored.fields as LiveDocument).body)
  }

  kept(): readonly string[] {
    const live = this.live()
    return live === undefined ? [] : (live.kept ?? [live.generation])
  }

  position(generation: string, partition: number): PositionDocument['body'] | undefined {
    const stored = this.engine.indices.get(controlIndexOf(PREFIX))?.documents.get(positionId(generation, partition))
    return stored && (stored.fields as PositionDocument).body
  }

  sourceOf(generation: string): string {
    const stored = this.engine.indices.get(controlIndexOf(PREFIX))?.documents.get(generationId(generation))
    const { cluster_id, topic_id } = (stored?.fields as GenerationDocument | undefined)?.body ?? {}
    return `${generation}: ${cluster_id} ${topic_id}`
  }

  generationsOf(topic: string): readonly string[] {
    return topic === EVENTS ? this.kept() : [API_KEYS_GENERATION]
  }

  /** The furthest published position of a partition, of all generations that are kept up. */
  furthest(topic: string, partition: number): number {
    return Math.max(
      0,
      ...this.generationsOf(topic).map(generation => this.position(generation, partition)?.position ?? 0),
    )
  }

  isCaughtUp(): boolean {
    if (this.live() === undefined || this.live()?.floor === null) return false
    const isAt = (topic: string, generation: string): boolean =>
      this.broker.topics.has(topic) &&
      this.broker
        .topic(topic)
        .partitions.every(({ end }, partition) => this.position(generation, partition)?.position === end)
    return this.kept().every(generation => isAt(EVENTS, generation)) && isAt(API_KEYS, API_KEYS_GENERATION)
  }

  /** Whether all projectors that run say that they are ready. */
  areReady(): boolean {
    return this.#projectors.every(projector => Object.keys(projector.notReady()).length === 0)
  }

  async untilCaughtUp(): Promise<void> {
    await this.clock.runUntil(() => this.failure !== undefined || this.isCaughtUp(), PATIENCE)
    if (!this.isCaughtUp()) this.fail('it did not catch up')
  }

  /** Copies each shard of each index at its own moment. */
  beginSnapshot(takes: number): { readonly began: number; readonly indices: ReadonlyMap<string, Index> } {
    const indices = new Map<string, Index>()
    for (const index of this.engine.indices.values()) {
      const copy = new Index(index.name, index.definition, `uuid-${++this.#names}-of-${index.name}`)
      indices.set(index.name, copy)
      for (let shard = 0; shard < index.shards; shard++) {
        this.clock.after(this.faults.random.next() * takes, () => index.copyShardTo(shard, copy))
      }
    }
    return { began: this.clock.now(), indices }
  }

  /** All documents but balances and those of the control index, with the names of g1 for the given generation. */
  content(generation: string): string[] {
    const isOfOther = (name: string): boolean => /-g\d+-/.test(name) && !name.includes(`-${generation}-`)
    return [...this.engine.indices.values()]
      .filter(({ name }) => name !== controlIndexOf(PREFIX) && !isOfOther(name))
      .flatMap(index =>
        [...index.documents.values()]
          .filter(stored => !isBalance(stored))
          .map(stored => {
            const { kind, source } = formOf(index, stored)
            const of = index.name.includes(`-${generation}-`) ? 'events' : 'keys'
            return `${of} ${kind} ${stored.id} ${stored.version} ${source}`
          }),
      )
      .sort()
  }

  /** Returns what is wrong with a balance of a generation that is kept up; undefined if nothing is. */
  wrongBalance(): string | undefined {
    const ofKept = [...this.engine.indices.values()].filter(({ name }) =>
      this.kept().some(generation => name.includes(`-${generation}-`)),
    )
    const balances = ofKept.flatMap(({ documents }) => [...documents.values()].filter(isBalance))
    return balances
      .map(stored =>
        wrongBalance(
          stored,
          (org, position) => this.log.view(org, position),
          (org, position) => this.log.changesOf(org, position),
        ),
      )
      .find(wrong => wrong !== undefined)
  }

  /** A projector that reads another topic than the one that was projected must not say for long that it is ready. */
  #lookAtReadiness(): void {
    const { elapsed } = this.clock
    for (const projector of this.#projectors) {
      const isReady = !projector.host.isDead && Object.keys(projector.notReady()).length === 0
      if (!isReady) this.#readySince.delete(projector)
      else if (!this.#readySince.has(projector)) this.#readySince.set(projector, elapsed)
      const since = Math.max(this.#readySince.get(projector) ?? elapsed, this.#foreignSince ?? elapsed)
      if (elapsed - since > NOTICES)
        this.fail(`/readyz of ${projector.host.name} says ready, ${NOTICES / 1000} s after its topic was replaced`)
    }
    this.clock.after(1_000, () => this.#lookAtReadiness())
  }
}

/** The codes with which a projector may refuse a log that is not the one that it has read. */
const NAMED = new Set([
  'source_changed',
  'records_deleted',
  'topic_missing',
  'topic_unsuitable',
  'position_went_back',
  'index_replaced',
  'index_missing',
])

const stackOf = (error: unknown): string =>
  error instanceof Error ? String(error.stack?.split('\n').slice(0, 3).join(' ')) : 'defect'

export const outcomeOf = ({ ended, code, error, said }: Running): string => {
  if (ended === undefined) return 'killed'
  return error instanceof Error ? `refused: ${error.message}` : `ended with ${code} ${said.at(-1) ?? ''}`
}

/** Returns the documents that one projector makes of a log without any fault. */
export const quietContentOf = async (entries: Entries): Promise<string[]> => {
  const quiet = new World(createRandom(1), 2, entries)
  quiet.startProjector()
  await quiet.untilCaughtUp()
  if (quiet.failure !== undefined) throw new Error(quiet.failure)
  return quiet.content('g1')
}
