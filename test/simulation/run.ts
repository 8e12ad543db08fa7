/**
 * One schedule from its seed to a verdict: events are published while things go wrong and readers read; then everything
 * heals, all must be caught up within a bounded time, and what is stored must be what a quiet projection of the same
 * log stores.
 */

import { StopError } from '../../projector/failures.ts'
import { controlIndexOf, FIRST_GENERATION } from '../../schemas/stored/documents.ts'
import { createRandom, type Random } from '../support/random.ts'
import { Broker } from './broker.ts'
import { Clock } from './clock.ts'
import { Coverage } from './coverage.ts'
import { Crew } from './crew.ts'
import { Engine } from './elasticsearch.ts'
import { CALM, Faults } from './faults.ts'
import { History } from './history.ts'
import { Operator } from './operator.ts'
import { PREFIX, Promises } from './promises.ts'
import { Readers } from './readers.ts'
import { type Schedule, scheduleOf } from './schedule.ts'

/** Virtual milliseconds after the last fault within which everything must be caught up. */
const RECOVERY = 60_000
const QUIET_SESSION = 15_000
/** Events after which a run is one that never comes to rest. */
const EVENTS_MAX = 2_000_000

export type Verdict = { readonly failure: string | undefined; readonly coverage: Coverage; readonly trace: string }

export const runSchedule = async (seed: number): Promise<Verdict> => run(scheduleOf(seed))

/** By the seed of a history: the history, and what a quiet projection of it stores. */
const histories = new Map<number, Promise<{ readonly history: History; readonly quiet: string }>>()

const historyOf = (seed: number) => {
  const known = histories.get(seed)
  if (known !== undefined) return known
  // Schedules come in order: those before are not asked for again.
  histories.clear()
  const made = prepareHistory(seed)
  histories.set(seed, made)
  return made
}

const prepareHistory = async (seed: number) => {
  const history = new History(seed)
  const { failure, stored } = await runQuietly(history)
  if (failure !== undefined) throw new Error(`without any fault: ${failure}`)
  return { history, quiet: stored }
}

/** One projector, no faults, everything published before it starts. */
const runQuietly = async (
  history: History,
): Promise<{ readonly failure: string | undefined; readonly stored: string }> => {
  const world = createWorld(history, createRandom(1), CALM, QUIET_SESSION)
  const { broker, clock, promises, crew, engine } = world
  publishAll(world)
  crew.start(1)
  const isDone = await clock.runUntil(() => world.failure() !== undefined || promises.isCaughtUp(), RECOVERY)
  const failure = world.failure() ?? (isDone ? undefined : 'it is not caught up')
  for (const topic of broker.topics.values()) if (topic.partitions.length === 0) throw new Error('a topic is empty')
  return { failure, stored: storedIn(engine) }
}

const run = async (schedule: Schedule): Promise<Verdict> => {
  const { seed, historySeed, random, knobs, length } = schedule
  const { history, quiet } = await historyOf(historySeed)
  const world = createWorld(history, random, knobs, schedule.session)
  const { clock, coverage, crew, engine, faults, promises } = world
  const verdict = (failure: string | undefined): Verdict => {
    coverage.count('events of the clock', clock.happened)
    const trace = `${clock.happened} ${Math.round(clock.elapsed)} ${storedIn(engine).length}`
    return { failure: failure && `seed ${seed}: ${failure}`, coverage, trace }
  }
  const isOver = (): boolean => world.failure() !== undefined || clock.happened > EVENTS_MAX
  countHistory(history, coverage)

  // Mostly faults begin when everything has started: a start that takes all the time shows nothing else.
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
  if (!caughtUp) return verdict(`not caught up ${RECOVERY / 1000} s after the last fault`)
  coverage.slowestRecovery = clock.elapsed - healed

  // What was sent long ago may still arrive.
  await clock.runUntil(() => isOver() || faults.strays === 0)
  readers.stop()
  let walked = false
  void readers.walkAll().then(() => {
    walked = true
  })
  await clock.runUntil(() => isOver() || walked, RECOVERY)
  if (world.failure() !== undefined) return verdict(world.failure())
  if (!walked) return verdict('a walk did not come to its end')
  for (const generation of promises.generations()) {
    const stored = storedIn(engine, generation)
    if (stored === quiet) continue
    const what = `what is stored of ${generation} is not what a quiet projection stores`
    return verdict(`${what}: ${differing(stored, quiet)}`)
  }
  return verdict(undefined)
}

export type World = ReturnType<typeof createWorld>

const createWorld = (history: History, random: Random, knobs: Faults['knobs'], session: number) => {
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
  const engine = new Engine(clock, faults, coverage, promises)
  promises.watch(engine)
  const onStopped = (error: unknown): void => fail(`a projector stopped: ${reasonOf(error)}`)
  const crew: Crew = new Crew({ clock, broker, engine, faults, coverage, history }, random, onStopped)
  return { history, clock, coverage, faults, broker, promises, engine, crew, random, fail, failure: () => failure }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof StopError) return `${error.code}: ${error.message} ${JSON.stringify(error.where)}`
  return error instanceof Error ? `defect: ${error.stack?.split('\n').slice(0, 3).join(' ')}` : 'defect'
}

/**
 * In bursts and single records, each partition for itself, over most of the run. A burst can end within a transaction.
 */
const publish = ({ broker, clock, random, promises, coverage }: World, { length }: Schedule): void => {
  const span = length * random.pick([0.01, 0.3, 0.9, 0.9, 0.9, 0.9])
  for (const { name, partitions } of broker.topics.values()) {
    for (const [number, partition] of partitions.entries()) {
      const burst = random.pick([1, 2, 4, 20])
      const ends: number[] = []
      for (let end = 0; end < partition.entries.length; ends.push(end)) {
        end = Math.min(partition.entries.length, end + 1 + random.below(burst))
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
 * Everything that was projected of a generation, and of API keys, as text; positions differ in their time, and the rest
 * of the control index is the same. Of what is parked other rules may read more, or less, than its code.
 */
const storedIn = (engine: Engine, generation = FIRST_GENERATION): string =>
  [...engine.indices.values()]
    .filter(({ name }) => name !== controlIndexOf(PREFIX) && !isOfOther(name, generation))
    .flatMap(({ name, documents }) =>
      [...documents.values()].map(({ id, version, source, fields }) => {
        const is = name.endsWith('-parked') ? String(fields.code) : source
        return `${name.replace(`-${generation}-`, '-')} ${id} ${version} ${is}`
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
      const outcome = outcomes.get(entry)
      if (outcome?.outcome === 'parked') coverage.count('records parked')
      if (outcome?.outcome === 'duplicate') coverage.count('duplicates')
      if (outcome?.outcome !== 'applied') continue
      coverage.count('records applied')
      if (/"supersedes_id":\s*"/.test(String(entry.published.value))) coverage.count('payouts superseded')
    }
  }
}
