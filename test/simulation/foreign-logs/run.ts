/**
 * Runs one plan and returns a verdict. Publishers publish and readers read; a topic is lost at a request of a
 * projector; a stranger publishes into the one that was made anew; an operator restores the log, and takes it over with
 * the commands of the handbook. Then every generation must have the documents of a projection from nothing.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StopError } from '../../../core/runtime/failures.ts'
import { CommandError } from '../../../tools/failures.ts'
import type { Outgoing } from '../../support/events.ts'
import type { SimulatedProcess } from '../clock.ts'
import { undividedLayoutsOf } from '../layouts.ts'
import { bringBack, hasAllThatWasRead } from './operator.ts'
import { type Plan, planOf } from './plan.ts'
import { createOrganizations, recordsAfter, recordsBefore, strangeRecords } from './publishers.ts'
import { Readers } from './readers.ts'
import { placeOf, RealLog } from './real-log.ts'
import { quietContentOf, World } from './world.ts'

export type Outcome = 'restored' | 'went on' | 'refused'
export type LogVerdict = {
  readonly seed: number
  readonly failure: string | undefined
  readonly outcome: Outcome | undefined
  readonly trace: readonly string[]
  /** Whether everything that was published had been projected when the topics were lost. */
  readonly wasIdle: boolean
  /** The codes of the projectors that stopped. */
  readonly stops: readonly string[]
  readonly answers: number
}

const MINUTE = 60_000

export const runForeignLog = async (seed: number, only?: Partial<Plan>): Promise<LogVerdict> => {
  const plan = planOf(seed, only)
  const organizations = createOrganizations(plan.random)
  const world = new World(plan.random, plan.latency, undefined, undividedLayoutsOf(seed))
  world.broker.hasTopicIds = plan.hasTopicIds
  const directory = mkdtempSync(join(tmpdir(), 'foreign-log-'))
  const readers = new Readers(world, organizations, seed)
  try {
    const outcome = await carryOut(plan, world, readers, organizations, directory)
    const failure = world.failure && `seed ${seed}: ${world.failure}`
    const stops = world.stops.map(({ code }) => code)
    const { trace, wasIdle } = world
    return { seed, failure, outcome, trace, wasIdle, stops, answers: readers.answers }
  } finally {
    readers.stop()
    world.killAll()
    await world.release()
    rmSync(directory, { recursive: true })
  }
}

const carryOut = async (
  plan: Plan,
  world: World,
  readers: Readers,
  organizations: ReturnType<typeof createOrganizations>,
  directory: string,
): Promise<Outcome | undefined> => {
  const { random } = plan
  const { kept, tail } = recordsBefore(organizations)
  for (let started = 0; started < plan.projectors; started++) world.startProjector()
  await publishWithin(world, kept, random.pick([10, 2_000]))
  await world.untilCaughtUp()
  if (plan.hasSpare) await makeSpare(world)
  if (plan.snapshot !== 'none') await world.pass(2 * MINUTE)
  const snapshot = world.beginSnapshot(random.pick([50, 5_000]))
  await world.pass(random.next() * random.pick([100, 10_000]))
  if (world.failure !== undefined) return undefined

  const lost = await loseTopics(plan, world, tail, strangeRecords(organizations, plan.stranger === 'much'))
  await world.pass(plan.noticedAfter)
  if (world.failure !== undefined) return undefined
  const after = recordsAfter(organizations)
  if (plan.kind === 'cut' && (await goesOn(plan, world, after, random.pick([10, 4_000]))))
    return finish(world, readers, 'went on')
  if (world.failure !== undefined) return undefined
  const isBack = await bringBack(plan, world, { directory, lost, snapshot })
  if (world.failure !== undefined) return undefined
  if (!isBack) return 'refused'
  const stopped = world.stops.length
  for (let started = 0; started < plan.projectors; started++) world.startProjector()
  await publishWithin(world, after, random.pick([10, 4_000]))
  await world.untilCaughtUp()
  const again = world.stops[stopped]
  if (again !== undefined) world.fail(`a projector stopped after the log was taken over: ${again.detail}`)
  return finish(world, readers, 'restored')
}

/** Publishes each record at its own moment, in order. */
const publishWithin = async (world: World, records: readonly Outgoing[], span: number): Promise<void> => {
  const times = records.map(() => world.faults.random.next() * span).sort((a, b) => a - b)
  for (const [place, record] of records.entries()) world.clock.after(times[place] ?? 0, () => world.publish(record))
  await world.pass(span + 1)
}

