/**
 * Runs one schedule and returns a verdict. Events are published while faults happen and clients read. Then all faults
 * end: everything must catch up within `RECOVERY`, and the stored documents must equal those of a projection of the
 * same log without faults.
 */

import { StopError } from '../../core/runtime/failures.ts'
import { controlIndexOf, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { createRandom, type Random } from '../support/random.ts'
import { isBalance } from './balances.ts'
import { Broker } from './broker.ts'
import { Clock } from './clock.ts'
import { Coverage } from './coverage.ts'
import { Crew } from './crew.ts'
import { readAfterDrop } from './dropped.ts'
import { SimulatedElasticsearch } from './elasticsearch.ts'
import { CALM, Faults } from './faults.ts'
import { History } from './history.ts'
import { formOf, type Layouts, layoutsOf, UPGRADED } from './layouts.ts'
import { Operator } from './operator.ts'
import { PREFIX, Promises } from './promises.ts'
import { Readers } from './readers.ts'
import { type Schedule, scheduleOf } from './schedule.ts'
import { borderFrom } from './unread-batches.ts'

/** Virtual milliseconds after the last fault in which everything must catch up. */
const RECOVERY = 60_000
const QUIET_SESSION = 15_000
/** After this many events a run counts as endless. */
const EVENTS_MAX = 2_000_000

export type Verdict = { readonly failure: string | undefined; readonly coverage: Coverage; readonly trace: string }

export const runSchedule = async (seed: number): Promise<Verdict> => run(scheduleOf(seed))

/** Each history by its seed, with the documents that a projection without faults stores. */
const histories = new Map<number, Promise<{ readonly history: History; readonly quiet: string }>>()

const historyOf = (seed: number) => {
  const known = histories.get(seed)
  if (known !== undefined) return known
  // Schedules run in order, so that earlier histories are not needed again.
  histories.clear()
  const made = prepareHistory(seed)
  histories.set(seed, made)
  return made
}

/** @throws Error if the wrong times of an organization change a document of another one */
export const prepareHistory = async (seed: number) => {
  const history = new History(seed)
  const { failure, stored, others } = await runQuietly(history)
  if (failure !== undefined) throw new Error(`without any fault: ${failure}`)
  if (history.stranger !== undefined) {
    const right = await runQuietly(new History(seed, 'right'))
    if (right.failure !== undefined) throw new Error(`without any fault, with right times: ${right.failure}`)
    const what = `history ${seed}: the times of ${history.stranger} change another organization`
    if (right.others !== others) throw new Error(`${what}: ${differing(others, right.others)}`)
  }
  return { history, quiet: stored, others }
}

/** Runs one projector without faults. Everything is published before it starts. */
const runQuietly = async (
  history: History,
): Promise<{ readonly failure: string | undefined; readonly stored: string; readonly others: string }> => {
  const world = createWorld(history, createRandom(1), CALM, QUIET_SESSION, UPGRADED)
  const { broker, clock, promises, crew, engine } = world
  publishAll(world)
  crew.start(1)
  const isDone = await clock.runUntil(() => world.failure() !== undefined || promises.isCaughtUp(), RECOVERY)
  const failure = world.failure() ?? (isDone ? undefined : 'it did not catch up')
  for (const topic of broker.topics.values()) if (topic.partitions.length === 0) throw new Error('a topic is empty')
  return { failure, stored: storedIn(engine), others: othersIn(engine, history.stranger) }
}

const run = async (schedule: Schedule): Promise<Verdict> => {
  const { seed, historySeed, random, knobs, length } = schedule
  const { history, quiet } = await historyOf(historySeed)
  const world = createWorld(history, random, knobs, schedule.session, layoutsOf(seed))
  const { clock, coverage, crew, engine, faults, promises } = world
  const verdict = (failure: string | undefined): Verdict => {
    coverage.count('events of the clock', clock.happened)
    const trace = `${clock.happened} ${Math.round(clock.elapsed)} ${storedIn(engine).length}`
    return { failure: failure && `seed ${seed}: ${failure}`, coverage, trace }
  }
  const isOver = (): boolean => world.failure() !== undefined || clock.happened > EVENTS_MAX
  countHistory(history, coverage)

  // Most schedules begin their faults after the start: otherwise a long start would hide everything else.
  if (schedule.startsWell) {
    faults.knobs = CALM
    crew.start(schedule.projectors)
    await clock.runUntil(() => isOver() || promises.hasPosition())
    await clock.runUntil(isOver, random.next() * 5_000)
    faults.knobs = knobs
  } else crew.startOneByOne(schedule.projectors)
  publish(world, schedule)
  crew.follow(schedule)
  const { second } = schedule
  const operator =
    second && new Operator(second, { ...world, startOther: () => crew.startOther() }, createRandom(seed ^ 0x68e31da4))
  operator?.follow()
  const readers = new Readers({ ...world, random: createRandom(seed ^ 0x9747b28c) }, schedule.readPause)
  const begun = clock.elapsed
  await clock.runUntil(() => isOver() || promises.hasPosition(), length)
  readers.start(schedule.walkers)
  await clock.runUntil(isOver, Math.max(0, begun + length - clock.elapsed))

  faults.end()
  publishAll(world)
  crew.heal(schedule.projectors)
  operator?.heal()
  const healed = clock.elapsed
  const isCaughtUp = (): boolean => promises.isCaughtUp() && operator?.isDone !== false
  const caughtUp = await clock.runUntil(() => isOver() || isCaughtUp(), RECOVERY)
  if (world.failure() !== undefined) return verdict(world.failure())
  if (!caughtUp) return verdict(`it did not catch up in ${RECOVERY / 1000} s after the last fault`)
  coverage.slowestRecovery = clock.elapsed - healed

  // Requests that were sent long ago may still arrive.
  await clock.runUntil(() => isOver() || faults.strays === 0)
  readers.stop()
  let walked = false
  void readers.walkAll().then(() => {
    walked = true
  })
  await clock.runUntil(() => isOver() || walked, RECOVERY)
  if (world.failure() !== undefined) return verdict(world.failure())
  if (!walked) return verdict('a walk did not end')
  for (const generation of promises.generations()) {
    const stored = storedIn(engine, generation)
    if (stored === quiet) continue
    const what = `the documents of ${generation} differ from those of a projection without faults`
    return verdict(`${what}: ${differing(stored, quiet)}`)
  }
  // Generations with other rules need the operator's own order of steps.
  if (operator === undefined || second?.rules !== 'same') return verdict(undefined)
  let read: { readonly wrong: string | undefined } | undefined
  void readAfterDrop(world, operator).then(wrong => {
    read = { wrong }
  })
  await clock.runUntil(() => isOver() || read !== undefined, RECOVERY)
  return verdict(world.failure() ?? (read ? read.wrong : 'a read after a drop did not end'))
}

export type World = ReturnType<typeof createWorld>

const createWorld = (history: History, random: Random, knobs: Faults['knobs'], session: number, layouts: Layouts) => {
  const clock = new Clock()
  const coverage = new Coverage()
  coverage.count('schedules')
  const faults = new Faults(random, knobs)
  let failure: string | undefined
  const fail = (reason: string): void => {
    failure ??= `${reason} (after ${(clock.elapsed / 1000).toFixed(3)} s)`
  }
  const broker = new Broker(history.log, session, clock, coverage, from => crew.onTaken(from))
  const promises = new Promises(history, broker, clock, createRandom(1), coverage, fail)
  const engine = new SimulatedElasticsearch(clock, faults, coverage, promises)
  promises.watch(engine)
  const onStopped = (error: unknown): void => fail(`a projector stopped: ${reasonOf(error)}`)
  const crew: Crew = new Crew({ clock, broker, engine, faults, coverage, history, layouts }, random, onStopped)
  return {
    history,
    layouts,
    clock,
    coverage,
    faults,
    broker,
    promises,
    engine,
    crew,
    random,
    fail,
    failure: () => failure,
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof StopError) return `${error.code}: ${error.message} ${JSON.stringify(error.where)}`
  return error instanceof Error ? `defect: ${error.stack?.split('\n').slice(0, 3).join(' ')}` : 'defect'
}

/** Publishes bursts and single records, each partition independently. A burst can end inside a transaction. */
const publish = ({ broker, clock, random, promises, coverage }: World, { length }: Schedule): void => {
  const span = length * random.pick([0.01, 0.3, 0.9, 0.9, 0.9, 0.9])
  for (const { name, partitions } of broker.topics.values()) {
    for (const [number, partition] of partitions.entries()) {
      const burst = random.pick([1, 2, 4, 20])
      const ends: number[] = []
      for (let end = 0; end < partition.entries.length; ends.push(end)) {
        end = borderFrom(partition.entries, Math.min(partition.entries.length, end + 1 + random.below(burst)))
      }
      const times = ends.map(() => random.next() * span).sort((a, b) => a - b)
      for (const [place, end] of ends.entries()) {
        if (partition.entries[end]?.kind === 'control') coverage.count('transactions left open for a while')
        clock.after(times[place] ?? 0, () => {
          partition.end = end
          promises.onEnd(name, number, end)
        })
      }
    }
  }
}

const publishAll = ({ broker, promises }: World): void => {
  for (const { name, partitions } of broker.topics.values()) {
    for (const [number, partition] of partitions.entries()) {
      if (partition.end === partition.entries.length) continue
      partition.end = partition.entries.length
      promises.onEnd(name, number, partition.end)
    }
  }
}

/**
 * Returns the documents of a generation and of the API keys as text, without the control index: times differ. Of a
 * parked record only its code: other rules can store other fields.
 */
const storedIn = (engine: SimulatedElasticsearch, generation = FIRST_GENERATION): string =>
  [...engine.indices.values()]
    .filter(({ name }) => name !== controlIndexOf(PREFIX) && !isOfOther(name, generation))
    .flatMap(index =>
      [...index.documents.values()].flatMap(stored => {
        // Not every projector has made the same ones yet; each one is compared with the model when it is stored.
        if (isBalance(stored)) return []
        const { kind, source } = formOf(index, stored)
        const is = kind === 'parked' ? String(stored.fields.code) : source
        const of = index.name.includes(`-${generation}-`) ? 'events' : 'keys'
        return `${of} ${kind} ${stored.id} ${stored.version} ${is}`
      }),
    )
    .sort()
    .join('\n')

/** Returns all documents that are not of this organization: from them, all answers to the others are made. */
const othersIn = (engine: SimulatedElasticsearch, stranger: string | undefined): string =>
  [...engine.indices.values()]
    .filter(({ name }) => name !== controlIndexOf(PREFIX))
    .flatMap(({ name, documents }) =>
      [...documents.values()].flatMap(({ id, version, source, fields }) => {
        const { key } = (fields.body ?? {}) as { readonly key?: string | null }
        // A parked record of the stranger need not have its organization, and a batch that nobody reads has no key.
        const isOfStranger =
          fields.org_id === stranger ||
          fields.code === 'batch_undecodable' ||
          (name.endsWith('-parked') && String(Buffer.from(key ?? '', 'base64')) === stranger)
        return isOfStranger ? [] : [`${name} ${id} ${version} ${source}`]
      }),
    )
    .sort()
    .join('\n')

const isOfOther = (name: string, generation: string): boolean => /-g\d-/.test(name) && !name.includes(`-${generation}-`)

const differing = (stored: string, quiet: string): string => {
  const wanted = new Set(quiet.split('\n'))
  const got = new Set(stored.split('\n'))
  const [missing] = [...wanted.difference(got)]
  const [extra] = [...got.difference(wanted)]
  return `${extra?.slice(0, 200) ?? 'nothing'} for ${missing?.slice(0, 200) ?? 'nothing'}`
}

const countHistory = ({ log, outcomes }: History, coverage: Coverage): void => {
  for (const entries of Object.values(log).flat()) {
    for (const entry of entries) {
      if (entry.kind === 'record') coverage.count('records published')
      if (entry.kind === 'aborted') coverage.count('records aborted')
      if (entry.batch !== undefined)
        coverage.count(
          entry.kind === 'record'
            ? 'records of batches that nobody reads'
            : 'records of aborted batches that nobody reads',
        )
      const outcome = outcomes.get(entry)
      if (outcome?.outcome === 'parked') coverage.count('records parked')
      if (outcome?.outcome === 'duplicate') coverage.count('duplicates')
      if (outcome?.outcome !== 'applied') continue
      coverage.count('records applied')
      if (/"supersedes_id":\s*"/.test(String(entry.published.value))) coverage.count('payouts superseded')
    }
  }
}
