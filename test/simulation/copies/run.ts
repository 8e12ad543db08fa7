/**
 * Copies of Elasticsearch under load: each shard of each index is copied at its own moment after the begin of the copy,
 * while projectors write. Later some or all indices are restored, `rewind` goes back, and projectors go on. In the end
 * the documents must equal those of a projection from nothing. Half of the runs copy and restore a second time, mostly
 * while the records are read again.
 */

import { RULES_VERSION } from '../../../core/ledger/rules/rules.ts'
import type { ReadCheckpoint } from '../../../core/reading/checkpoint/read-checkpoint.ts'
import { createReaders } from '../../../core/reading/readers.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { Refusal } from '../../../core/runtime/refusals.ts'
import { uncounted } from '../../../core/store/read/scope.ts'
import {
  API_KEYS_GENERATION,
  controlIndexOf,
  FIRST_GENERATION,
  type PositionDocument,
  positionId,
} from '../../../schemas/stored/documents.ts'
import { CommandError } from '../../../tools/failures.ts'
import { adopt } from '../../../tools/generations/adopt.ts'
import { rewind } from '../../../tools/generations/rewind.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { scopeOf } from '../../support/read-scope.ts'
import { isBalance, wrongBalance } from '../balances.ts'
import { Broker } from '../broker.ts'
import { Clock, SimulatedProcess } from '../clock.ts'
import { openSimulatedCluster } from '../cluster.ts'
import { Coverage } from '../coverage.ts'
import { SimulatedElasticsearch } from '../elasticsearch.ts'
import { CALM, Faults } from '../faults.ts'
import { API_KEYS, EVENTS, History } from '../history.ts'
import { createKafka } from '../kafka.ts'
import { formOf, type Layouts, undividedLayoutsOf } from '../layouts.ts'
import { createLink } from '../link.ts'
import { Projector, settings } from '../projector.ts'
import { PREFIX } from '../promises.ts'
import { checkpointKey } from '../proofs.ts'
import { createSearches, noIndexChecks } from '../searches.ts'
import { Index, type Stored } from '../stored.ts'
import { borderFrom } from '../unread-batches.ts'

const MINUTE = 60_000
const GROUP = settings.KAFKA_GROUP_ID
/** Virtual milliseconds in which a command ends and everything catches up. */
const PATIENCE = 20 * MINUTE
const SESSION = 10_000

export type CopyVerdict = {
  readonly failure: string | undefined
  /** Of each restore: how many records before the positions it went back to were not read again. */
  readonly spared: readonly number[]
  readonly adopted: number
}

export const runCopies = async (seed: number): Promise<CopyVerdict> => {
  const random = createRandom(seed)
  const history = new History(seed)
  const layouts = undividedLayoutsOf(seed)
  const quiet = new World(history, createRandom(1), 2, layouts)
  quiet.publishAll()
  quiet.startProjector()
  await quiet.untilCaughtUp()
  const wanted = quiet.content()
  const signed = await quiet.checkpoints()
  const unsigned = history.organizations.length - signed.length
  const unable = quiet.failure ?? (unsigned > 0 ? `${unsigned} organizations have no checkpoint` : undefined)
  if (unable !== undefined) return { failure: `without a copy: ${unable}`, spared: [], adopted: 0 }

  const world = new World(history, random, random.pick([1, 5, 40]), layouts)
  // Most records are published while the copy is taken, or shortly before or after it.
  world.publishWithin(random.pick([7, 12]) * MINUTE)
  for (let projectors = 1 + random.below(2); projectors > 0; projectors--) world.startProjector()
  const spared: number[] = []
  let adopted = 0
  const restores = random.pick([1, 2])
  for (let restore = 0; restore < restores && world.failure === undefined; restore++) {
    const before =
      restore === 0 ? (2 + 2 * random.next()) * MINUTE : random.next() * random.pick([50, 2_000, 3 * MINUTE])
    await world.pass(before)
    // This process remembers how far it has read.
    await world.checkpoints()
    const copy = world.beginCopy(random.pick([50, 20_000, 3 * MINUTE, 3 * MINUTE]))
    await world.pass(copy.takes + random.next() * random.pick([10, 2 * MINUTE]))
    await world.stopProjectors()
    world.restore(copy, random.chance(0.3))
    const went = await world.rewindOrAdopt(copy.began)
    if (went === undefined) adopted++
    else spared.push(went)
    world.startProjector()
  }
  await world.untilPublished()
  await world.untilCaughtUp()
  const again = await world.checkpoints()
  const failure =
    world.failure ??
    differenceOf(world.content(), wanted) ??
    (again.join('\n') === signed.join('\n') ? undefined : `${again.join('\n')} for ${signed.join('\n')}`)
  return { failure: failure && `seed ${seed}: ${failure}`, spared, adopted }
}

type Copy = { readonly began: number; readonly takes: number; readonly indices: Map<string, Index> }

class World {
  readonly #clock = new Clock()
  readonly #coverage = new Coverage()
  readonly #faults: Faults
  readonly #engine: SimulatedElasticsearch
  readonly #broker: Broker
  readonly #history: History
  readonly #layouts: Layouts
  readonly #random: Random
  #projectors: Projector[] = []
  #names = 0
  failure: string | undefined
  #checkpoint: ReadCheckpoint | undefined

