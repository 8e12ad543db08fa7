/**
 * The operator of a run: an archive of the lost log, new topics, `restore`, and the commands that take the log over.
 * Each command may be killed at its first attempt. A refusal must say why.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordHash } from '../../../core/ledger/event/decode.ts'
import { StopError } from '../../../core/runtime/failures.ts'
import { controlIndexOf } from '../../../schemas/stored/documents.ts'
import { CommandError } from '../../../tools/failures.ts'
import { createRandom } from '../../support/random.ts'
import type { Broker } from '../broker.ts'
import { type Entry, EVENTS } from '../history.ts'
import type { Running, Told } from '../pairs/commands.ts'
import { PREFIX } from '../promises.ts'
import type { Plan } from './plan.ts'
import { type Entries, emptyEntries, RealLog, STREAMS } from './real-log.ts'
import { World } from './world.ts'

type Given = {
  readonly directory: string
  readonly lost: RealLog
  readonly snapshot: ReturnType<World['beginSnapshot']>
}

/**
 * Returns whether the log was taken over; otherwise it was refused, because readers have seen more than the archive
 * has.
 */
export const bringBack = async (plan: Plan, world: World, { directory, lost, snapshot }: Given): Promise<boolean> => {
  const archive = join(directory, 'archive')
  const archived = await archiveForeign(plan, world, archive, await archiveLost(plan, world, archive, lost))
  if (plan.stopsProjectors) await world.stopProjectors()
  if (world.failure !== undefined) return false
  world.logs.push(new RealLog(archived))
  await restoreTopics(plan, world, archive, archived)
  if (world.failure !== undefined) return false
  if (!plan.stopsProjectors) {
    // It is refused while somebody writes, and then it has changed nothing.
    const before = sourcesOf(world)
    const refused = await attempt(plan, world, { name: 'adopt-archive', directory: archive })
    if (refused.code !== 0 && plan.killCommandAt === 0 && sourcesOf(world) !== before) {
      world.fail(`adopt changed a source, and was refused: ${messageOf(refused)}`)
    }
    await world.stopProjectors()
  }
  if (plan.snapshot !== 'none') await restoreSnapshot(plan, world, snapshot)
  const isReached = hasAllThatWasRead(world, archived)
  const before = [...world.kept()].map(generation => world.content(generation).join('\n')).join('\n')
  const adopted = await attempt(plan, world, { name: 'adopt-archive', directory: archive })
  if (!isReached) {
    // A spare generation that has read more than the archive has is skipped by name.
    if (adopted.code === 0 && hasAllThatWasRead(world, archived, 'without spares')) return false
    if (adopted.code === 0) world.fail('adopt accepts an archive that ends before a position')
    const now = [...world.kept()].map(generation => world.content(generation).join('\n')).join('\n')
    if (now !== before) world.fail('adopt refused, and changed documents')
    return false
  }
  if (adopted.code !== 0) world.fail(`adopt refuses a log that it has read: ${messageOf(adopted)}`)
  if (plan.snapshot !== 'none' && world.failure === undefined) await takeSnapshotOver(plan, world, snapshot.began)
  return true
}

/** The sources that the generations and the API keys name. */
const sourcesOf = (world: World): string =>
  STREAMS.flatMap(topic => world.generationsOf(topic).map(name => world.sourceOf(name))).join()

/** Whether the archive reaches each position, and has there the record that was read last. */
export const hasAllThatWasRead = (world: World, archived: Entries, which?: 'without spares'): boolean =>
  STREAMS.every(topic =>
    (archived[topic] ?? []).every((entries, partition) =>
      world.generationsOf(topic).every(generation => {
        if (which === 'without spares' && topic === EVENTS && generation !== world.live()?.generation) return true
        const { position = 0, last } = world.position(generation, partition) ?? {}
        if (position > entries.length) return false
        const entry = last && entries[last.offset]
        return !last || (!!entry && hashOf(entry) === last.sha256)
      }),
    ),
  )

const hashOf = ({ message: { key, value, headers, offset, timestamp } }: Entry): string =>
  recordHash({ key, value, headers, offset: Number(offset), timestamp: Number(timestamp) })

/** An archive of the log as it was, on a clock of its own; of a lost tail without the last records. */
const archiveLost = async (plan: Plan, world: World, directory: string, lost: RealLog): Promise<Entries> => {
  const { random } = plan
  const entries = Object.fromEntries(
    STREAMS.map(topic => [
      topic,
      (lost.entries[topic] ?? []).map((all, partition) => {
        if (plan.kind !== 'lost tail' || !plan.topics.includes(topic)) return all
        // Mostly it has what readers have seen, and lacks what was only written.
        const seen = Math.min(all.length, random.chance(0.9) ? world.furthest(topic, partition) : 0)
        return all.slice(0, seen + random.below(all.length - seen + 1))
      }),
    ]),
  )
  const side = new World(createRandom(1), 1, entries)
  side.broker.hasTopicIds = plan.hasTopicIds
  const { code, error, said } = await side.command({ name: 'archive', directory })
  if (code !== 0) world.fail(`the archive before the loss: ${said.join(' | ')} ${error}`)
  side.killAll()
  await side.release()
  return entries
}

/**
 * A run of the archive after the loss must refuse the other log before it takes a record of it.
 * @returns what the archive has
 */