const makeSpare = async (world: World): Promise<void> => {
  const rebuilt = await world.command({ name: 'rebuild' })
  const verified = await world.command({ name: 'verify', a: 'g1', b: 'g2' })
  if (rebuilt.code !== 0 || verified.code !== 0) world.fail('the spare generation could not be made')
  await world.untilCaughtUp()
}

/**
 * Publishes the tail, and loses the topics at the planned request of a projector.
 * @returns the log of the publishers at the loss
 */
const loseTopics = async (
  plan: Plan,
  world: World,
  tail: readonly Outgoing[],
  strange: readonly Outgoing[],
): Promise<RealLog> => {
  const { clock, faults } = world
  let isLost = false
  let lost = world.log
  let published = 0
  const lose = (host?: SimulatedProcess): void => {
    if (isLost) return
    isLost = true
    world.onRequest = () => undefined
    world.say(`${plan.topics.join(' and ')} ${plan.kind === 'cut' ? 'lose their last records' : 'are lost'}`)
    lost = new RealLog(world.log.entries)
    world.wasIdle = published === tail.length && world.isCaughtUp()
    if (plan.kind === 'cut') cutTopics(plan, world)
    else makeAnew(plan, world, strange)
    if (plan.kind !== 'cut') world.restartAfter = plan.restartAfter
    if (plan.killed === 'all') for (const one of world.projectors()) world.kill(one.host)
    else if (plan.killed === 'one' && host) world.kill(host)
  }
  let requests = 0
  world.onRequest = host => {
    if (requests++ < plan.request) return
    world.onRequest = () => undefined
    if (plan.moment === 'before') lose(host)
    else {
      const later = plan.moment === 'during' ? faults.delay() : 2 * faults.delay() + plan.latency
      clock.after(later, () => lose(host))
    }
  }
  for (const record of tail) {
    const { topic } = placeOf(record)
    clock.after(faults.random.next() * 20, () => {
      published++
      if (!isLost && plan.topics.includes(topic)) world.publish(record)
    })
  }
  await clock.runUntil(() => isLost || world.failure !== undefined, 20_000)
  lose()
  return lost
}

/** The topics are deleted, and created again a while later. A stranger publishes from then on. */
const makeAnew = (plan: Plan, world: World, strange: readonly Outgoing[]): void => {
  const { clock, broker, faults } = world
  for (const topic of plan.topics) {
    const { length } = broker.topic(topic).partitions
    broker.delete(topic)
    clock.after(plan.gone, () => world.isBeingRestored || broker.create(topic, length))
  }
  world.setForeign(true)
  if (plan.stranger === 'none') return
  const span = faults.random.pick([0, 1_000, 20_000])
  for (const record of strange) {
    const { topic } = placeOf(record)
    if (!plan.topics.includes(topic)) continue
    clock.after(plan.gone + 1 + faults.random.next() * span, () => {
      if (!world.isBeingRestored) world.publish(record, true)
    })
  }
}

/**
 * The broker goes away and comes back without its last records. The topics keep their ids. Publishers go on at the new
 * ends with other records.
 */
const cutTopics = (plan: Plan, world: World): void => {
  const { broker, clock, log, faults } = world
  faults.kafkaIsAway = true
  clock.after(plan.gone + 200, () => {
    faults.kafkaIsAway = false
    for (const projector of world.projectors()) projector.reconnect()
  })
  const entries = Object.fromEntries(
    Object.entries(log.entries).map(([topic, partitions]) => [
      topic,
      partitions.map((all, partition) => {
        if (!plan.topics.includes(topic)) return all
        const published = world.furthest(topic, partition)
        // Mostly nothing that was published is lost; sometimes some of it.
        const least = faults.random.chance(0.8) ? published : Math.max(0, published - 2)
        const end = least + faults.random.below(Math.max(0, all.length - least) + 1)
        broker.topic(topic).partitions[partition]?.cut(end)
        return all.slice(0, end)
      }),
    ]),
  )
  world.logs.push(new RealLog(entries))
}

/**
 * Publishers go on after a cut. The operator runs `adopt` before projectors start, or only after they have refused.
 * @returns whether projectors go on, too; otherwise they have refused
 */