  constructor(history: History, random: Random, latency: number, layouts: Layouts) {
    this.#history = history
    this.#layouts = layouts
    this.#random = random
    this.#faults = new Faults(random, { ...CALM, latency })
    const observer = { onStored: () => undefined, onRefreshed: () => undefined }
    this.#engine = new SimulatedElasticsearch(this.#clock, this.#faults, this.#coverage, observer)
    this.#broker = new Broker(history.log, SESSION, this.#clock, this.#coverage, () => undefined)
  }

  startProjector(): void {
    const watcher = { onSend: () => undefined, onDone: () => undefined, onWritten: () => undefined }
    const onStopped = (error: unknown): void => {
      const code = error instanceof StopError ? `${error.code}: ` : ''
      this.failure ??= `a projector stopped: ${code}${error instanceof Error ? error.message : 'defect'}`
    }
    const name = `projector-${++this.#names}`
    this.#projectors.push(new Projector(name, RULES_VERSION, { ...this.#services(), watcher }, onStopped))
  }

  /** Stops or kills the projectors, and waits until nothing that they sent is under way. */
  async stopProjectors(): Promise<void> {
    for (const projector of this.#projectors) {
      if (this.#random.chance(0.5)) projector.kill()
      else projector.stop()
    }
    this.#projectors = []
    await this.pass(2 * SESSION)
  }

  publishWithin(span: number): void {
    for (const { partitions } of this.#broker.topics.values()) {
      for (const partition of partitions) {
        const times = partition.entries.map(() => this.#random.next() * span).sort((a, b) => a - b)
        // A batch is published whole: more than one entry then, and fewer later.
        const publishNext = (): void => {
          if (partition.end < partition.entries.length) partition.end = borderFrom(partition.entries, partition.end + 1)
        }
        for (const time of times) this.#clock.after(time, publishNext)
      }
    }
  }

  publishAll(): void {
    for (const { partitions } of this.#broker.topics.values()) {
      for (const partition of partitions) partition.end = partition.entries.length
    }
  }

  /** Lets the time pass until everything is published, so that no later moment publishes more. */
  async untilPublished(): Promise<void> {
    const topics = [...this.#broker.topics.values()]
    const isPublished = (): boolean =>
      topics.every(({ partitions }) => partitions.every(({ end, entries }) => end === entries.length))
    await this.#clock.runUntil(() => this.failure !== undefined || isPublished(), PATIENCE)
  }

  async pass(milliseconds: number): Promise<void> {
    await this.#clock.runUntil(() => this.failure !== undefined, milliseconds)
  }

  async untilCaughtUp(): Promise<void> {
    const isCaughtUp = (): boolean =>
      [
        { topic: EVENTS, generation: FIRST_GENERATION },
        { topic: API_KEYS, generation: API_KEYS_GENERATION },
      ].every(({ topic, generation }) =>
        this.#broker
          .topic(topic)
          .partitions.every(({ end }, partition) => this.#position(generation, partition) === end),
      )
    await this.#clock.runUntil(() => this.failure !== undefined || isCaughtUp(), PATIENCE)
    if (!isCaughtUp()) this.failure ??= 'it did not catch up'
  }

  #checkBalance(stored: Stored): void {
    this.failure ??= wrongBalance(
      stored,
      (org, position) => this.#history.recordsAt(org, position),
      (org, position) => this.#history.eventsOf(org, position).length,
    )
  }

  /**
   * Returns the checkpoints of all organizations without their times, from one API process. None of an organization
   * that cannot be read yet.
   */
  async checkpoints(): Promise<string[]> {
    const { search, multiGet } = createSearches(this.#clock, this.#engine, this.#faults)
    const later = (milliseconds: number, run: () => void) => this.#clock.after(milliseconds, run)
    let signatures = 0
    this.#checkpoint ??= createReaders({
      prefix: PREFIX,
      reads: uncounted({ search, multiGet }),
      indexChecks: noIndexChecks,
      ...this.#clock.clocks,
      later,
      checkpointKey,
      checkpointNow: () => this.#clock.now() + MINUTE * signatures++,
    }).readers.checkpoint
    const notes: string[] = []
    for (const org of this.#history.organizations) {
      let ended = false
      this.#checkpoint(scopeOf(org), () => undefined)
        .then(({ note }) => void notes.push(note.replace(/^time .*$[\s\S]*/m, '')))
        .catch(error => {
          if (!(error instanceof Refusal)) this.failure ??= `a checkpoint failed: ${String(error)}`
        })
        .finally(() => {
          ended = true
        })
      await this.#clock.runUntil(() => ended, PATIENCE)
    }
    return notes
  }

  beginCopy(takes: number): Copy {
    const indices = new Map<string, Index>()
    for (const index of this.#engine.indices.values()) {
      const copy = new Index(index.name, index.definition, `uuid-${++this.#names}-of-${index.name}`)
      indices.set(index.name, copy)
      for (let shard = 0; shard < index.shards; shard++) {
        this.#clock.after(this.#random.next() * takes, () => index.copyShardTo(shard, copy))
      }
    }
    return { began: this.#clock.now(), takes, indices }
  }

  /** Replaces all indices by their copies, or some of them. */
  restore({ indices }: Copy, someOnly: boolean): void {
    for (const [name, copy] of indices) {
      if (!someOnly || this.#random.chance(0.5)) this.#engine.indices.set(name, copy.copy())
    }
  }

  /**
   * Rewinds; the first attempt may be killed. If nothing old enough is kept, adopts.
   * @returns the number of records that are not read again; undefined if it adopted
   */
  async rewindOrAdopt(snapshotStart: number): Promise<number | undefined> {
    const options = { snapshotStart, json: true }
    if (this.#random.chance(0.3))
      await this.#command(context => rewind(options, context, GROUP), 1 + this.#random.below(30))
    const error = await this.#command(context => rewind(options, context, GROUP))
    if (error === undefined) {
      return this.#broker
        .topic(EVENTS)
        .partitions.reduce((sum, _, partition) => sum + this.#position(FIRST_GENERATION, partition), 0)
    }
    if (!(error instanceof CommandError && error.message.includes('no positions'))) this.failure ??= `rewind: ${error}`
    const refused = await this.#command(context => adopt({ json: true }, context, GROUP))
    if (refused !== undefined) this.failure ??= `adopt: ${refused}`
    return undefined
  }

  /** All documents but those of the control index, and whether searches find them. */
  content(): string[] {
    return [...this.#engine.indices.values()]
      .filter(({ name }) => name !== controlIndexOf(PREFIX))
      .flatMap(index =>
        [...index.documents.values()].flatMap(document => {
          if (isBalance(document)) {
            this.#checkBalance(document)
            return []
          }
          const { name, searchable } = index
          const { kind, source } = formOf(index, document)
          const isListed = /-(?:reps|periods|payouts|payroll_files)$/.test(name)
          const found = searchable[document.shard]?.get(document.id)
          const state = isListed && found?.version !== document.version ? 'not searchable' : ''
          return `${name.includes('-g1-')} ${kind} ${document.id} ${document.version} ${source} ${state}`
        }),
      )
      .sort()
  }

  /** @returns the error of the command */
  async #command(run: (context: Parameters<typeof rewind>[1]) => Promise<unknown>, killAt?: number): Promise<unknown> {
    const host = new SimulatedProcess(this.#clock, `command-${++this.#names}`)
    let steps = 0
    host.onStep = () => {
      if (++steps === killAt) host.kill()
    }
    const watcher = { onSend: () => undefined, onDone: () => undefined, onWritten: () => undefined }
    const link = createLink(host, this.#engine, this.#faults, this.#coverage, watcher)
    const { kafka } = createKafka(host, this.#broker, this.#faults, this.#coverage)
    let ended: { readonly error: unknown } | undefined
    run({
      send: link.send,
      prefix: PREFIX,
      out: () => undefined,
      say: () => undefined,
      sleep: milliseconds => host.sleep(milliseconds, new AbortController().signal),
      ...this.#clock.clocks,
      elapsed: () => this.#clock.elapsed,
      kafka,
      topics: { events: EVENTS, 'api-keys': API_KEYS },
      openCluster: async topic => openSimulatedCluster(host, this.#broker, this.#faults, topic),
    }).then(
      () => {
        ended = { error: undefined }
      },
      (error: unknown) => {
        ended = { error }
      },
    )
    await this.#clock.runUntil(() => ended !== undefined || host.isDead, PATIENCE)
    if (host.isDead) return undefined
    return ended === undefined ? new Error('it never ended') : ended.error
  }

  #position(generation: string, partition: number): number {
    const stored = this.#engine.indices.get(controlIndexOf(PREFIX))?.documents.get(positionId(generation, partition))
    return stored === undefined ? -1 : (stored.fields as PositionDocument).body.position
  }

  #services() {
    return {
      clock: this.#clock,
      broker: this.#broker,
      engine: this.#engine,
      faults: this.#faults,
      coverage: this.#coverage,
      history: this.#history,
      layouts: this.#layouts,
    }
  }
}

const differenceOf = (got: readonly string[], wanted: readonly string[]): string | undefined => {
  const [extra] = [...new Set(got).difference(new Set(wanted))]
  const [missing] = [...new Set(wanted).difference(new Set(got))]
  if (extra === undefined && missing === undefined && got.length === wanted.length) return undefined
  return `it differs from a projection from nothing: ${extra?.slice(0, 200) ?? 'nothing'} for ${missing?.slice(0, 200) ?? 'nothing'}`
}

/** Runs seeds one after the other until one fails. */
export const runManyCopies = async (first: number, count: number) => {
  const all = { failure: undefined as string | undefined, spared: [] as number[], adopted: 0 }
  for (let seed = first; seed < first + count && all.failure === undefined; seed++) {
    const { failure, spared, adopted } = await runCopies(seed)
    all.failure = failure
    all.spared.push(...spared)
    all.adopted += adopted
  }
  return all
}