const archiveForeign = async (plan: Plan, world: World, directory: string, archived: Entries): Promise<Entries> => {
  if (STREAMS.some(topic => !world.broker.topics.has(topic))) return archived
  // Without topic ids, only a record that is in the archive tells that the topic is another one.
  const hasRecords = plan.topics.some(topic => archived[topic]?.some(({ length }) => length > 0))
  if (!plan.hasTopicIds && !hasRecords && plan.kind !== 'cut') return archived
  const running = await attempt(plan, world, { name: 'archive', directory })
  const archivedEnds = (topic: string): number[] => {
    const path = join(directory, topic === EVENTS ? 'events' : 'api-keys', 'manifest.json')
    return (JSON.parse(readFileSync(path, 'utf8')) as Manifest).partitions.map(({ end }) => end)
  }
  for (const topic of plan.topics) {
    const ends = archivedEnds(topic)
    const wanted = (archived[topic] ?? []).map(({ length }) => length)
    if (running.code !== 0 && ends.join() !== wanted.join())
      world.fail(`the archive took records of another ${topic}: it ends at ${ends}, and the log at ${wanted}`)
  }
  if (running.code !== 0) {
    // In the topics that lost nothing, publishers go on.
    const grown = (topic: string) => {
      const ends = archivedEnds(topic)
      return (world.log.entries[topic] ?? []).map((entries, partition) => entries.slice(0, ends[partition]))
    }
    return Object.fromEntries(
      STREAMS.map(topic => [topic, plan.topics.includes(topic) ? (archived[topic] ?? []) : grown(topic)]),
    )
  }
  if (plan.kind !== 'cut') world.fail('the archive accepts the new topics')
  // Nothing of it was lost.
  return world.log.entries
}
type Manifest = { readonly partitions: readonly { readonly end: number }[] }

const restoreTopics = async (plan: Plan, world: World, from: string, archived: Entries): Promise<void> => {
  world.isBeingRestored = true
  const told: Told = { name: 'restore', directory: from, keys: from }
  const topics = plan.otherCluster || plan.kind === 'cut' ? STREAMS : plan.topics
  if (plan.otherCluster) {
    const other = world.createBroker(emptyEntries, 'another')
    other.hasTopicIds = plan.hasTopicIds
    await switchTo(other, world)
  } else if (plan.forgetsToDelete && plan.kind !== 'cut') {
    const forgotten = await attempt(plan, world, told)
    if (forgotten.code !== 0) makeAnew(world, topics)
  } else makeAnew(world, topics)
  let restored = await attempt(plan, world, told)
  if (restored.code !== 0) {
    // Somebody published meanwhile, or an attempt was killed at a bad moment: the words of the command say this step.
    makeAnew(world, STREAMS)
    restored = await attempt(plan, world, told)
  }
  if (restored.code !== 0) return world.fail(`restore: ${messageOf(restored)}`)
  world.setForeign(false)
  for (const topic of STREAMS) {
    for (const [partition, { entries, end }] of world.broker.topic(topic).partitions.entries()) {
      const wanted = archived[topic]?.[partition] ?? []
      const isSame = wanted.every((entry, at) => entries[at]?.message.value?.equals(entry.message.value ?? NONE))
      if (end !== wanted.length || !isSame) world.fail(`the restored ${topic} ${partition} is not the lost one`)
    }
  }
}
const NONE = Buffer.alloc(0)
/** Milliseconds that a snapshot of Elasticsearch takes to be restored. */
const RESTORE_TAKES = 5_000

const makeAnew = (world: World, topics: readonly string[]): void => {
  world.say(`the operator deletes and creates ${topics.join(' and ')}`)
  for (const topic of topics) {
    const { length } = emptyEntries[topic] ?? []
    if (world.broker.topics.has(topic)) world.broker.delete(topic)
    world.broker.create(topic, length)
  }
}

/** Everything that is started from now on has the settings of the other cluster. */
const switchTo = async (other: Broker, world: World): Promise<void> => {
  world.say('the operator restores on another cluster')
  await world.stopProjectors()
  world.broker = other
}

const restoreSnapshot = async (plan: Plan, world: World, { indices }: Given['snapshot']): Promise<void> => {
  world.say(`the operator restores ${plan.snapshot} indices of a snapshot`)
  const restored = [...indices].filter(() => plan.snapshot === 'all' || plan.random.chance(0.5))
  // An index is deleted before it is restored. Meanwhile the API learns that it is another one.
  for (const [name] of restored) world.engine.indices.delete(name)
  await world.pass(RESTORE_TAKES)
  for (const [name, copy] of restored) world.engine.indices.set(name, copy.copy())
  // A control index alone that is older than the documents is a case of its own, with its own refusal.
  if (!world.engine.indices.has(controlIndexOf(PREFIX))) world.fail('a snapshot without its control index')
}

const takeSnapshotOver = async (plan: Plan, world: World, began: number): Promise<void> => {
  const rewound = plan.random.chance(0.5)
    ? await attempt(plan, world, { name: 'rewind', snapshotStart: began })
    : undefined
  if (rewound?.code === 0) return
  const adopted = await attempt(plan, world, { name: 'adopt' })
  if (adopted.code !== 0) world.fail(`adopt after a snapshot: ${messageOf(adopted)}`)
}

/** Runs a command; if its first attempt is killed, once more. It ends with success, or with a refusal that says why. */
const attempt = async (plan: Plan, world: World, told: Told): Promise<Running> => {
  const first = await world.command(told, plan.killCommandAt === 0 ? undefined : plan.killCommandAt)
  const running = first.host.isDead ? await world.command(told) : first
  const { error, ended } = running
  if (ended === undefined) world.fail(`${told.name} never ended`)
  if (error !== undefined && !isRefusal(error)) {
    world.fail(`${told.name} failed without a name: ${error instanceof Error ? error.stack : 'defect'}`)
  }
  return running
}

const isRefusal = (error: unknown): boolean =>
  error instanceof CommandError ||
  (error instanceof StopError && error.code !== 'defect') ||
  (error instanceof Error && error.name === 'ArchiveDamaged')

const messageOf = ({ error, said }: Running): string => (error instanceof Error ? error.message : said.join(' | '))