const goesOn = async (plan: Plan, world: World, after: readonly Outgoing[], span: number): Promise<boolean> => {
  await world.stopProjectors()
  if (!plan.adoptsFirst) {
    const stopped = await startBeside(plan, world, after, span)
    if (world.failure !== undefined) return false
    if (stopped === 0) return true
    await world.stopProjectors()
  }
  const { code, error, ended } = await world.command({ name: 'adopt' })
  if (ended === undefined || (error !== undefined && reasonOf(error).startsWith('not a refusal')))
    world.fail(`adopt after a cut: ${reasonOf(error)}`)
  if (code !== 0) return false
  const isRead = hasAllThatWasRead(world, world.log.entries)
  const stopped = await startBeside(plan, world, plan.adoptsFirst ? after : [], span)
  if (stopped > 0 && isRead) world.fail(`projectors refuse after adopt: ${world.stops.at(-1)?.detail}`)
  return stopped === 0
}

/** Starts projectors while publishers go on. @returns how often projectors have refused */
const startBeside = async (plan: Plan, world: World, after: readonly Outgoing[], span: number): Promise<number> => {
  const stopped = world.stops.length
  for (let started = 0; started < plan.projectors; started++) world.startProjector()
  await publishWithin(world, after, span)
  await world.clock.runUntil(() => world.failure !== undefined || world.isCaughtUp(), MINUTE)
  if (world.stops.length > stopped) return world.stops.length - stopped
  if (!world.isCaughtUp()) await dropSpares(world)
  await world.untilCaughtUp()
  // The periodic checks have their time.
  await world.pass(30_000)
  return world.stops.length - stopped
}

/** A spare generation that has read more than the live one is refused alone. */
const dropSpares = async (world: World): Promise<void> => {
  for (const generation of world.kept()) {
    if (generation === world.live()?.generation) continue
    const { code, error } = await world.command({ name: 'drop', generation })
    if (code !== 0) world.fail(`drop of ${generation}: ${reasonOf(error)}`)
  }
}

/** Compares all generations with a projection from nothing, and with a rebuild by the commands. */
const finish = async (world: World, readers: Readers, outcome: Outcome): Promise<Outcome> => {
  if (world.failure !== undefined) return outcome
  const wanted = await quietContentOf(world.log.entries)
  for (const generation of world.kept()) {
    const difference = differenceOf(world.content(generation), wanted)
    if (difference !== undefined) world.fail(`${generation} ${difference}`)
  }
  if (world.failure !== undefined) return outcome
  world.logs.splice(0, world.logs.length - 1)
  readers.isRestored = true
  await verifyAll(world)
  const wrong = world.wrongBalance()
  if (wrong !== undefined) world.fail(wrong)
  let refused: { readonly why: string | undefined } | undefined
  readers.askAll().then(
    why => {
      refused = { why }
    },
    (error: unknown) => world.fail(`a read failed: ${error instanceof Error ? error.stack : 'defect'}`),
  )
  await world.clock.runUntil(() => refused !== undefined || world.failure !== undefined, MINUTE)
  if (refused?.why !== undefined) world.fail(`readers are refused for good: ${refused.why}`)
  await world.clock.runUntil(() => world.failure !== undefined || world.areReady(), MINUTE)
  for (const projector of world.projectors()) {
    const reasons = JSON.stringify(projector.notReady())
    if (reasons !== '{}') world.fail(`/readyz of ${projector.host.name} is not ready in the end: ${reasons}`)
  }
  return outcome
}

const verifyAll = async (world: World): Promise<void> => {
  const generations = world.kept()
  const rebuilt = await world.command({ name: 'rebuild' })
  if (rebuilt.code !== 0) return world.fail(`rebuild: ${reasonOf(rebuilt.error)}`)
  const { generation } = JSON.parse(rebuilt.out[0] ?? '{}') as { readonly generation: string }
  for (const one of generations) {
    const { code, error, out } = await world.command({ name: 'verify', a: one, b: generation })
    if (code !== 0) world.fail(`verify of ${one}: ${reasonOf(error)} ${out.slice(-2).join(' ')}`)
  }
}

/** The words of a refusal; of anything else its stack. */
export const reasonOf = (error: unknown): string => {
  if (error instanceof CommandError || error instanceof StopError) return error.message
  return error instanceof Error ? `not a refusal: ${error.stack}` : ''
}

const differenceOf = (got: readonly string[], wanted: readonly string[]): string | undefined => {
  const [extra] = [...new Set(got).difference(new Set(wanted))]
  const [missing] = [...new Set(wanted).difference(new Set(got))]
  if (extra === undefined && missing === undefined && got.length === wanted.length) return undefined
  const short = (text: string | undefined): string => text?.slice(0, 300) ?? 'nothing'
  return `differs from a projection from nothing: ${short(extra)} for ${short(missing)}`
}
